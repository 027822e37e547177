"""Tiles that L2 is asked for before a kernel has barriers: right as before, and asked for once."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

TMA = "tma-insertion,swizzle-selection"
ROLES = "pipelining{stages=2},warp-specialization"
HOPPER, BLACKWELL = f"tiling{{tile=64x64x64}},{TMA}", f"tiling{{tile=128x64x64}},{TMA}"
KERNELS = {
    "a tile": ("sm_90a", f"{HOPPER},{ROLES}", 2),
    "tiles": ("sm_90a", f"{HOPPER},{ROLES},persistence{{ctas=3}}", 2),
    "turns": ("sm_90a", f"{HOPPER},epilogue-staging{{buffers=4}},{ROLES},persistence,ping-pong", 2),
    "a cluster": ("sm_90a", f"{HOPPER},clustering{{shape=2x1 pair=false}},{ROLES}", 2),
    "split": ("sm_90a", f"{HOPPER},split-k{{parts=2}},{ROLES}", 2),
    "a pair": ("sm_100a", f"{BLACKWELL},clustering{{shape=2x1}},{ROLES},persistence", 2),
}


def asked(ptx):
    """How many boxes L2 is asked for, and how many instructions behind the first meeting do it."""
    lines = [line for line in ptx.splitlines() if "bulk.prefetch.tensor" in line]
    meeting = min(at for at in (ptx.find("bar.sync"), ptx.find("barrier.cluster")) if at > 0)
    return len(lines), ptx[meeting:].count("bulk.prefetch.tensor")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_right_and_ask_for_the_tiles_of_two_steps(check_matmul, name, seed=1):
    target, pipeline, steps = KERNELS[name]
    text = f"{pipeline},expand-loops{{early=2}}"
    compiled, _ = check_matmul(MatmulSpec(136, 72, 136), target=target, pipeline=text, seed=seed)
    assert asked(compiled.ptx) == (2 * steps, 0)


def test_tiles_that_are_claimed_are_not_known_early():
    text = f"{BLACKWELL},{ROLES},persistence{{scheduler=clc}},expand-loops{{early=2}}"
    with pytest.raises(CompileError, match="early needs an agent that loads tiles by TMA, the fir"):
        compile_matmul(MatmulSpec(136, 72, 136), pipeline=text)


def test_no_more_steps_are_asked_for_than_there_are(check_matmul):
    """Each has its own place: no instruction has the operands of another."""
    text = f"{HOPPER},{ROLES},expand-loops{{early=9}}"
    compiled, _ = check_matmul(MatmulSpec(64, 64, 136), target="sm_90a", pipeline=text)
    assert asked(compiled.ptx) == (2 * 3, 0)
    lines = [line for line in compiled.ptx.splitlines() if "bulk.prefetch.tensor" in line]
    assert len(set(lines)) == len(lines)
