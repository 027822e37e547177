"""Stacks of matrices: every prefix, edges of one matrix beside the next, either order, sharing."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

BOTH = ["sm_90a", "sm_100a"]
# Three matrices of three M tiles, the last of one row, which clusters of two round up to four.
RAGGED = {"m": 129, "n": 24, "k": 40, "batch": 3}
LADDER = (
    "tiling{tile=64x16x32}",
    "tma-insertion{box=3d}",
    "swizzle-selection",
    "epilogue-staging",
    "clustering{shape=2x1}",
    "pipelining{stages=2}",
    "warp-specialization",
    "persistence{ctas=4}",
)


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 5, 7, 8], target=BOTH)
def test_every_prefix_keeps_the_matrices_of_a_stack_apart(check_matmul, passes, target):
    compiled, _ = check_matmul(
        MatmulSpec(**RAGGED, c_dtype="f32"), pipeline=",".join(LADDER[:passes]), target=target
    )
    by_tma = [each["kind"] for each in compiled.manifest["parameters"]].count("tensor_map")
    assert by_tma == (0 if passes < 2 else 2 if passes < 4 else 3)
    tiles = 3 * (3 if passes < 5 else 4)
    assert compiled.manifest["grid"] == ([tiles, 2, 1] if passes < 8 else [4, 1, 1])


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "order", ["scheduler=clc", "order=m", "order=n", "order=hilbert", "group=2"]
)
def test_tiles_of_stacks_are_walked_in_every_order(check_matmul, order):
    text = ",".join(LADDER[:7]) + f",persistence{{{order}}}"
    check_matmul(MatmulSpec(**RAGGED), pipeline=text)


@pytest.mark.array(1, majors=["kk", "mn"], target=BOTH)
def test_matrices_that_begin_anywhere_are_copied_by_threads(check_matmul, majors, target):
    """With 77 × 51 elements of two bytes, the second matrix begins 14 bytes into a unit of 16."""
    a_major, b_major = majors
    spec = MatmulSpec(77, 33, 51, a_major=a_major, b_major=b_major, batch=3, c_dtype="f32")
    text = "tiling{tile=64x48x64},tma-insertion,pipelining,warp-specialization,persistence"
    compiled, _ = check_matmul(spec, pipeline=text, target=target)
    assert {each["kind"] for each in compiled.manifest["parameters"]} == {"pointer"}


@pytest.mark.array(1, shared="ab", majors=["kn", "mk"])
def test_one_matrix_that_all_share_is_no_stack(check_matmul, shared, majors):
    stacked = {f"{shared}_stacked": False, "a_major": majors[0], "b_major": majors[1]}
    spec = MatmulSpec(72, 40, 136, batch=3, **stacked)
    text = "tiling{tile=64x32x64},tma-insertion,swizzle-selection,pipelining,warp-specialization"
    compiled, _ = check_matmul(spec, pipeline=text)
    ranks = [len(each["shape"]) for each in compiled.manifest["tensors"]]
    assert ranks == ([2, 3, 3] if shared == "a" else [3, 2, 3])


@pytest.mark.parametrize(
    ("target", "text"),
    [("sm_100a", "tiling{tile=64x16x32}"), ("sm_89", "tiling{tile=16x16x32},copy-insertion")],
)
def test_stacks_of_8_bit_floats_are_copied_by_threads(check_matmul, target, text):
    """LLVM has no such type, though a pointer may move by such elements."""
    spec = MatmulSpec(17, 9, 33, "e4m3", "e5m2", batch=2, b_stacked=False)
    check_matmul(spec, pipeline=text, target=target)


@pytest.mark.parametrize("target", BOTH)
def test_a_split_k_adds_up_the_sums_of_one_matrix(check_matmul, target):
    text = "tiling{tile=64x32x64},tma-insertion,swizzle-selection,split-k{parts=2},"
    text += "clustering{shape=2x1},pipelining,warp-specialization"
    check_matmul(MatmulSpec(100, 40, 264, batch=3), pipeline=text, target=target)


@pytest.mark.parametrize(
    ("sizes", "dtype"), [((1, 24, 40), "f16"), ((65, 1, 32), "s8"), ((5, 7, 1), "tf32")]
)
def test_the_default_schedule_takes_stacks_of_any_size(check_matmul, sizes, dtype):
    spec = MatmulSpec.of_type(*sizes, dtype).as_dict() | {"batch": 5}
    check_matmul(MatmulSpec(**spec))


def test_ping_pong_consumers_take_tiles_of_different_matrices(check_matmul):
    text = "tiling{tile=64x64x64},tma-insertion,swizzle-selection,pipelining{stages=4},"
    text += "warp-specialization,persistence{ctas=2},ping-pong"
    check_matmul(MatmulSpec(100, 72, 136, batch=4), pipeline=text, target="sm_90a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"batch": -1},
            "error: spec: batch must be 0 to 2147483647, got -1",
        ),
        (
            {"a_stacked": False, "b_stacked": False},
            "error: spec: a or b must be a stack, got none; multiply once",
        ),
        (
            {"batch": 0, "b_stacked": False},
            "error: spec: b_stacked must be True where there is no batch, got False; leave it out",
        ),
    ],
)
def test_a_stack_that_is_none_is_refused(change, message):
    with pytest.raises(CompileError) as refused:
        compile_matmul(MatmulSpec(**RAGGED | change))
    assert str(refused.value) == message
