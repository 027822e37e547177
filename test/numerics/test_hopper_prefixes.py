"""Every prefix of the pipeline is a correct kernel for sm_90a too: wgmma, results in registers."""

from pathlib import Path

import pytest
from shapes import a_few_tiles

from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
TILES = ("64x64x64", "128x256x32", "192x144x64")  # for one, two and three warpgroups
OTHER_TILES = (
    *("128x64x32", "64x8x16", "192x40x64", "64x48x128"),
    *("256x160x64", "128x192x16"),
    "192x192x32",
)
BEGINNINGS = ("tiling", "swizzle-selection", "persistence")
RAGGED = [(1, 1, 1), (136, 264, 136), (77, 33, 51)]
# Where the kernel changes most; the others run with the default tile and random subsets.
KEY_PREFIXES = ("tiling", "swizzle-selection", "pipelining", "persistence")
INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture
def check_hopper(check_matmul):
    """check_matmul for sm_90a that refuses wgmma which ptxas had to serialize."""

    def check(source, **options):
        compiled, report = check_matmul(source, target="sm_90a", **options)
        assert "wgmma.mma_async" in compiled.ptx
        assert "tcgen05" not in compiled.ptx
        assert not compiled.assembled.serialized
        return compiled, report

    return check


def pipeline(tile, box="2d", force="widest"):
    """The default pipeline with options for the passes that place operands."""
    rest = DEFAULT_PIPELINE.partition("swizzle-selection")[2]
    return (
        f"tiling{{tile={tile}}},tma-insertion{{box={box}}},swizzle-selection{{force={force}}}{rest}"
    )


@pytest.mark.sweep(2)
@pytest.mark.array(tile=TILES, prefix=BEGINNINGS, a_major="km", b_major="kn")
def test_prefix_is_right_for_every_layout_and_tile(check_hopper, prefix, tile, a_major, b_major):
    spec = MatmulSpec(*a_few_tiles(tile), a_major=a_major, b_major=b_major, c_dtype="f32")
    check_hopper(spec, pipeline=pipeline(tile), stop_after=prefix)


@pytest.mark.sweep(4)
@pytest.mark.array(1, tile=OTHER_TILES, prefix=BEGINNINGS, majors=("kk", "mn", "mk", "kn"))
def test_other_tiles_are_right(check_hopper, prefix, tile, majors):
    spec = MatmulSpec(*a_few_tiles(tile), a_major=majors[0], b_major=majors[1], c_dtype="f32")
    check_hopper(spec, pipeline=pipeline(tile), stop_after=prefix)


@pytest.mark.sweep(8)
@pytest.mark.array(
    prefix=KEY_PREFIXES, tile=("128x128x64", "128x256x64"), a_major="km", b_major="kn"
)
def test_several_tiles_with_one_and_two_warpgroups(check_hopper, prefix, a_major, b_major, tile):
    spec = MatmulSpec(136, 264, 136, a_major=a_major, b_major=b_major)
    check_hopper(spec, pipeline=pipeline(tile), stop_after=prefix, seed=3)


@pytest.mark.sweep
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("shape", RAGGED)
def test_ragged_edges_are_filled_and_masked(check_hopper, prefix, shape):
    check_hopper(MatmulSpec(*shape), pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=1)


@pytest.mark.sweep
@pytest.mark.parametrize("prefix", ["pipelining", "persistence"])
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("k_tiles", [1, 2, 3, 7])
def test_slots_are_released_one_step_late_at_every_depth(check_hopper, prefix, stages, k_tiles):
    spec = MatmulSpec(72, 96, 64 * k_tiles, "f16", "f16", "f16")
    text = pipeline("64x96x64").replace("pipelining", f"pipelining{{stages={stages}}}")
    check_hopper(spec, pipeline=text, stop_after=prefix, seed=k_tiles)


@pytest.mark.sweep(8)
@pytest.mark.array(
    force=("none", "32B", "64B", "128B"), a_major="km", b_major="kn", box=("2d", "3d")
)
def test_every_swizzle_in_both_box_ranks(check_hopper, force, a_major, b_major, box):
    spec = MatmulSpec(72, 136, 144, a_major=a_major, b_major=b_major)
    text = pipeline("64x128x128", box, force)
    check_hopper(spec, pipeline=text, stop_after="swizzle-selection")


