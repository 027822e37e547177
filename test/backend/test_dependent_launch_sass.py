"""ptxas keeps what a dependent launch promises: nothing of global memory before the wait."""

import re

import pytest

from tilewright.compiler import inspect_sass
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.presets import HOPPER_PRESETS
from tilewright.compiler.spec import MatmulSpec

WAIT = "ACQBULK"
GLOBAL = re.compile(r"(LDG|STG|LD|ST|LDGSTS|UTMALDG|UTMASTG|UTMAREDG|UBLKCP|RED|ATOM|ATOMG)\b")


def instructions(spec: MatmulSpec, pipeline: str | None) -> list[str]:
    compiled = compile_matmul(spec, target="sm_90a", pipeline=pipeline)
    sass = inspect_sass.disassemble(compiled.assembled.cubin)
    entry = compiled.manifest["entry"]
    return [each.text for each in inspect_sass.parse_kernel(sass, entry)]


@pytest.mark.sweep(16)
@pytest.mark.parametrize("name", HOPPER_PRESETS)
def test_every_access_of_a_preset_comes_behind_the_wait(name):
    check(instructions(MatmulSpec(600, 520, 264), HOPPER_PRESETS[name]))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("shape", [(300, 500, 110), (16, 512, 2048), (128, 128, 8192)])
def test_every_access_of_a_chosen_kernel_comes_behind_the_wait(shape):
    check(instructions(MatmulSpec(*shape), None))


def check(names: list[str]) -> None:
    waits = [at for at, name in enumerate(names) if name.startswith(WAIT)]
    accesses = [at for at, name in enumerate(names) if GLOBAL.match(name)]
    assert len(waits) == 1
    assert accesses
    assert waits[0] < accesses[0]
