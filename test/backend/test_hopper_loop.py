"""The main loops of a Hopper kernel: a loop over HGMMAs of a step, one wait, no memory barrier."""

import re

import pytest

from tilewright.compiler import inspect_sass
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.presets import HOPPER_PRESETS
from tilewright.compiler.spec import MatmulSpec

# Preset → MMAs of a turn of the loop over those of a K step. In clusters, so that a release goes to
# other CTAs.
CONSUMERS = {
    "h7": ["HGMMA.64x256x16.F32.BF16"],
    "h8": 4 * ["HGMMA.64x128x16.F32.BF16"],  # of two consumers, which share one copy of code
}


@pytest.fixture(scope="module", params=CONSUMERS)
def consumers(request):
    """The MMAs of a turn, and the mnemonics of the consumers' loop over K."""
    text = HOPPER_PRESETS[request.param]
    if "clustering" not in text:
        text = text.replace("pipelining", "clustering{shape=2x1},pipelining")
    spec = MatmulSpec(4096, 4096, 1024)
    cubin = compile_matmul(spec, target="sm_90a", pipeline=text).assembled.cubin
    (loop,) = loops_of(inspect_sass.disassemble(cubin))
    return CONSUMERS[request.param], loop


def loops_of(sass):
    """The mnemonics from an MMA to the jump back, around every wait for all but some groups."""
    text = [line for line in sass.splitlines() if re.search(r"/\*[0-9a-f]{4,}\*/ ", line)]
    names = [re.sub(r"^.*?/\*[0-9a-f]+\*/\s+(@!?U?P\d+ )?", "", line).split()[0] for line in text]
    for wait in (
        at
        for at, line in enumerate(text)
        if re.search(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x[1-9]", line)
    ):
        start = max(at for at in range(wait) if names[at].startswith("WARPGROUP.ARRIVE"))
        end = next(at for at in range(wait, len(names)) if names[at] == "BRA")
        yield names[start:end]


def test_a_turn_has_all_mmas_of_its_steps(consumers):
    mmas, loop = consumers
    assert [name for name in loop if name.startswith("HGMMA")] == mmas


def test_accumulators_stay_where_they_are(consumers):
    moves = {"MOV", "STL", "LDL", "R2P", "SHFL"}
    assert not [name for name in consumers[1] if name.split(".")[0] in moves]


def test_a_release_in_a_cluster_needs_no_memory_barrier(consumers):
    barriers = ("MEMBAR", "CCTL", "ERRBAR")
    assert not [name for name in consumers[1] if name.startswith(barriers)]