@pytest.mark.sweep(2)
@pytest.mark.array(1, tile=["64x64x64", "256x128x64"], force=["32B", "64B", "128B"])
def test_thread_copies_can_be_swizzled_too(check_hopper, force, tile):
    text = f"tiling{{tile={tile}}},swizzle-selection{{force={force}}}"
    check_hopper(MatmulSpec(100, 70, 90, a_major="m"), pipeline=text)


@pytest.mark.sweep(6)
@pytest.mark.array(
    n=(64, 68, 33), c_dtype=("bf16", "f16", "f32"), prefix=("swizzle-selection", "persistence")
)
def test_every_dtype_at_every_store_width(check_hopper, c_dtype, n, prefix):
    spec = MatmulSpec(70, n, 40, "f16", "f16", c_dtype)
    check_hopper(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("tile", ["64x64x64", "128x128x64"])
def test_rows_that_tma_cannot_address_are_copied_by_the_load_role(check_hopper, tile):
    spec = MatmulSpec(150, 72, 100, a_major="k", b_major="n")
    compiled, _ = check_hopper(spec, pipeline=pipeline(tile))
    assert "tma-insertion: a is copied by threads" in compiled.remarks[0]


@pytest.mark.sweep
@pytest.mark.array(1, prefix=PREFIXES, name=["bias_relu", "scale_bias_residual_swish"])
def test_epilogues_of_mlir_files_are_right(check_hopper, prefix, name):
    check_hopper(INPUTS / f"{name}.mlir", pipeline=DEFAULT_PIPELINE, stop_after=prefix)


@pytest.mark.sweep(6)
@pytest.mark.array(write=("rows", "matrices"), columns=(16, 32, 64), buffers=(1, 3))
def test_staged_pieces_of_every_width(check_hopper, write, columns, buffers):
    staging = f"epilogue-staging{{columns={columns} buffers={buffers} write={write}}}"
    text = pipeline("128x128x32").replace("epilogue-staging", staging)
    check_hopper(MatmulSpec(136, 136, 40), pipeline=text, seed=columns)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("tile", "options", "c_dtype"),
    [(tile, "columns=16", "bf16") for tile in ("128x144x32", "192x176x32", "256x112x32")]
    # an odd number of units of 16 bytes, of all rows or of each warpgroup's
    + [("128x168x32", "columns=56 write=rows", "bf16"), ("192x184x32", "columns=184", "f16")]
    + [("256x104x32", "columns=104 by=warpgroup", "f16"), ("128x200x32", "buffers=3", "bf16")]
    + [("128x176x32", "columns=176", "e4m3"), ("128x168x32", "", "f32")],
)
def test_pieces_make_up_any_tile(check_hopper, tile, options, c_dtype):
    text = pipeline(tile).replace("epilogue-staging", f"epilogue-staging{{{options}}}")
    compiled, _ = check_hopper(MatmulSpec(136, 208, 40, c_dtype=c_dtype), pipeline=text, seed=5)
    assert not compiled.remarks


@pytest.mark.sweep(32)
@pytest.mark.parametrize("shape", ["1x2", "2x1", "2x2", "4x1", "3x2"])
@pytest.mark.parametrize("tile", ["128x96x64", "128x64x32", "192x80x32"])
@pytest.mark.parametrize("last", ["pipelining", "persistence"])
def test_clusters_multicast_operands(check_hopper, shape, tile, last):
    text = pipeline(tile).replace("clustering", f"clustering{{shape={shape}}}")
    compiled, _ = check_hopper(MatmulSpec(264, 136, 136), pipeline=text, stop_after=last, seed=7)
    assert "multicast::cluster" in compiled.ptx


@pytest.mark.sweep
@pytest.mark.parametrize("order", ["m", "n", "grouped group=2", "hilbert"])
@pytest.mark.parametrize("ctas", [1, 4])
def test_tiles_in_every_order(check_hopper, order, ctas):
    last = f"persistence{{order={order} ctas={ctas}}}"
    text = pipeline("64x64x64").replace("persistence", last).replace("clustering,", "")
    check_hopper(MatmulSpec(136, 136, 72), pipeline=text, seed=ctas)


@pytest.mark.slow
@pytest.mark.sweep(32)
@pytest.mark.parametrize("tile", ["64x64x64", "256x64x64"])
@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_events_gives_the_same(check_hopper, tile, seed):
    check_hopper(MatmulSpec(136, 72, 264), pipeline=pipeline(tile), seed=seed)
