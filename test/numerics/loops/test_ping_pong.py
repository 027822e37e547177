"""Two consumers that alternate: right for any number of tiles, and of K steps beside the ring."""

import pytest
from shapes import a_few_tiles

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

STAGED = "epilogue-staging{columns=32 buffers=2},"


def ping_pong(tile="64x64x64", stages=3, ctas="2", before=STAGED, how="order=m"):
    return (
        f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,{before}pipelining{{stages={stages}}},"
        f"warp-specialization,persistence{{{how} ctas={ctas}}},ping-pong"
    )


@pytest.fixture
def check_hopper(check_matmul):
    """check_matmul for sm_90a; no warnings, and wgmma that ptxas did not serialize."""

    def check(source, pipeline, seed=0):
        compiled, report = check_matmul(source, target="sm_90a", pipeline=pipeline, seed=seed)
        assert not report.warnings
        assert not compiled.assembled.serialized
        assert [role["name"] for role in compiled.manifest["names"]["roles"]] == [
            "ping",
            "pong",
            "load",
        ]
        return compiled

    return check


@pytest.mark.sweep(12)
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("k_tiles", [1, 2, 3, 4, 5])
def test_skipped_slots_wrap_around_rings_of_every_depth(check_hopper, stages, k_tiles):
    spec = MatmulSpec(64 * 5, 32, 64 * k_tiles, "f16", "f16", "f32")
    check_hopper(spec, ping_pong("64x32x64", stages, ctas="1"), seed=k_tiles)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("ctas", [1, 2, 3, 6, 12])
def test_any_number_of_tiles_a_cta(check_hopper, ctas):
    spec = MatmulSpec(250, 150, 72)  # 4 x 3 tiles
    check_hopper(spec, ping_pong(ctas=ctas, how="order=hilbert"), seed=ctas)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("tile", ["128x64x32", "64x256x32", "192x40x64", "64x8x16"])
@pytest.mark.parametrize("before", ["", "epilogue-staging{columns=COLUMNS buffers=4},"])
def test_every_tile_that_a_warpgroup_holds(check_hopper, tile, before):
    columns = 8 * (int(tile.split("x")[1]) % 16 == 0) + 8
    spec = MatmulSpec(*a_few_tiles(tile), a_major="m", b_major="n", c_dtype="f32")
    check_hopper(spec, ping_pong(tile, before=before.replace("COLUMNS", str(columns))))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("shape", ["2x1", "1x2", "2x2"])
def test_clusters_multicast_to_both_consumers(check_hopper, shape):
    before = f"{STAGED}clustering{{shape={shape}}},"
    compiled = check_hopper(MatmulSpec(200, 136, 136), ping_pong(ctas="4", before=before), seed=3)
    assert "multicast::cluster" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.parametrize("k", [100, 203])
def test_operands_that_the_load_role_copies(check_hopper, k):
    compiled = check_hopper(MatmulSpec(136, 72, k), ping_pong(stages=4), seed=4)
    assert "copied by threads" in compiled.remarks[0]


@pytest.mark.parametrize("write", ["rows", "matrices"])
def test_both_ways_to_write_a_piece(check_hopper, write):
    before = f"epilogue-staging{{columns=16 buffers=6 write={write}}},"
    check_hopper(MatmulSpec(136, 104, 40), ping_pong("128x48x32", before=before), seed=5)


def test_a_second_consumer_without_tiles_is_remarked(check_hopper):
    compiled = check_hopper(MatmulSpec(128, 64, 136), ping_pong(ctas="2"))
    assert compiled.remarks[-1].endswith(
        "ping-pong: no CTA has a second tile, so that pong has none"
    )


@pytest.mark.sweep(12)
@pytest.mark.parametrize("seed", range(6))
def test_orders_of_events(check_hopper, seed):
    spec = MatmulSpec(200, 136, 200, a_major="m")
    check_hopper(spec, ping_pong("64x64x64", stages=4, how="order=grouped group=2"), seed=20 + seed)


def test_the_turn_is_handed_over_before_the_last_products_are_awaited(check_hopper):
    """In the PTX of each consumer: the arrival on the turn's barrier, then wgmma.wait_group 0."""
    compiled = check_hopper(MatmulSpec(256, 64, 320), ping_pong())
    barriers = {each["name"]: each for each in compiled.manifest["names"]["barriers"]}
    assert barriers["turns.full"]["count"] == barriers["turns.empty"]["count"] == 1
    lines = compiled.ptx.splitlines()
    waits = [at for at, line in enumerate(lines) if "wgmma.wait_group.sync.aligned 0" in line]
    for at in waits[::2]:  # before the release; the store waits once more
        before = next(
            line for line in reversed(lines[:at]) if "mbarrier.arrive" in line or "wgmma" in line
        )
        assert "mbarrier.arrive" in before


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "dtypes",
    [("tf32", "tf32", "f32", "f32"), ("e5m2", "e4m3", "bf16", "f32"), ("u8", "s8", "s32", "s32")],
    ids="-".join,
)
def test_operands_of_other_widths(check_hopper, dtypes):
    before = "epilogue-staging{columns=16 buffers=4},"
    check_hopper(MatmulSpec(136, 72, 80, *dtypes), ping_pong("64x64x32", before=before), seed=6)


WIDE = "mma=wgmma.mma_async+wide"


@pytest.mark.sweep(4)
@pytest.mark.parametrize("tile", ["128x192x32", "192x128x32", "128x168x32", "64x256x32"])
@pytest.mark.parametrize("before", ["", STAGED])
@pytest.mark.parametrize("swap", [False, True])
def test_each_consumer_may_hold_more_sums_than_a_warpgroup_does_elsewhere(
    check_hopper, tile, before, swap
):
    m, n, _ = map(int, tile.split("x"))
    spec = MatmulSpec(2 * n + 24, 2 * m + 8, 72) if swap else MatmulSpec(2 * m + 8, 2 * n + 24, 72)
    before = before.replace("32", "24" if n % 32 else "32")
    cluster = "clustering{shape=2x1 pair=false}," if swap else ""
    passes = f"{tile} {WIDE} swap={str(swap).lower()}"
    check_hopper(spec, ping_pong(passes, before=before + cluster))
