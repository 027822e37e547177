"""What a kernel may say of groups of rows, one row for each rule that it can break."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError


@pytest.fixture(scope="module")
def kernel():
    spec, pipeline = MatmulSpec(300, 40, 72, groups=3), "tiling{tile=128x64x64}"
    return compile_matmul(spec, pipeline=pipeline, stop_after="tiling", until="mlir").mlir


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "extent = 300 : i64",
            "extent = 299 : i64",
            "groups: must cut the 300 rows of c by offsets that the kernel takes, "
            "got 299; say how many rows c has",
        ),
        (
            "tile = 128 : i64",
            "tile = 64 : i64",
            "groups: 7 places by whole clusters of 1 must be among the 5 along M, got 1 together; "
            "launch more CTAs, or change together",
        ),
        (
            '"tile.group"(%i,',
            '"tile.group"(%j,',
            "tiles: must store to the M place of its tile, got another index; store there",
        ),
        (
            "(%a, %group#2, %group#3)",
            "(%a, %group#1, %group#3)",
            "groups: must take the rows of a tile.group, got others; take its results",
        ),
        (
            '"tile.matrix"(%b, %group#0)',
            '"tile.matrix"(%b, %group#1)',
            "groups: must take the group of a tile.group, got another index; take its first result",
        ),
    ],
)
def test_tiles_that_are_not_those_of_the_groups_are_refused(kernel, old, new, rule, tmp_path):
    assert old in kernel, kernel
    path = tmp_path / "edited.mlir"
    path.write_text(kernel.replace(old, new))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, pipeline="tma-insertion", until="mlir")
    assert rule in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "tile = 64 : i64",
            "tile = 32 : i64",
            "groups: 12 places by whole clusters of 1 must be among the 7 along N, got 1 together; "
            "launch more CTAs, or change together",
        ),
        (
            '"tile.group"(%j,',
            '"tile.group"(%i,',
            "tiles: must store to the N place of its tile, got another index; store there",
        ),
    ],
)
def test_tiles_of_exchanged_groups_lie_along_n(old, new, rule, tmp_path):
    spec, pipeline = MatmulSpec(300, 40, 72, groups=3), "tiling{tile=128x64x64 swap=true}"
    how = {"stop_after": "tiling", "until": "mlir", "target": "sm_90a"}
    kernel = compile_matmul(spec, pipeline=pipeline, **how).mlir
    assert old in kernel, kernel
    path = tmp_path / "edited.mlir"
    path.write_text(kernel.replace(old, new))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_90a", pipeline="tma-insertion", until="mlir")
    assert rule in str(refused.value)


STAGED = "tiling{tile=128x64x64},tma-insertion,swizzle-selection,epilogue-staging"
LOOPS = ",pipelining,warp-specialization,persistence{ctas=2 order=grouped group=3}"


def staged(stop, more=""):
    spec = MatmulSpec(300, 40, 72, groups=3, c_dtype="bf16")
    how = {"stop_after": stop, "until": "mlir"}
    return compile_matmul(spec, target="sm_90a", pipeline=STAGED + more, **how).mlir


def test_a_map_that_stores_rows_of_a_group_ends_with_them(tmp_path):
    text = staged("epilogue-staging")
    # Rows of 80 bytes: 2^30 of 80 and of 2^34 - 80 are 2^64.
    far, reach = 2**30, 2**31 - 2**16
    ragged = f"[40, {far}, {reach}, {reach}], [80, 80, {2**34 - 80}], [64, 128, 1, 1]"
    assert f'!tile.map<bf16, {ragged}, "128B">' in text
    path = tmp_path / "edited.mlir"
    path.write_text(text.replace(ragged, "[40, 300], [80], [64, 128]"))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_90a", pipeline="pipelining", until="mlir")
    rule = "views: a map that stores rows of a group must end with them, got dims [40, 300]; take"
    assert rule in str(refused.value)


def test_all_agents_find_groups_from_where_those_of_lanes_begin(tmp_path):
    text = staged("expand-loops", LOOPS)
    assert text.count('"tile.group_at"') == 2 and '"tile.group"' not in text
    assert text.count('"tile.group_starts"') == 1
    assert text.index('"tile.group_starts"') < text.index('"sm.warps"')
    assert text.count('"tile.group_place"') == 2 and '"tile.counted_place"' not in text
    along_n = staged("expand-loops", LOOPS.replace("order=grouped group=3", "order=n"))
    assert along_n.count('"tile.counted_place"') == 2 and '"tile.group_place"' not in along_n
    place = next(line for line in text.splitlines() if '"tile.group_place"' in line)
    path = tmp_path / "edited.mlir"
    path.write_text(text.replace(place, place.replace("tile = 128", "tile = 64")))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_90a", pipeline="pipes-to-barriers", until="mlir")
    assert "groups: all agents must cut tiles alike, got another way" in str(refused.value)


def test_one_lane_finds_no_group_alone(tmp_path):
    text = staged("assign-threads", LOOPS)
    group = next(line for line in text.splitlines() if '"tile.group"' in line)
    by_one = '"sm.run"() ({\n'
    assert text.count(by_one) == 1 and text.rindex('"tile.group"') < text.index(by_one)
    path = tmp_path / "edited.mlir"
    path.write_text(text.replace(by_one, by_one + group.replace("%group:", "%alone:") + "\n"))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_90a", pipeline="plan-memory", until="mlir")
    rule = "threads: the lanes of each warp must find a group together, got it where 'lane' runs"
    assert rule in str(refused.value)


@pytest.fixture(scope="module")
def groups_of_k():
    majors = {"a_major": "m", "b_major": "n", "group_axis": "k"}
    spec = MatmulSpec(64, 40, 300, groups=3, **majors)
    pipeline = "tiling{tile=64x64x64},tma-insertion,pipelining{stages=2},warp-specialization"
    how = {"stop_after": "warp-specialization", "until": "mlir"}
    return compile_matmul(spec, target="sm_90a", pipeline=pipeline, **how).mlir


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "extent = 300 : i64",
            "extent = 299 : i64",
            "depth: must cut the 300 along K into 3 groups by offsets of the kernel, got 299 into",
        ),
        (
            '"tile.group_depth"(%batch#0,',
            '"tile.group_depth"(%batch#1,',
            "depth: must take the batch of a tile.batch, got another index; take its result",
        ),
        (
            "#0, %group_depth#1)",
            "#1, %group_depth#1)",
            "depth: must take the part of a tile.group_depth, got another; take its result",
        ),
        (
            "most = 5 : i64",
            "most = 4 : i64",
            "depth: steps of 64 must cover the 300 along K, got 4 of 64; take more",
        ),
        (
            "least = 1 : i64",
            "least = 2 : i64",
            "depth: all agents must take as many steps, got others than the first; give them one",
        ),
    ],
)
def test_steps_that_are_not_those_of_the_groups_are_refused(groups_of_k, old, new, rule, tmp_path):
    assert old in groups_of_k, groups_of_k
    path = tmp_path / "edited.mlir"
    path.write_text(groups_of_k.replace(old, new, 1))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_90a", pipeline="persistence", until="mlir")
    assert rule in str(refused.value)


def test_roles_end_their_loops_over_k_with_the_group(groups_of_k):
    steps = [line for line in groups_of_k.splitlines() if '"tile.group_steps"' in line]
    assert len(steps) == 2
    assert all("least = 1 : i64, less = 0 : i64, most = 5 : i64" in line for line in steps)
