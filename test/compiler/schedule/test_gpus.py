"""GPUs as targets: code for their chip, schedules for themselves."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tilewright.compiler.calls.kernels import lookup
from tilewright.compiler.calls.kernels.kernel_cache import describe_request, digest
from tilewright.compiler.calls.operands.scaled_sides import sums_of
from tilewright.compiler.driver import compile_matmul, plan_passes
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.schedule.chips.chip_figures import figures
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.schedule.short_steps import passes_of
from tilewright.compiler.spec import TWO_LEVEL, MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.dialects.target import GPUS, find_target

LARGE = MatmulSpec(16384, 16384, 16384)


def test_a_chip_without_figures_has_no_estimate():
    with pytest.raises(OptionError) as caught:
        choose_schedule(LARGE, replace(find_target("sm_90a"), chip="sm_99"))
    assert str(caught.value) == (
        "error: schedule: the chip of an estimate must be one of sm_100a, sm_90a, sm_80, sm_86, "
        "sm_89, sm_120a, got sm_99; add its figures to compiler/schedule/chips/chip_figures.py, "
        "or name a pipeline"
    )


def test_an_h100_has_schedules_of_its_own_and_code_for_its_chip():
    """Twice 512 MiB of operands: what an H200 was fastest with needs more L2 than an H100 has."""
    h100, h200 = find_target("h100"), find_target("h200")
    assert choose_schedule(LARGE, h100) != choose_schedule(LARGE, h200)
    planned = plan_passes(LARGE, target="h100", pipeline=None, preset=None)
    passes = passes_of(Problem.of(LARGE, h100), choose_schedule(LARGE, h100), h100)
    assert passes in ",".join(str(call) for call in planned.calls)
    compiled = compile_matmul(MatmulSpec(64, 64, 64), target="h100", until="ptx")
    assert compiled.target == "sm_90a" and ".target sm_90a" in compiled.ptx


@pytest.mark.parametrize("name", GPUS)
def test_l2_of_a_gpu_is_its_own(name):
    sizes = {"b200": 132.6e6, "h200": 60e6, "h100": 50e6}
    assert float(figures(find_target(name)).l2_size) == sizes[name]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "sm_90a"),
        ("NVIDIA GH200 480GB", "sm_90a"),
    ],
)
def test_calls_take_the_schedules_of_the_gpu_that_they_are_for(monkeypatch, name, target):
    gpu = SimpleNamespace(name=name, target="sm_90a")
    monkeypatch.setattr(lookup, "open_device", lambda kind: SimpleNamespace(gpu=lambda index: gpu))
    assert lookup.default_target(0) == target


@pytest.mark.parametrize(
    ("target", "sums"), [("h100", TWO_LEVEL), ("h200", TWO_LEVEL), ("b200", "")]
)
def test_sums_of_8_bits_are_as_exact_by_a_gpus_name_as_by_its_chips(target, sums):
    rows = torch.empty(1, 1).to(torch.float8_e4m3fn)
    assert sums_of("scaled_mm", target, rows, use_fast_accum=False) == sums
    assert sums_of("scaled_mm", target, rows, use_fast_accum=True) == ""
    text = LinalgText("", "text", exact_sums=True)
    assert text.has_two_levels(target) is (sums == TWO_LEVEL)


def test_a_kernel_has_one_key_by_the_names_of_a_gpu_and_of_its_chip():
    spec, pipeline = MatmulSpec(64, 64, 64), "tiling"
    keys = {digest(describe_request(spec, name, pipeline)) for name in ("h100", "h200", "sm_90a")}
    assert len(keys) == 1


def test_an_unknown_gpu_is_refused_with_those_that_are_known():
    with pytest.raises(OptionError, match=r"unknown chip 'h300'; use one of .*sm_90a.*h100"):
        find_target("h300")
