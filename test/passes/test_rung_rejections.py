"""What the passes after swizzle-selection refuse, one row each, whole message compared."""

import pytest
from refused_pipelines import ROLES, TMA, message_of, tile

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

NO_PIPE = (
    "clustering: an operand comes through no pipe, and only its own CTA waits for it; drop "
    "clustering"
)
BY_THEMSELVES = (
    "clustering: threads multiply what they copied themselves, and other CTAs have no part in it; "
    "drop clustering"
)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            f"{TMA},clustering{{shape=3x1 pair=true}}",
            "tile.mma: clustering: 2-CTA MMAs need an even cluster M, got 3x1",
        ),
        (
            f"{TMA},clustering{{shape=1x2 pair=true}}",
            "tile.mma: clustering: 2-CTA MMAs need an even cluster M, got 1x2",
        ),
        (
            f"{tile('64x48x64')},clustering{{shape=2x1 pair=true}}",
            "tile.mma: clustering: a pair needs N a multiple of 32, got 48; drop pair=true",
        ),
        (
            f"{tile('64x208x64')},clustering{{pair=true}}",
            "tile.mma: clustering: a pair needs N a multiple of 32, got 208; drop pair=true",
        ),
        (
            f"{tile('192x64x64')},clustering{{pair=true}}",
            "tile.mma: clustering: a pair needs 64, 128 or 256 rows a CTA, got 192; drop pair=true",
        ),
        (
            f"{tile('64x64x64')},epilogue-staging,clustering{{pair=true}}",
            "tile.mma: clustering: a staged epilogue of a pair needs 128 rows a CTA, got 64; "
            "drop pair=true",
        ),
        (
            f"{TMA},clustering{{shape=17x1}}",
            "tile.kernel: clustering: a cluster of sm_100a has at most 16 CTAs, got 17x1 = 17; "
            "use a smaller shape",
        ),
        (
            f"{TMA},clustering{{shape=6x3}}",
            "tile.kernel: clustering: a cluster of sm_100a has at most 16 CTAs, got 6x3 = 18; "
            "use a smaller shape",
        ),
        ("tiling,clustering{shape=2x1}", f"tile.kernel: {NO_PIPE}"),
        ("tiling,clustering{pair=true}", f"tile.kernel: {NO_PIPE}"),
    ],
)
def test_clusters_that_no_mma_or_launch_can_have(pipeline, message):
    assert message_of(pipeline) == f"error: {message}"


@pytest.mark.parametrize(("target", "cluster"), [("sm_90a", [1, 1, 1]), ("sm_100a", [2, 1, 1])])
def test_left_to_itself_clustering_shares_no_copies_of_threads(target, cluster):
    """But pairs share the MMA, for which each CTA copies half of B."""
    options = {"pipeline": f"{TMA},clustering", "target": target, "until": "mlir"}
    compiled = compile_matmul(MatmulSpec(300, 520, 333), stop_after="clustering", **options)
    assert f"cluster = {cluster}" in compiled.mlir


def test_clusters_of_warps_that_multiply_what_they_copied():
    pipeline = "tiling{mma=mma.sync},copy-insertion,clustering{shape=2x1}"
    message = message_of(pipeline, MatmulSpec(300, 520, 260), "sm_90a")
    assert message == f"error: tile.kernel: {BY_THEMSELVES}"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            f"{TMA},pipelining{{stages=8}}",
            "pipe.create: pipelining: 8 stages of 32768 bytes are 262144 bytes, over the 231424 "
            "that sm_100a has left; use stages=7 or fewer",
        ),
        (
            f"{TMA},epilogue-staging,pipelining{{stages=7}}",
            "pipe.create: pipelining: 7 stages of 32768 bytes are 229376 bytes, over the 198656 "
            "that sm_100a has left; use stages=6 or fewer",
        ),
        (
            f"{TMA},clustering{{pair=true}},pipelining{{stages=10}}",
            "pipe.create: pipelining: 10 stages of 24576 bytes are 245760 bytes, over the 231424 "
            "that sm_100a has left; use stages=9 or fewer",
        ),
        (
            f"{TMA},pipelining{{stages=7}},epilogue-staging",
            "tile.store: epilogue-staging: buffers need 32768 bytes, over the 2048 that are left; "
            "run it before pipelining, or give pipelining fewer stages",
        ),
        (
            f"{TMA},epilogue-staging{{columns=24}}",
            "tile.store: epilogue-staging: columns must divide the tile's 128 and be 16, 32, 64 or "
            "128 bytes, got 24 columns of 2 bytes",
        ),
        (
            f"{TMA},epilogue-staging{{columns=128}}",
            "tile.store: epilogue-staging: columns must divide the tile's 128 and be 16, 32, 64 or "
            "128 bytes, got 128 columns of 2 bytes",
        ),
        (
            f"{tile('128x80x64')},epilogue-staging{{columns=32}}",
            "tile.store: epilogue-staging: columns must divide the tile's 80 and be 16, 32, 64 or "
            "128 bytes, got 32 columns of 2 bytes",
        ),
        (
            f"{ROLES},persistence{{depth=3}}",
            "tile.kernel: persistence: depth is for scheduler=clc, got scheduler=static",
        ),
        (
            f"{ROLES},persistence{{scheduler=clc ctas=4}}",
            "tile.kernel: persistence: ctas is for scheduler=static, got scheduler=clc",
        ),
        (
            f"{ROLES},persistence{{order=hilbert group=8}}",
            "tile.kernel: persistence: group is for order=grouped, got order=hilbert",
        ),
        (
            f"{tile('128x80x64')},epilogue-staging{{columns=8 write=matrices}}",
            "tile.store: epilogue-staging: write=matrices needs 16-bit elements and 16, 32 or 64 "
            "columns, got 8 columns of 2 bytes; use write=rows",
        ),
        (
            f"{TMA},persistence{{scheduler=clc}}",
            "tile.kernel: persistence: scheduler=clc needs a role that asks for tiles; "
            "run warp-specialization first",
        ),
    ],
)
def test_sizes_and_options_that_cannot_hold_together(pipeline, message):
    assert message_of(pipeline) == f"error: {message}"


