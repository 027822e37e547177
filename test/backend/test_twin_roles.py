"""Which roles become one program: two whole warpgroups that do the same with other numbers."""

import re

import pytest
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.importers.traced_function import TensorLike
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.passes.base import PassLog

ONE = (
    "tiling{tile=128x64x64},tma-insertion,swizzle-selection,epilogue-staging{columns=32 buffers=2},"
    "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2}"
)
PERMUTES = f"{ONE},ping-pong"
SPEC = MatmulSpec(256, 192, 200)


def ptx_of(pipeline: str, spec: MatmulSpec = SPEC) -> str:
    return compile_matmul(spec, target="sm_90a", pipeline=pipeline, until="ptx").ptx


def mmas_of(text: str) -> int:
    return len(re.findall(r"wgmma\.mma_async", text))


@pytest.fixture(scope="module")
def selected() -> str:
    """Two consumers in turns once their instructions are selected, as text."""
    made = compile_matmul(
        SPEC, target="sm_90a", pipeline=PERMUTES, stop_after="select-instructions", until="mlir"
    )
    return made.mlir


def lowered(text: str) -> tuple[int, str]:
    """How many MMAs are left in the text, and what the pass says."""
    log = PassLog()
    return mmas_of(run_passes_on_text(text, "roles.mlir", "lower-to-nvvm", log)), log.summary[-1]


def test_consumers_in_turns_have_the_code_of_one():
    assert mmas_of(ptx_of(PERMUTES)) == mmas_of(ptx_of(ONE)) > 0


def test_each_meets_at_a_barrier_of_its_own_and_begins_with_its_own_tile():
    ptx = ptx_of(PERMUTES)
    assert re.search(r"selp\.b32\s+%r\d+, 2, 1, %p\d+;", ptx)  # the barrier, of 128 threads
    assert not re.search(r"bar\.sync\s+[12], 128;", ptx)
    assert re.search(r"shfl\.sync\.idx\.b32\s+%r\d+, %r\d+, 0, 31, -1;", ptx)  # one for each warp


def test_steps_that_a_launch_tells_leave_two_programs():
    any_k = MatmulSpec(256, 192, 200, dynamic_k=True, a_major="m", b_major="n")
    assert mmas_of(ptx_of(PERMUTES, any_k)) == 2 * mmas_of(ptx_of(ONE, any_k))


def test_pieces_of_a_residual_that_come_ahead_leave_two_programs():
    rows = [SPEC.m, SPEC.n]
    like = TensorLike(rows, torch.bfloat16)
    spec, made, *_ = import_epilogue(SPEC, Frame.of(rows, 0), torch.add, [like])
    source = LinalgText(spec.mlir_text(made), "matmul", ("a", "b", "residual"))
    ahead = ONE.replace("buffers=2", "buffers=2 ahead=2")
    one, two = (
        compile_matmul(source, target="sm_90a", pipeline=pipeline, until="ptx").ptx
        for pipeline in (ahead, f"{ahead},ping-pong")
    )
    assert mmas_of(two) == 2 * mmas_of(one) > 0


def edit(text: str, old: str, new: str, role: int) -> str:
    """Replace in one of the roles, each of which begins by taking registers."""
    parts = text.split('"sm.set_registers"')
    assert old in parts[role + 1]
    parts[role + 1] = parts[role + 1].replace(old, new, 1)
    return '"sm.set_registers"'.join(parts)


def test_what_is_selected_has_two_programs_that_become_one(selected):
    mmas, said = lowered(selected)
    assert "2 roles in one program" in said
    assert 2 * mmas == mmas_of(ptx_of(PERMUTES)) * 2 == len(re.findall('"sm.wgmma"', selected))


@pytest.mark.parametrize(
    "old, new",
    [
        ("pending = 1 : i64", "pending = 0 : i64"),  # another attribute
        ('"sm.converge"() : () -> ()\n', ""),  # an op less
        ("a_offset = 8192 : i64", "a_offset = 0 : i64"),
        ('kind = "async_shared"', 'kind = "mbarrier_init"'),
    ],
)
@pytest.mark.parametrize("role", [0, 1])
def test_roles_that_differ_in_more_than_numbers_stay(selected, old, new, role):
    mmas, said = lowered(edit(selected, old, new, role))
    assert "roles" not in said
    assert mmas == mmas_of(ptx_of(PERMUTES)) * 2


@pytest.mark.parametrize(
    "old, new",
    [
        ("ult(, %tid_x, %c128_i32)", r"ule\1"),  # one thread is in both
        (r"128( : i32\n *%\d+ = arith\.subi %tid_x)", r"96\1"),  # a warp is in both
    ],
)
def test_roles_whose_threads_are_not_behind_each_other_stay(selected, old, new):
    changed, count = re.subn(old, new, selected, count=1)
    assert count
    _, said = lowered(changed)
    assert "roles" not in said


def again(text: str) -> str:
    """Let each consumer run its loop over tiles in another loop."""
    head = r"^( +)scf\.for %\w+ (= [^\n]*\{)\n"
    loop = re.compile(head + r"((?:(?!^\1\}\n)[^\n]*\n)*?[^\n]*wgmma.*?)^\1\}\n", re.M | re.S)
    changed, count = loop.subn(
        lambda found: f"{found[1]}scf.for %again {found[2]}\n{found[0]}{found[1]}}}\n", text
    )
    assert count == 2
    return changed


def test_a_loop_that_runs_again_leaves_two_programs(selected):
    """The second consumer would move on in its ring once more each time."""
    _, said = lowered(again(selected))
    assert "roles" not in said
