"""Which loops take the step before them, and what they do in it."""

import re

import pytest
import torch

import tilewright
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec

PIPELINE = (
    "tiling{tile=64x128x64},tma-insertion,swizzle-selection,pipelining{stages=2},"
    "warp-specialization"
)
STEP_MMAS = 2  # which a loop does twice
PASS = "select-instructions"
BEHIND = '"sm.await_grids"() : () -> ()'


@pytest.fixture(scope="module")
def before() -> str:
    """A role that multiplies, before its instructions are selected."""
    how = {"target": "sm_90a", "pipeline": PIPELINE, "until": "mlir"}
    return compile_matmul(MatmulSpec(64, 128, 192), stop_after="pipes-to-barriers", **how).mlir


def mmas_of(text: str) -> int:
    return len(re.findall(r'"sm\.wgmma"\(', run_passes_on_text(text, "m.mlir", PASS)))


def edited(text: str, old: str, new: str) -> str:
    """With the first match in the program of the role that multiplies exchanged."""
    head, program = text.rsplit(BEHIND, 1)
    assert re.search(old, program)
    made = "\n%true = arith.constant true\n%two = arith.constant 2 : index\n"
    return head + BEHIND + made + re.sub(old, new, program, count=1)


def test_a_loop_takes_the_step_before_it(before):
    assert mmas_of(before) == STEP_MMAS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r'("sm\.advance_position"\(%operands_read\) \{slots = )1', r"\g<1>3"),
        (r'("tile\.mma"\(%acc, .*), %adds\)', r"\1, %true)"),
        (r"(%adds = arith\.cmpi ne, )%c0\w*", r"\1%two"),
        (r"(scf\.for %k = )%c1\w*", r"\1%two"),
    ],
    ids=["another number", "adds", "adds in a step 2", "a loop that begins later"],
)
def test_what_does_something_else_stays_before_the_loop(before, old, new):
    assert mmas_of(edited(before, old, new)) == 2 * STEP_MMAS


@pytest.mark.parametrize("more", [{"dynamic_k": True, "a_major": "m", "b_major": "n"}])
def test_so_does_one_of_a_loop_that_may_take_no_step(more):
    how = {"target": "sm_90a", "pipeline": PIPELINE, "until": "ptx"}
    made = compile_matmul(MatmulSpec(64, 128, 192, **more), **how)
    assert made.ptx.count("wgmma.mma_async") == 2 * STEP_MMAS


@pytest.mark.parametrize("k", [64, 72, 128, 320])
def test_sums_begin_with_the_first_step_of_each_tile(k):
    """Two tiles for each CTA, of one step along K and more, in slots that are filled again."""
    spec = MatmulSpec(192, 256, k)
    made = compile_matmul(spec, target="sm_90a", pipeline=f"{PIPELINE},persistence{{ctas=2}}")
    torch.manual_seed(k)
    a, b = (torch.randint(-3, 4, size).bfloat16() for size in ((192, k), (256, k)))
    c = tilewright.load(as_bundle(made))(a, b)
    assert torch.equal(c, (a.double() @ b.double().T).bfloat16())
