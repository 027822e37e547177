"""What the passes after swizzle-selection refuse, one row each, whole message compared."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

TMA = "tiling,tma-insertion,swizzle-selection"
ROLES = f"{TMA},warp-specialization"
NO_PIPE = (
    "clustering: an operand comes through no pipe, and only its own CTA waits for it; drop "
    "clustering"
)
BY_THEMSELVES = (
    "clustering: threads multiply what they copied themselves, and other CTAs have no part in it; "
    "drop clustering"
)


def tile(text):
    return TMA.replace("tiling", f"tiling{{tile={text}}}")


def message_of(pipeline, spec=None, target="sm_100a"):
    with pytest.raises(CompileError) as caught:
        spec = spec or MatmulSpec(300, 520, 264)
        compile_matmul(spec, pipeline=pipeline, target=target, until="ptx")
    return str(caught.value)


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
            f"{tile('128x48x64')},clustering{{shape=2x1 pair=true}}",
            "tile.mma: clustering: a pair needs N a multiple of 32, got 48; drop pair=true",
        ),
        (
            f"{tile('128x208x64')},clustering{{pair=true}}",
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
            "got it behind; exchange them",
        ),
        (
            "tiling,assign-threads,pipelining",
            "pipeline: pipelining must come before assign-threads, which begins the lowering, "
            "got it behind; exchange them",
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


@pytest.mark.parametrize("option", ["ahead=2", "vectors=ahead"])
def test_options_of_other_operands_with_a_c_of_blocks(option):
    spec = MatmulSpec(128, 128, 128, "bf16", "bf16", "mxfp8")
    with pytest.raises(CompileError, match="is for a C without block scales, got"):
        compile_matmul(spec, pipeline=f"{TMA},epilogue-staging{{{option}}}")


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "tiling{tile=256x256x64}",
            "tile.matmul: tile 256x256 needs more than the accumulator registers of a thread (128 "
            "in 1, 160 in 2, 96 in 3 warpgroups) of sm_90a; make the tile smaller",
        ),
        (
            "tiling{tile=192x200x64}",
            "tile.matmul: tile 192x200 needs more than the accumulator registers of a thread (128 "
            "in 1, 160 in 2, 96 in 3 warpgroups) of sm_90a; make the tile smaller",
        ),
        (
            f"{tile('128x256x64')},pipelining{{stages=5}}",
            "pipe.create: pipelining: 5 stages of 49152 bytes are 245760 bytes, over the 231424 "
            "that sm_90a has left; use stages=4 or fewer",
        ),
        (
            f"{TMA},clustering{{shape=2x1 pair=true}}",
            "tile.mma: clustering: sm_90a has no 2-CTA MMAs; drop pair=true",
        ),
        (
            f"{ROLES},persistence{{scheduler=clc}}",
            "tile.kernel: persistence: sm_90a has no cluster launch control, got scheduler=clc; "
            "use scheduler=static",
        ),
    ],
)
def test_what_a_target_lacks_is_refused_by_its_name(pipeline, message):
    assert message_of(pipeline, target="sm_90a") == f"error: {message}"


SPLIT = f"{TMA},split-k"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (f"{SPLIT},split-k", "tile.kernel: split-k: K is split already; run it once"),
        (
            f"{SPLIT}{{over=grid}},split-k",
            "tile.kernel: split-k: K is split already; run it once",
        ),
        (
            f"{SPLIT}{{parts=17 over=grid}}",
            "tile.kernel: split-k: each part over the grid must have K steps, got 5 in 17 parts; "
            "take 5",
        ),
        (
            f"{SPLIT}{{over=grid}},persistence",
            "tile.kernel: persistence: the CTAs along z share a tile; drop split-k",
        ),
        (
            f"{TMA},clustering{{shape=1x2}},split-k",
            "tile.kernel: split-k: CTAs of a cluster load together; drop clustering",
        ),
        (
            f"{SPLIT},clustering{{shape=2x1}}",
            "tile.kernel: clustering: where K is split the tiles must be whole clusters, got "
            "3x5 tiles and 2x1; take a shape that divides them",
        ),
        (
            f"{SPLIT}{{parts=6}},clustering{{shape=3x1}}",
            "tile.kernel: clustering: a cluster of sm_100a has at most 16 CTAs, got 3x1 in 6 parts "
            "= 18; use a smaller shape",
        ),
        (
            f"{SPLIT},clustering{{shape=2x1 pair=true}}",
            "tile.mma: clustering: the parts of a split K are sums of lone CTAs; drop pair=true",
        ),
        (
            f"{TMA},persistence,split-k",
            "tile.kernel: split-k: tiles are handed out already; drop persistence",
        ),
        (
            f"{SPLIT},persistence",
            "tile.kernel: persistence: the CTAs of a cluster share a tile; drop split-k",
        ),
        (
            f"{ROLES},split-k",
            "tile.kernel: split-k: the program has roles already; run it before "
            "warp-specialization",
        ),
        (
            f"{TMA},epilogue-staging,split-k",
            "tile.kernel: split-k: threads store the sums, got a staged store; "
            "drop epilogue-staging",
        ),
        (
            f"{TMA},pipelining{{stages=2}},split-k",
            "tile.kernel: split-k: K must be one loop, got 3; run it before pipelining",
        ),
        (
            f"{SPLIT}{{parts=17}}",
            "tile.kernel: split-k: a cluster of sm_100a has at most 16 CTAs, got 1x1 in 17 parts "
            "= 17; take fewer parts",
        ),
        (
            f"{tile('256x256x64')},split-k",
            "tile.store: split-k: a part of the tile needs 262144 bytes, over the 165888 that are "
            "left; use a smaller tile",
        ),
    ],
)
def test_a_split_k_that_cannot_be(pipeline, message):
    assert message_of(pipeline) == f"error: {message}"


LOOP = f"{ROLES},persistence"
BY_TWO = LOOP.replace("tiling", "tiling{tile=128x256x32}")
THREE = LOOP.replace(",warp", ",epilogue-staging{columns=32 buffers=3},warp")


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            f"{TMA},persistence,ping-pong",
            "tile.kernel: ping-pong: needs a consumer and a load role; run warp-specialization "
            "first",
        ),
        (
            f"{ROLES},ping-pong",
            "pipe.role: ping-pong: needs a loop over tiles; run persistence first",
        ),
        (
            f"{LOOP},ping-pong,ping-pong",
            "tile.kernel: ping-pong: the program has two consumers already; run it once",
        ),
        (
            f"{BY_TWO},ping-pong",
            "tile.accumulator: ping-pong: each warpgroup holds a whole tile, 128x256 takes 2; use "
            "a smaller tile, as 128x128 or 64x256",
        ),
        (
            f"{THREE},ping-pong",
            "tile.staged_store: ping-pong: two consumers share the staging buffers, got 3; give "
            "epilogue-staging buffers=4",
        ),
        (
            f"{SPLIT},warp-specialization,ping-pong",
            "pipe.role: ping-pong: needs a loop over tiles; run persistence first",
        ),
    ],
)
def test_what_two_consumers_cannot_share(pipeline, message):
    assert message_of(pipeline, target="sm_90a") == f"error: {message}"


def test_two_consumers_are_for_accumulators_in_registers():
    assert message_of(f"{LOOP},ping-pong") == (
        "error: tile.kernel: ping-pong: sm_100a has accumulators in tensor memory, of which "
        "persistence takes two; drop ping-pong"
    )


COPIES = "tiling{tile=64x64x32},copy-insertion"
HAVE = "sm_100a, sm_90a or sm_120a"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "tiling,tma-insertion",
            f"tile.kernel: tma-insertion: sm_80 has no TMA, which {HAVE} have; use copy-insertion",
        ),
        (
            "tiling,pipelining",
            "tile.kernel: pipelining: operands must come through a pipe; run copy-insertion first",
        ),
        (
            "tiling{tile=8x8x4 mma=fma operands=global},copy-insertion",
            "tile.kernel: copy-insertion: operands must be loaded as tiles, got MMAs that read "
            "global memory themselves; tile without operands=global",
        ),
        (
            "tiling{tile=8x8x4 mma=fma operands=global},clustering{shape=2x1}",
            "tile.kernel: clustering: threads read operands from global memory as they multiply; "
            "drop clustering",
        ),
        (
            f"{COPIES},warp-specialization",
            "tile.kernel: warp-specialization: roles wait for each other at mbarriers, which "
            f"{HAVE} can, got sm_80; leave it out",
        ),
        (
            f"{COPIES},persistence{{scheduler=clc}}",
            "tile.kernel: persistence: sm_80 has no cluster launch control, got scheduler=clc; "
            "use scheduler=static",
        ),
        (
            f"{COPIES},split-k{{parts=2}}",
            "tile.kernel: split-k: a cluster of sm_80 has at most 1 CTA, got 1x1 in 2 parts = 2; "
            "take over=grid",
        ),
        (
            f"{COPIES},lower-to-nvvm{{pdl=true}}",
            f"sm.kernel: lower-to-nvvm: sm_80 has no griddepcontrol, which {HAVE} have; "
            "use pdl=false, not true",
        ),
        (
            f"{COPIES},epilogue-staging{{write=matrices}}",
            f"tile.store: epilogue-staging: stmatrix is for {HAVE}, got sm_80; use write=rows",
        ),
        (
            "tiling{tile=64x64x32 group=4}",
            "tile.matmul: tiling: group is for order=grouped, got order=m",
        ),
        (
            "tiling{tile=64x64x32 order=grouped},persistence",
            "tile.kernel: persistence: CTAs have an order already; leave out that of tiling",
        ),
        (
            "tiling{tile=64x64x32 warps=3x1}",
            "tile.matmul: tiling: each of up to 16 warps must have whole 16x8 of a 64x64 tile and "
            "up to 128 registers of sums, got 3x1 warps; leave out warps",
        ),
    ],
)
def test_what_a_chip_without_tma_and_clusters_cannot_do(pipeline, message):
    assert message_of(pipeline, target="sm_80") == f"error: {message}"


def test_a_type_that_the_chips_mma_does_not_take_names_chips_that_do():
    spec = MatmulSpec(64, 64, 64, "e4m3", "e4m3")
    expected = (
        "mma.sync of sm_86 takes no e4m3, which sm_100a, sm_90a, sm_89 or sm_120a take; "
        "compile for one of them, or convert A and B"
    )
    assert message_of("tiling", spec, "sm_86") == f"error: tile.matmul: tiling: {expected}"
