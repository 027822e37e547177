"""Kernels of mma.sync: every type and layout, from fragments that warps load by themselves."""

import pytest

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

pytestmark = pytest.mark.pairwise

TYPES = {
    "f16": ("f16", "f16", "f16"),
    "bf16": ("bf16", "bf16", "f32"),
    "tf32": ("tf32", "tf32", "f32"),
    "s8": ("s8", "s8", "s32", "s32"),
    "u8": ("u8", "s8", "s32", "s32"),
    "e4m3": ("e4m3", "e5m2", "f16"),
}
SHAPES = {"f16": "m16n8k16", "bf16": "m16n8k16", "tf32": "m16n8k8"}
SPANS = {"none": 16, "32B": 32, "64B": 64, "128B": 128}
COPIES = "tiling{tile=TILE},copy-insertion,swizzle-selection,pipelining{stages=STAGES}"


def counted(spec, pipeline):
    """What the emulator counts of a kernel for sm_80."""
    bundle = as_bundle(compile_matmul(spec, target="sm_80", pipeline=pipeline))
    device = open_device("emulator")
    report = device.launch(bundle, make_tensors(bundle.manifest, 0), 0, profile=True)
    return report.profile.totals()


def target_for(dtype):
    return "sm_89" if dtype == "e4m3" else "sm_80"


@pytest.mark.sweep
@pytest.mark.array(dtype=tuple(TYPES), swizzle=tuple(SPANS), a_major="km", b_major="kn")
def test_every_type_is_read_from_all_eight_layouts(check_matmul, dtype, swizzle, a_major, b_major):
    element_bytes = {"f16": 2, "bf16": 2, "tf32": 4}.get(dtype, 1)
    span = SPANS[swizzle] // element_bytes
    m, n, k = max(span, 32), max(span, 16), max(span, 32 // element_bytes)
    spec = MatmulSpec(m - 3, n, k + 8, *TYPES[dtype], a_major=a_major, b_major=b_major)
    text = f"tiling{{tile={m}x{n}x{k}}},swizzle-selection{{force={swizzle}}}"
    compiled, _ = check_matmul(spec, target=target_for(dtype), pipeline=text)
    assert f"mma.sync.aligned.{SHAPES.get(dtype, 'm16n8k32')}" in compiled.ptx
    by_matrices = "k" in (a_major, b_major) or element_bytes == 2
    assert ("ldmatrix" in compiled.ptx) == by_matrices
    by_columns = element_bytes == 2 and bool({a_major, b_major} & {"m", "n"})
    assert (".trans" in compiled.ptx) == by_columns


@pytest.mark.sweep(8)
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("k_tiles", [1, 2, 3, 5])
def test_a_ring_of_any_depth_is_filled_and_read_in_turn(check_matmul, stages, k_tiles):
    text = COPIES.replace("TILE", "32x32x16").replace("STAGES", str(stages))
    spec = MatmulSpec(40, 32, 16 * k_tiles)
    compiled, _ = check_matmul(spec, target="sm_80", pipeline=text, seed=stages)
    assert "cp.async" in compiled.ptx
    assert "mbarrier" not in compiled.ptx
    assert compiled.manifest["schedule"]["stages"] == stages


@pytest.mark.sweep(4)
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("shape", [(72, 40, 33), (65, 34, 24)])
def test_persistent_ctas_reuse_the_ring_for_the_next_tile(check_matmul, stages, shape):
    text = COPIES.replace("TILE", "32x32x16").replace("STAGES", str(stages))
    check_matmul(MatmulSpec(*shape), target="sm_80", pipeline=f"{text},persistence{{ctas=2}}")


@pytest.mark.sweep(8)
@pytest.mark.parametrize("grid", ["1x1", "1x2", "2x2", "4x1", "2x4"])
def test_any_grid_of_warps_shares_a_tile(check_matmul, grid):
    text = f"tiling{{tile=64x32x24 warps={grid}}},copy-insertion"
    compiled, _ = check_matmul(MatmulSpec(64, 32, 48, c_dtype="f32"), target="sm_86", pipeline=text)
    assert {"m16n8k16", "m16n8k8"} <= set(compiled.ptx.replace(".", " ").split())


@pytest.mark.parametrize("depth", [4, 12])
def test_what_is_left_of_a_tf32_tile_is_multiplied_four_of_k_at_a_time(check_matmul, depth):
    text = f"tiling{{tile=32x16x{depth}}},copy-insertion,swizzle-selection"
    spec = MatmulSpec(48, 16, 20, *TYPES["tf32"])
    compiled, _ = check_matmul(spec, target="sm_80", pipeline=text)
    assert "m16n8k4.row.col.f32.tf32.tf32.f32" in compiled.ptx
    assert ("m16n8k8" in compiled.ptx) == (depth > 8)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_chips_with_other_mmas_multiply_by_mma_sync_where_it_is_asked_for(check_matmul, target):
    text = "tiling{tile=32x32x32 mma=mma.sync},copy-insertion,swizzle-selection,pipelining"
    compiled, _ = check_matmul(MatmulSpec(48, 32, 64), target=target, pipeline=text)
    assert "mma.sync" in compiled.ptx


ROLES = (
    "tiling{tile=32x64x32 mma=mma.sync},tma-insertion,swizzle-selection,STAGING"
    "pipelining{stages=3},warp-specialization,persistence{scheduler=static ctas=2}"
)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ["sm_120a", "sm_90a"])
@pytest.mark.parametrize(
    "staging", ["", "epilogue-staging{write=matrices},", "epilogue-staging{columns=32 write=rows},"]
)
def test_roles_hand_tma_tiles_to_warps_that_multiply(check_matmul, target, staging):
    text = ROLES.replace("STAGING", staging)
    compiled, _ = check_matmul(MatmulSpec(40, 136, 96), target=target, pipeline=text)
    assert "cp.async.bulk.tensor" in compiled.ptx
    assert ("stmatrix" in compiled.ptx) == ("matrices" in staging)


