"""The main loop of a Hopper kernel: HGMMAs of one group, one wait, no memory barrier."""

import re

import pytest

from tilewright.compiler import inspect_sass
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec


@pytest.fixture(scope="module")
def loop():
    """The mnemonics of the consumer role's loop over K."""
    compiled = compile_matmul(MatmulSpec(1024, 1024, 1024), target="sm_90a", preset="h7")
    sass = inspect_sass.disassemble(compiled.assembled.cubin)
    text = [line for line in sass.splitlines() if re.search(r"/\*[0-9a-f]{4,}\*/ ", line)]
    names = [re.sub(r"^.*?/\*[0-9a-f]+\*/\s+(@!?U?P\d+ )?", "", line).split()[0] for line in text]
    waits = [at for at, line in enumerate(text) if "WARPGROUP.DEPBAR.LE gsb0, 0x1" in line]
    assert len(waits) == 1
    start = max(at for at in range(waits[0]) if names[at].startswith("WARPGROUP.ARRIVE"))
    end = next(at for at in range(waits[0], len(names)) if names[at] == "BRA")
    return names[start:end]


def test_a_step_is_one_group_of_wgmma(loop):
    assert sum(name.startswith("HGMMA.64x256x16.F32.BF16") for name in loop) == 4


def test_accumulators_stay_where_they_are(loop):
    moves = {"MOV", "STL", "LDL", "R2P", "SHFL"}
    assert not [name for name in loop if name.split(".")[0] in moves]


def test_a_release_in_a_cluster_needs_no_memory_barrier(loop):
    assert not [name for name in loop if name.startswith(("MEMBAR", "CCTL", "ERRBAR"))]
