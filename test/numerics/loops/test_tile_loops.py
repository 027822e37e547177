"""Persistent kernels give every tile out once: more tiles than CTAs, fewer, and every order."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

ROLES = (
    "tiling{tile=64x32x64},tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
)
PAIRS = (
    "tiling{tile=128x32x64},tma-insertion,swizzle-selection,clustering{shape=SHAPE pair=true},"
    "pipelining{stages=2},warp-specialization"
)
SEQUENTIAL = "tiling{tile=64x64x64},tma-insertion,swizzle-selection"
GROUPED = ("order=grouped group=2", "order=grouped group=3", "order=grouped")
ORDERS = ("order=m", "order=n", *GROUPED, "order=hilbert")


@pytest.mark.sweep(6)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ctas", [1, 3, 20, 500])
def test_every_order_with_any_number_of_ctas(check_matmul, order, ctas):
    spec = MatmulSpec(300, 122, 72)  # 5 x 4 tiles: neither group divides them
    text = f"{ROLES},persistence{{{order} ctas={ctas}}}"
    compiled, _ = check_matmul(spec, pipeline=text, seed=ctas)
    assert compiled.manifest["grid"] == [min(ctas, 20), 1, 1]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_with_launch_control(check_matmul, order):
    text = f"{ROLES},persistence{{scheduler=clc {order}}}"
    compiled, _ = check_matmul(MatmulSpec(300, 122, 72), pipeline=text, seed=7)
    assert compiled.manifest["grid"] == [5, 4, 1]


@pytest.mark.array(
    1, ctas=[1, 5, 30], head=["tiling{tile=64x64x64}", SEQUENTIAL, f"{SEQUENTIAL},epilogue-staging"]
)
def test_one_program_can_loop_over_tiles_too(check_matmul, head, ctas):
    spec = MatmulSpec(136, 130, 72, a_major="m")
    check_matmul(spec, pipeline=f"{head},persistence{{ctas={ctas}}}")


@pytest.mark.sweep(8)
@pytest.mark.parametrize("shape", ["2x1", "2x2", "4x1", "4x2"])
@pytest.mark.parametrize("scheduler", ["static ctas=8", "static", "clc"])
def test_clusters_take_tiles_together(check_matmul, shape, scheduler):
    text = f"{PAIRS.replace('SHAPE', shape)},persistence{{scheduler={scheduler}}}"
    check_matmul(MatmulSpec(520, 72, 72), pipeline=text, seed=2)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_launch_control_with_claims_ahead(check_matmul, depth, seed):
    text = f"{PAIRS.replace('SHAPE', '2x1')},persistence{{scheduler=clc depth={depth}}}"
    check_matmul(MatmulSpec(392, 72, 72, b_major="n"), pipeline=text, seed=seed)


@pytest.mark.sweep(6)
@pytest.mark.array(
    shape=[(1, 8, 8), (20, 24, 40), (63, 17, 64), (65, 8, 16)],
    scheduler=["static", "clc"],
    head=[ROLES, PAIRS.replace("SHAPE", "2x1")],
)
def test_less_than_one_tile(check_matmul, shape, scheduler, head):
    spec = MatmulSpec(*shape, c_dtype="f32")
    check_matmul(spec, pipeline=f"{head},persistence{{scheduler={scheduler}}}")


def test_two_accumulators_where_tensor_memory_has_room(check_matmul):
    for tile, columns in (("128x256x16", 512), ("256x256x16", 512), ("128x64x16", 128)):
        text = ROLES.replace("64x32x64", tile) + ",persistence{ctas=2}"
        compiled, _ = check_matmul(MatmulSpec(136, 264, 16), pipeline=text)
        assert compiled.manifest["schedule"]["tmem_columns"] == columns