STAGED = (
    "tiling{tile=64x64x16 warps=2x2 order=ORDER},copy-insertion,swizzle-selection,"
    "epilogue-staging{BUFFERS},pipelining{stages=2}"
)


@pytest.mark.sweep
@pytest.mark.parametrize("c_dtype", ["bf16", "f32"])
@pytest.mark.parametrize("n", [104, 102, 101])
@pytest.mark.parametrize("buffers", ["", "columns=16 buffers=3"])
@pytest.mark.parametrize("order", ["m", "grouped group=2"])
def test_threads_store_staged_pieces_of_any_rows(check_matmul, c_dtype, n, buffers, order):
    text = STAGED.replace("BUFFERS", buffers).replace("ORDER", order)
    spec = MatmulSpec(136, n, 16, c_dtype=c_dtype)
    compiled, _ = check_matmul(spec, target="sm_80", pipeline=text, seed=n)
    row_bytes = n * (2 if c_dtype == "bf16" else 4)
    assert ("st.shared" in compiled.ptx) == (n % 2 == 0)  # else a pair is in two rows
    assert ("st.global.v4.b32" in compiled.ptx) == (row_bytes % 16 == 0)


def test_persistent_ctas_stage_their_next_tile_once_the_last_is_stored(check_matmul):
    text = f"{STAGED.replace('BUFFERS', '').replace('ORDER', 'm')},persistence{{ctas=2}}"
    check_matmul(MatmulSpec(72, 136, 33), target="sm_80", pipeline=text, seed=3)


def test_staged_stores_move_whole_sectors_and_no_bank_is_asked_twice():
    ladder = {}
    for staging in ("", "epilogue-staging,"):
        text = STAGED.replace("epilogue-staging{BUFFERS},", staging).replace("ORDER", "m")
        ladder[staging] = counted(MatmulSpec(64, 64, 16), text)
    before, after = ladder.values()
    assert after.conflicts == before.conflicts == 0
    reads = 2 * 64 * 16 * 2
    written = 64 * 64 * 2
    assert after.sectors * 32 == reads + written
    assert before.sectors * 32 == reads + 2 * written  # 16 of a sector's 32 bytes a request


DEFAULT_PASSES = (
    *("tiling", "tma-insertion", "swizzle-selection"),
    *("epilogue-staging", "pipelining", "warp-specialization"),
)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("stop_after", DEFAULT_PASSES)
def test_every_prefix_of_the_default_of_sm_120a_multiplies(check_matmul, stop_after):
    spec = MatmulSpec(40, 72, 72)
    compiled, _ = check_matmul(spec, target="sm_120a", stop_after=stop_after, seed=1)
    assert "mma.sync" in compiled.ptx
    assert ("cp.async.bulk.tensor" in compiled.ptx) == (stop_after != "tiling")


def test_clusters_multicast_to_warps_that_multiply(check_matmul):
    text = ROLES.replace("STAGING", "clustering{shape=2x1},")
    compiled, _ = check_matmul(MatmulSpec(128, 64, 96), target="sm_120a", pipeline=text)
    assert "multicast::cluster" in compiled.ptx
