"""Rows that start anywhere in 16 bytes: threads load aligned units and shift them in registers."""

import itertools

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

TARGETS = ("sm_90a", "sm_100a")
TMA = "tiling{tile=TILE},tma-insertion,swizzle-selection"
KINDS = {
    "synchronous": "tiling{tile=TILE}",
    "one-slot": "tiling{tile=TILE},tma-insertion",
    "roles": f"{TMA},pipelining{{stages=3}},warp-specialization",
    "split": f"{TMA},split-k{{parts=2}},pipelining{{stages=2}},warp-specialization",
    "persistent": f"{TMA},pipelining{{stages=2}},warp-specialization,persistence{{ctas=3}}",
}
LAYOUTS = [(a, b) for a in "km" for b in "kn"]


@pytest.mark.sweep(2)
@pytest.mark.array(
    1,
    kind=KINDS,
    shape=[(131, 71, 197), (128, 64, 65), (65, 129, 63), (9, 17, 321)],
    target=TARGETS,
)
def test_every_kind_of_kernel(check_matmul, target, kind, shape):
    pipeline = KINDS[kind].replace("TILE", "64x64x64")
    compiled, _ = check_matmul(MatmulSpec(*shape), pipeline=pipeline, target=target)
    assert "shf.r" in compiled.ptx


@pytest.mark.sweep(2)
@pytest.mark.array(
    1, majors=LAYOUTS, place=[*itertools.product(["synchronous", "roles"], TARGETS[::-1])]
)
def test_every_layout(check_matmul, place, majors):
    (kind, target), (a_major, b_major) = place, majors
    spec = MatmulSpec(69, 71, 135, "f16", "f16", "f32", a_major=a_major, b_major=b_major)
    pipeline = KINDS[kind].replace("TILE", "64x64x64")
    compiled, _ = check_matmul(spec, pipeline=pipeline, target=target, seed=1)
    assert "shf.r" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["one-slot", "roles", "split"])
def test_beside_an_operand_that_tma_loads(check_matmul, target, kind):
    spec = MatmulSpec(69, 136, 199, b_major="n")
    pipeline = KINDS[kind].replace("TILE", "64x64x64")
    compiled, _ = check_matmul(spec, pipeline=pipeline, target=target, seed=5)
    assert "shf.r" in compiled.ptx and "cp.async.bulk.tensor" in compiled.ptx


@pytest.mark.sweep(6)
@pytest.mark.array(1, k=[9, 11, 15, 17, 63, 65, 127], size=[(2, 3), (64, 65), (129, 31)])
def test_the_end_of_the_tensor_wherever_it_lies(check_matmul, size, k):
    """Both tensors end somewhere else in 16 bytes; a load beyond would stop the emulator."""
    pipeline = KINDS["roles"].replace("TILE", "64x64x64")
    check_matmul(MatmulSpec(*size, k), pipeline=pipeline, target="sm_90a", seed=2)


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    tile=["64x24x64", "128x176x32", "256x32x32", "192x64x32", "64x64x128"],
    more=[2, 3],
)
def test_tiles_of_every_number_of_rows_and_warpgroups(check_matmul, tile, more):
    pipeline = KINDS["roles"].replace("TILE", tile).replace("stages=3", "stages=2")
    m, n, _ = map(int, tile.split("x"))
    check_matmul(MatmulSpec(m + 2, n + more, 37), pipeline=pipeline, target="sm_90a", seed=3)


@pytest.mark.sweep(64)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "types", [("e4m3", "e5m2", "bf16", "f32"), ("s8", "u8", "s32", "s32")], ids=["e4m3", "s8"]
)
@pytest.mark.parametrize("k", [129, 258, 301])
@pytest.mark.parametrize("kind", ["one-slot", "roles", "split"])
def test_bytes(check_matmul, target, types, k, kind):
    pipeline = KINDS[kind].replace("TILE", "64x64x64")
    compiled, _ = check_matmul(MatmulSpec(70, 90, k, *types), pipeline=pipeline, target=target)
    assert "shf.r" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
def test_every_swizzle(check_matmul, swizzle):
    head = f"tiling{{tile=64x64x64}},tma-insertion,swizzle-selection{{force={swizzle}}}"
    pipeline = f"{head},pipelining{{stages=2}},warp-specialization"
    check_matmul(MatmulSpec(61, 70, 133), pipeline=pipeline, target="sm_90a", seed=4)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", TARGETS)
def test_rows_shorter_than_a_unit_are_loaded_by_element(check_matmul, target):
    pipeline = KINDS["roles"].replace("TILE", "64x64x64")
    compiled, _ = check_matmul(MatmulSpec(70, 9, 7), pipeline=pipeline, target=target)
    assert "shf.r.wrap" not in compiled.ptx