def test_rows_of_a_piece_without_a_swizzle_are_an_odd_number_of_units():
    pipeline = f"{tile('128x96x64')},epilogue-staging{{columns=48}}"
    assert message_of(pipeline, target="sm_90a") == (
        "error: tile.store: epilogue-staging: columns must divide the tile's 96 and be 16, 32, 64 "
        "or 128 bytes or an odd multiple of 16 in whole 8 columns, got 48 columns of 2 bytes"
    )


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "tiling,warp-specialization",
            "tile.load: warp-specialization: operands must come through a pipe; "
            "run tma-insertion first",
        ),
        (
            "tiling,pipelining",
            "tile.kernel: pipelining: operands must come through a pipe; run tma-insertion first",
        ),
        (
            f"{TMA},persistence,warp-specialization",
            "tile.kernel: warp-specialization: tiles are handed out already; "
            "run it before persistence",
        ),
        (
            f"{TMA},persistence,clustering",
            "tile.kernel: clustering: tiles are handed out already; run it before persistence",
        ),
        (
            f"{ROLES},persistence{{scheduler=clc}},clustering{{shape=2x1}}",
            "tile.kernel: clustering: tiles are handed out already; run it before persistence",
        ),
        (
            f"{tile('64x64x64')},clustering{{pair=true}},epilogue-staging",
            "tile.pair_mma: epilogue-staging: a staged epilogue of a pair needs 128 rows a CTA, "
            "got 64",
        ),
        (
            "tiling,lower-to-nvvm,tma-insertion",
            "pipeline: tma-insertion must come before lower-to-nvvm, which begins the lowering, "
            "got it after; exchange them",
        ),
        (
            "tiling,assign-threads,pipelining",
            "pipeline: pipelining must come before assign-threads, which begins the lowering, "
            "got it after; exchange them",
        ),
        (
            "tiling,normalize",
            "tile.kernel: normalize: takes linalg, got a kernel; run it once, first",
        ),
    ],
)
def test_passes_in_an_order_that_cannot_be(pipeline, message):
    assert message_of(pipeline) == f"error: {message}"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            f"{TMA},tma-insertion",
            "tile.kernel: tma-insertion: operands come through a pipe already; run it once",
        ),
        (
            f"{TMA},epilogue-staging,epilogue-staging",
            "tile.kernel: epilogue-staging: stores are staged already; run it once",
        ),
        (
            f"{TMA},clustering{{shape=2x1}},clustering",
            "tile.kernel: clustering: the kernel has clusters already; run it once",
        ),
        (
            f"{TMA},pipelining{{stages=2}},pipelining",
            "pipe.create: pipelining: the ring has stages already; run it once",
        ),
        (
            f"{ROLES},warp-specialization",
            "tile.kernel: warp-specialization: the program has roles already; run it once",
        ),
        (
            f"{TMA},persistence,persistence",
            "tile.kernel: persistence: the program loops over tiles already; run it once",
        ),
        (
            f"{ROLES},persistence{{scheduler=clc}},persistence",
            "tile.kernel: persistence: the program loops over tiles already; run it once",
        ),
        (
            "tiling,lower-to-nvvm,lower-to-nvvm",
            "lower-to-nvvm: the module is lowered already; run it once",
        ),
    ],
)
def test_passes_that_are_run_twice(pipeline, message):
    assert message_of(pipeline) == f"error: {message}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "epilogue-staging{columns=0}",
            "option columns must be auto or a number of columns, got '0'",
        ),
        (
            "epilogue-staging{buffers=no}",
            "option buffers must be auto or a number of pieces under way at once, got 'no'",
        ),
        ("epilogue-staging{write=all}", "option write must be auto, rows or matrices, got 'all'"),
        (
            "clustering{shape=0x1}",
            "option shape must be auto or CTAs along M and N, as 2x1, got '0x1'",
        ),
        ("clustering{shape=2}", "option shape must be auto or CTAs along M and N, as 2x1, got '2'"),
        ("clustering{pair=yes}", "option pair must be auto, true or false, got 'yes'"),
        ("pipelining{stages=0}", "option stages must be auto or a number of slots, got '0'"),
        ("pipelining{stages=+2}", "option stages must be auto or a number of slots, got '+2'"),
        ("pipelining{stages=1_0}", "option stages must be auto or a number of slots, got '1_0'"),
        (
            "pipelining{stages=\u0663}",
            "option stages must be auto or a number of slots, got '\u0663'",
        ),
        ("split-k{parts=+2}", "option parts must be a number of CTAs that share a tile, got '+2'"),
        (
            "clustering{shape=+2x1}",
            "option shape must be auto or CTAs along M and N, as 2x1, got '+2x1'",
        ),
        ("tiling{group=1_0}", "option group must be auto or a number of tiles along M, got '1_0'"),
        (
            "tiling{threads=1_28}",
            "option threads must be auto or whole warps up to 1024, got '1_28'",
        ),
        ("pipelining{depth=2}", "unknown option 'depth'; it takes stages"),
        ("warp-specialization{warps=2}", "unknown option 'warps'; it takes none"),
        ("persistence{scheduler=dynamic}", "option scheduler must be static or clc, got 'dynamic'"),
        ("persistence{order=z}", "option order must be m, n, grouped or hilbert, got 'z'"),
        ("tiling{order=z}", "option order must be m, n, grouped or hilbert, got 'z'"),
        ("persistence{group=0}", "option group must be auto or a number of tiles along M, got '0'"),
        (
            "persistence{depth=-1}",
            "option depth must be auto or a number of claims under way at once, got '-1'",
        ),
        ("persistence{ctas=0}", "option ctas must be auto or a number of CTAs, got '0'"),
        ("lower-to-nvvm{pdl=1}", "option pdl must be auto, true, false or early, got '1'"),
    ],
)
def test_option_values_that_cannot_be_read(call, message):
    name = call.partition("{")[0]
    assert message_of(f"{TMA},{call}") == f"error: {name}: {message}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("epilogue-staging{ahead=2}", "ahead is for operands as large as C"),
        ("epilogue-staging{vectors=ahead}", "vectors is for operands with an element a column"),
        ("epilogue-staging{vectors=registers}", "vectors is for operands with an element a column"),
        ("expand-loops{early=2}", "early needs an agent that loads tiles by TMA"),
    ],
)
def test_options_that_nothing_in_the_kernel_reads(call, message):
    """An epilogue of no operands, and a kernel of one program."""
    name = call.partition("{")[0]
    found = message_of(f"{TMA},{call}")
    assert f"tile.kernel: {name}: {message}" in found and "leave " in found


@pytest.mark.parametrize("option", ["ahead=2", "vectors=ahead", "by=warpgroup", "write=matrices"])
def test_options_that_no_c_of_blocks_has_a_use_for(option):
    spec = MatmulSpec(128, 128, 128, "bf16", "bf16", "mxfp8")
    with pytest.raises(CompileError, match="is for a C without block scales, got"):
        compile_matmul(spec, pipeline=f"{TMA},epilogue-staging{{{option}}}")


def test_pieces_that_threads_store_are_stored_together():
    """A row of 124 elements is no whole number of units of 16 bytes, which TMA would store."""
    spec, passes = MatmulSpec(128, 124, 64), "tiling{tile=128x128x64 mma=mma.sync},copy-insertion"
    with pytest.raises(
        CompileError, match="are stored by all of them, got by=warpgroup; use by=team"
    ):
        compile_matmul(spec, pipeline=f"{passes},epilogue-staging{{by=warpgroup}}")
