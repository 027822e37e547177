"""A and B exchanged: tiles whose rows run along N, and stores that transpose them."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.problem import Problem, exchanged
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.schedule.tile_extents import n_extents
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import find_target

TARGETS = ("sm_90a", "sm_100a")
HEAD = "tiling{{tile={tile} swap=true}},tma-insertion,swizzle-selection"
RING = "pipelining{stages=3},warp-specialization"
STAGED = "epilogue-staging{columns=8 buffers=2}"
ENDS = {
    "threads": "",
    "staged": f",{STAGED}",
    "roles": f",{STAGED},{RING}",
    "2x1": f",{STAGED},clustering{{shape=2x1 pair=false}},{RING}",
    "1x2": f",{STAGED},clustering{{shape=1x2 pair=false}},{RING}",
    "2x2": f",clustering{{shape=2x2 pair=false}},{RING}",
    "persistent": f",{STAGED},{RING},persistence{{order=grouped group=2}}",
    "split": f",split-k{{parts=2}},{RING}",
    "split in clusters": f",split-k{{parts=2}},clustering{{shape=1x2 pair=false}},{RING}",
    "split over the grid": f",split-k{{parts=3 over=grid}},{RING}",
}


def pipeline(tile, end):
    return HEAD.format(tile=tile) + ENDS[end]


@pytest.mark.sweep(9)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("tile", "shape"), [
    ("128x16x64", (19, 200, 136)), ("64x24x64", (75, 72, 264)), ("128x64x64", (200, 264, 136)),
])  # fmt: skip
def test_every_pass_takes_exchanged_operands(check_matmul, target, end, tile, shape):
    compiled, _ = check_matmul(MatmulSpec(*shape), pipeline=pipeline(tile, end), target=target)
    assert compiled.manifest["schedule"]["swapped"] is True


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "tile", "asked", "columns"),
    [
        ("sm_90a", "128x88x64", 88, 88),
        ("sm_90a", "64x72x64", None, 24),
        ("sm_90a", "256x120x64", None, 40),
        ("sm_90a", "128x152x64", None, 8),
        ("sm_100a", "64x56x64", None, 8),
        ("sm_100a", "128x144x64", None, 16),
    ],
)
def test_pieces_are_any_columns_that_divide_a_tile(check_matmul, target, tile, asked, columns):
    """The widest up to 64 where none are asked for; of tensor memory a power of two."""
    staging = f"epilogue-staging{{columns={asked}}}" if asked else "epilogue-staging"
    text, m = f"{HEAD.format(tile=tile)},{staging}", tile.partition("x")[0]
    spec = MatmulSpec(170, 264, 72)
    staged = compile_matmul(
        spec, pipeline=text, target=target, until="mlir", stop_after="epilogue-staging"
    )
    assert f'!tile.smem<tensor<{m}x{columns}xbf16>, "mn"' in staged.mlir
    check_matmul(spec, pipeline=f"{text},pipelining{{stages=2}},warp-specialization", target=target)


@pytest.mark.parametrize(
    ("target", "columns", "form"),
    [("sm_90a", 12, "a multiple of 8"), ("sm_90a", 16, "a multiple of 8"),
     ("sm_100a", 24, "a power of two from 8 on")],
)  # fmt: skip
def test_other_columns_are_refused(target, columns, form):
    text = f"{HEAD.format(tile='64x24x64')},epilogue-staging{{columns={columns}}}"
    rule = f"epilogue-staging: columns must be {form} that divides the tile's 24, got {columns}"
    with pytest.raises(CompileError, match=rule):
        compile_matmul(MatmulSpec(64, 64, 64), target=target, pipeline=text, until="mlir")


def test_consumers_alternate(check_matmul):
    end = f",epilogue-staging{{columns=32 buffers=4}},{RING},persistence{{order=m}},ping-pong"
    text = HEAD.format(tile="64x64x64") + end
    check_matmul(MatmulSpec(70, 328, 72), pipeline=text, target="sm_90a")


def test_pairs_of_ctas_share_tiles_of_a(check_matmul):
    end = f",epilogue-staging,clustering{{shape=2x1 pair=true}},{RING},persistence"
    text = HEAD.format(tile="128x64x64") + end
    check_matmul(MatmulSpec(70, 328, 136), pipeline=text, target="sm_100a")


@pytest.mark.parametrize("c_dtype", ["f32", "e4m3"])
def test_other_types_of_c_are_stored_by_threads(check_matmul, c_dtype):
    spec, text = MatmulSpec(19, 72, 64, c_dtype=c_dtype), pipeline("64x16x64", "roles")
    compiled, _ = check_matmul(spec, pipeline=text, target="sm_90a")
    assert any("only 16-bit elements" in remark for remark in compiled.remarks)


def test_rows_that_tma_cannot_store_are_stored_by_threads(check_matmul):
    spec, text = MatmulSpec(19, 75, 64), pipeline("64x16x64", "staged")
    check_matmul(spec, pipeline=text, target="sm_100a")


@pytest.mark.parametrize(
    ("change", "target", "got"),
    [
        ({"products": 2}, "sm_90a", "got tile.dual_matmul"),
        ({"groups": 2, "products": 2}, "sm_90a", "groups of rows, got tile.grouped_dual_matmul"),
        ({"groups": 2, "gathered": 7}, "sm_90a", "groups of rows, got tile.gathered_matmul"),
        (
            {"groups": 2, "group_axis": "k", "a_major": "m", "b_major": "n"},
            "sm_90a",
            "rows, got groups of K",
        ),
        ({"c_dtype": "mxfp8"}, "sm_100a", "outputs of single elements"),
        ({}, "sm_80", "wgmma or tcgen05.mma, got mma.sync"),
    ],
)
def test_what_cannot_be_exchanged_is_refused(change, target, got):
    spec = MatmulSpec(64, 64, 64, **change)
    with pytest.raises(CompileError, match=f"tiling: swap needs .*{got}"):
        compile_matmul(
            spec, target=target, pipeline="tiling{tile=64x64x64 swap=true}", until="mlir"
        )


def test_columns_of_a_tile_are_whole_units_of_m_major_rows():
    spec = MatmulSpec(64, 64, 64, "e4m3", "e4m3", a_major="m")
    with pytest.raises(CompileError, match="must be a multiple of 16 for M-major A, got 24"):
        text = "tiling{tile=64x24x64 swap=true}"
        compile_matmul(spec, target="sm_100a", pipeline=text, until="mlir")


@pytest.mark.parametrize("target", TARGETS)
def test_they_are_exchanged_where_rows_of_c_are_no_whole_mmas(check_matmul, target):
    """302 rows are 384 in tiles of 128, and 304 in columns by 8."""
    chosen = choose_schedule(MatmulSpec(302, 8088, 2256), find_target(target))
    assert chosen.tile[1] == {"sm_90a": 152, "sm_100a": 160}[target]
    assert "swap=true order=n" in chosen.pipeline()
    assert choose_schedule(MatmulSpec(320, 8088, 2256), find_target(target)).tile[1] == 160
    assert not choose_schedule(MatmulSpec(384, 8088, 2256), find_target(target)).swap
    check_matmul(MatmulSpec(23, 136, 520), pipeline=chosen.pipeline(), target=target)


@pytest.mark.parametrize(
    "fields",
    [
        {"epilogue_instructions": 1, "beside_columns": ("f32",)},
        {"epilogue_instructions": 2, "beside": ("bf16",)},
        {"batch": 3},
        {"b_major": "n"},
        {"lda": 2264, "ldc": 8096},
        {"a_dtype": "e4m3", "b_dtype": "e4m3"},
    ],
    ids=str,
)
@pytest.mark.parametrize("target", TARGETS)
def test_so_they_are_with_other_operands_and_forms(fields, target):
    schedule = choose_schedule(MatmulSpec(302, 8088, 2256, **fields), find_target(target))
    assert schedule.swap
    assert not schedule.split_grid > 1
    assert bool(schedule.ahead) == ("beside" in fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"further": ("bf16",)},
        {"c_dtype": "f32"},
        {"products": 2},
        {"groups": 4},
        {"dynamic_m": True},
    ],
    ids=str,
)
def test_what_would_be_scattered_or_refused_is_not_exchanged(fields):
    spec = MatmulSpec(302, 8088, 2256, **fields)
    assert not choose_schedule(spec, find_target("sm_90a")).swap


def test_few_tiles_cover_the_rows_of_c_as_evenly_as_they_can():
    """302 rows are 2 × 152, 3 × 104 and 8 × 40; of a whole number of steps there is one extent."""
    target = find_target("sm_90a")
    problem = exchanged(Problem.of(MatmulSpec(302, 8088, 2256), target))
    few = [each for each in n_extents(problem, target) if each > 32]
    assert few == [40, 48, 56, 64, 80, 104, 112, 152, 160]
    whole = exchanged(Problem.of(MatmulSpec(8, 8088, 2256), target))
    assert n_extents(whole, target) == (8, 16)
