"""f32 tiles that threads split into terms of bf16 or tf32 for tcgen05.mma, of bf16 for wgmma:
prefixes, layouts, kinds of kernels, and what is refused."""

import re

import numpy as np
import pytest
from split_products import LOADS, MAJORS, PREFIXES, cancelling, drawn, errors, spec_of

import tilewright
from tilewright.compiler.driver import choose_pipeline, compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.schedule.kinds.warp_schedule import candidates
from tilewright.compiler.schedule.search.choice import target_for
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.pairwise

NINE, THREE = "bf16x9", "3xtf32"
MMAS = {"sm_100a": "tcgen05.mma+bf16x9", "sm_90a": "wgmma.mma_async+bf16x9"}
UNITS = {
    "tcgen05.mma+bf16x9": ("sm_100a", NINE),
    "tcgen05.mma+3xtf32": ("sm_100a", THREE),
    "wgmma.mma_async+bf16x9": ("sm_90a", NINE),
}
TAIL = ",tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
STAGED = TAIL.replace("pipelining", "epilogue-staging{columns=16},pipelining")


def tiled(target, tile, tail=TAIL):
    return by_unit(MMAS[target], tile, tail)


def by_unit(unit, tile, tail=TAIL):
    return f"tiling{{tile={tile} mma={unit}}}{tail}"


@pytest.mark.sweep(4)
@pytest.mark.array(1, prefix=PREFIXES, unit=tuple(UNITS))
def test_every_prefix(check_matmul, prefix, unit):
    """Tiles hang over along each axis; the last step of K is a part."""
    pipeline, (target, name) = by_unit(unit, "64x16x32", f",{LOADS}"), UNITS[unit]
    spec = spec_of(name, 72, 12, 44)
    compiled, report = check_matmul(spec, target=target, pipeline=pipeline, stop_after=prefix)
    assert not report.warnings
    assert "mma.sync" not in compiled.ptx
    assert compiled.manifest["terms"] == {"depth": 32}


@pytest.mark.sweep(4)
@pytest.mark.array(1, unit=tuple(UNITS), majors=MAJORS, tile=("64x16x16", "128x48x32"))
def test_either_major_of_each_operand(check_matmul, unit, majors, tile):
    target, name = UNITS[unit]
    spec = spec_of(name, 140, 20, 44, a_major=majors[0], b_major=majors[1])
    check_matmul(spec, target=target, pipeline=by_unit(unit, tile))


WAYS = {
    "tiles of no swizzle": ("64x16x32", ",tma-insertion", (72, 20, 72), {}),
    "operands that threads copy": (
        "64x16x16",
        ",copy-insertion,swizzle-selection,pipelining{stages=2}",
        (72, 20, 51),
        {},
    ),
    "one CTA for all tiles": ("64x16x32", f"{TAIL},persistence{{ctas=1}}", (72, 36, 44), {}),
    "a staged epilogue": ("64x32x32", STAGED, (72, 36, 44), {}),
    "parts of K of a cluster": (
        "64x16x16",
        TAIL.replace("pipelining", "split-k{parts=2},pipelining"),
        (20, 20, 100),
        {},
    ),
    "parts of K of a grid": (
        "64x16x16",
        TAIL.replace("pipelining", "split-k{parts=3 over=grid},pipelining"),
        (20, 20, 100),
        {},
    ),
    "multicast": (
        "64x16x16",
        TAIL.replace("pipelining", "clustering{shape=2x2 pair=false},pipelining"),
        (72, 36, 44),
        {},
    ),
    "exchanged operands": ("64x24x16 swap=true", TAIL, (20, 72, 44), {}),
    "a stack": ("64x16x16", TAIL, (20, 20, 44), {"batch": 2}),
    "two products": ("64x32x16", TAIL, (20, 20, 44), {"products": 2}),
    "groups of rows": ("64x16x16", f"{TAIL},persistence{{ctas=2}}", (72, 20, 44), {"groups": 3}),
    "groups of K": (
        "64x16x16",
        TAIL,
        (20, 20, 90),
        {"groups": 3, "group_axis": "k", "a_major": "m", "b_major": "n"},
    ),
    "rows by their numbers": ("64x16x16", TAIL, (72, 20, 44), {"groups": 3, "gathered": 50}),
    "rows with gaps": ("64x16x16", TAIL, (20, 20, 44), {"lda": 60, "ldb": 48, "ldc": 24}),
    "several warpgroups of many columns": ("128x128x16", TAIL, (140, 136, 44), {}),
}
OF_WGMMA = {
    "several MMAs of a warpgroup": ("256x48x16", TAIL, (270, 52, 44), {}),
    "three warpgroups": ("192x48x32", TAIL, (200, 52, 44), {}),
    "columns that are no multiple of 32": ("64x40x32", TAIL, (72, 44, 44), {}),
    "few rows of A, exchanged, by parts of K": (
        "64x8x32 swap=true",
        TAIL.replace("pipelining", "split-k{parts=4 over=grid},pipelining"),
        (5, 100, 300),
        {},
    ),
    "few rows of A, exchanged, of several warpgroups": (
        "128x16x32 swap=true",
        TAIL.replace("pipelining", "split-k{parts=2 over=grid},pipelining"),
        (13, 140, 172),
        {"a_major": "m", "b_major": "n", "lda": 16},
    ),
}


@pytest.mark.sweep(9)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("what", WAYS)
def test_other_ways_to_the_sums(check_matmul, what, unit):
    (tile, tail, sizes, more), (target, name) = WAYS[what], UNITS[unit]
    check_matmul(spec_of(name, *sizes, **more), target=target, pipeline=by_unit(unit, tile, tail))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("what", OF_WGMMA)
def test_tiles_of_wgmma_alone(check_matmul, what):
    tile, tail, sizes, more = OF_WGMMA[what]
    spec = spec_of(NINE, *sizes, **more)
    check_matmul(spec, target="sm_90a", pipeline=tiled("sm_90a", tile, tail))


PLAIN_STEPS = {
    "of few": ("64x16x32", TAIL, "kk"),
    "of two warpgroups": ("128x48x32", TAIL, "kk"),
    "of several MMAs": ("256x16x16", TAIL, "mn"),
    "of tiles that threads copy": ("64x16x16", ",copy-insertion,swizzle-selection", "mk"),
    "of parts": ("64x40x16", TAIL.replace("pip", "split-k{parts=2 over=grid},pip"), "kn"),
    "of exchanged operands": ("64x24x32 swap=true", TAIL, "km"),
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("what", PLAIN_STEPS)
@pytest.mark.parametrize("at", [0, 34, 67, slice(20, 40), slice(None)], ids=str)
def test_steps_whose_elements_end_below_bf16_are_multiplied_by_threads(what, at):
    """Each element of A at such a K has digits below 2^-133 and meets one of 2^120 or so; rows of
    other tiles and other steps are split."""
    tile, tail, majors = PLAIN_STEPS[what]
    draw = np.random.default_rng(len(what))
    a, b = (draw.standard_normal((rows, 68)).astype(np.float32) for rows in (140, 20))
    a[:, at] *= np.float32(2.0**-125)
    b[:, at] *= np.float32(2.0**120)
    exact, sizes = (
        each(a).astype(np.float64) @ each(b).T.astype(np.float64) for each in (np.array, np.abs)
    )
    a, b = (_lying(each, major in "mn") for each, major in zip((a, b), majors, strict=True))
    how = {"precision": NINE, "target": "sm_90a", "pipeline": tiled("sm_90a", tile, tail)}
    assert (np.abs(tilewright.matmul(a, b, **how) - exact) <= 2.0**-19 * sizes).all()


def _lying(matrix, by_columns):
    return np.ascontiguousarray(matrix.T).T if by_columns else matrix


@pytest.mark.sweep(2)
@pytest.mark.parametrize("depth", [16, 32])
@pytest.mark.parametrize("k", [1, 64, 300])
def test_three_products_of_tiles_are_as_exact_as_of_warps(k, depth):
    """Of numbers of many magnitudes, and of some that nearly take each other back."""
    pipeline = by_unit("tcgen05.mma+3xtf32", f"64x16x{depth}", ",copy-insertion,swizzle-selection")
    for a, b in (drawn(k, -8, 8), cancelling(k)):
        made = tilewright.matmul(a, b, precision=THREE, target="sm_100a", pipeline=pipeline)
        assert errors(made, a, b) <= 2.0**-20 + 3 * k * 2.0**-24


def test_an_infinite_operand_of_three_products_makes_nan_of_its_sums():
    a, b = drawn(40, -2, 2)
    a[3, 5] = np.inf
    pipeline = by_unit("tcgen05.mma+3xtf32", "64x16x16", ",copy-insertion,swizzle-selection")
    made = tilewright.matmul(a, b, precision=THREE, target="sm_100a", pipeline=pipeline)
    assert np.isnan(made[3]).all() and np.isfinite(np.delete(made, 3, axis=0)).all()


def test_the_tensor_core_divides_what_it_adds_to_where_it_can():
    """Four times in a step; wgmma sums terms of their own magnitude, all in one group."""
    spec, tile = spec_of(NINE, 64, 16, 64), "64x16x16"
    made = {
        target: compile_matmul(spec, target=target, pipeline=tiled(target, tile), until="ptx").ptx
        for target in MMAS
    }
    mmas = re.findall(r"tcgen05\.mma\..*;", made["sm_100a"])
    assert len(mmas) == 9 and [each.endswith(", 8;") for each in mmas].count(True) == 4
    three = compile_matmul(
        spec_of(THREE, 64, 16, 64), target="sm_100a", pipeline=by_unit(f"tcgen05.mma+{THREE}", tile)
    )
    assert len(re.findall(r"tcgen05\.mma\..*kind::tf32", three.ptx)) == 2 * 3
    steps, left = divmod(made["sm_90a"].count("wgmma.mma_async"), 9)
    assert (left, made["sm_90a"].count("wgmma.commit_group")) == (0, steps)


@pytest.mark.parametrize(
    ("spec", "target", "pipeline", "message"),
    [
        (
            spec_of(NINE, 64, 64, 64),
            "sm_100a",
            tiled("sm_100a", "64x64x64"),
            "tiling: tile K must be 16 or 32 for tcgen05.mma+bf16x9, got 64; tile K so",
        ),
        (
            spec_of(NINE, 64, 64, 64),
            "sm_90a",
            tiled("sm_90a", "64x64x8"),
            "tile K must be a multiple of 16",
        ),
        (
            spec_of(NINE, 300, 300, 64),
            "sm_100a",
            tiled("sm_100a", "128x256x32"),
            "needs 245760 bytes of shared memory for A and B, their terms and 1024 for barriers",
        ),
        (
            spec_of(NINE, 300, 300, 64),
            "sm_100a",
            tiled("sm_100a", "128x128x32", ",tma-insertion,pipelining{stages=4}"),
            "4 stages of 32768 bytes are 131072 bytes, over the 100352 that sm_100a has left",
        ),
        (
            spec_of(NINE, 300, 300, 64),
            "sm_90a",
            tiled("sm_90a", "64x64x16", f"{TAIL},persistence,ping-pong"),
            "shared memory has terms of one consumer of wgmma.mma_async+bf16x9",
        ),
        (
            spec_of(NINE, 300, 300, 64),
            "sm_100a",
            tiled(
                "sm_100a",
                "128x64x16",
                TAIL.replace("pipelining", "clustering{shape=2x1 pair=true},pipelining"),
            ),
            "pair",
        ),
        (
            spec_of(THREE, 300, 300, 64),
            "sm_100a",
            by_unit(
                "tcgen05.mma+3xtf32",
                "128x64x16",
                TAIL.replace("pipelining", "clustering{shape=2x1 pair=true},pipelining"),
            ),
            "pair",
        ),
        (
            spec_of(THREE, 64, 64, 64),
            "sm_90a",
            by_unit("wgmma.mma_async+bf16x9", "64x64x16"),
            "3xtf32",
        ),
        (
            MatmulSpec(64, 64, 64, "bf16", "bf16"),
            "sm_100a",
            tiled("sm_100a", "64x64x16"),
            "tcgen05.mma+bf16x9 of sm_100a multiplies no bf16",
        ),
        (
            MatmulSpec(64, 64, 128, "e4m3", "e4m3", a_scales="1x128", b_scales="128x128"),
            "sm_100a",
            tiled("sm_100a", "64x64x16"),
            "mma must be tcgen05.mma+fma for scales of 128 elements",
        ),
    ],
)
def test_what_is_not_built_is_refused(spec, target, pipeline, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        compile_matmul(spec, target=target, pipeline=pipeline, until="ptx")


@pytest.fixture(scope="module")
def planned():
    """A kernel behind `plan-memory`, as text."""
    how = {"target": "sm_100a", "pipeline": tiled("sm_100a", "64x32x16"), "until": "mlir"}
    return compile_matmul(spec_of(NINE, 64, 32, 64), stop_after="plan-memory", **how).mlir


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            r' *"sm.terms".*\n',
            "",
            "terms: tcgen05.mma+bf16x9 has 1 sm.terms, got 0; run",
        ),
        (r'( *"sm.terms".*\n)', r"\1\1", "terms: tcgen05.mma+bf16x9 has 1 sm.terms, got 2"),
        (
            r' *"sm.terms".*\n((?:.*\n)*?)( *%ring = .*\n)',
            r'\1\2    "sm.terms"(%ring) : (!ring) -> ()\n',
            "sm.terms: memory must be a sm.slot_memory, got another value",
        ),
        (
            r"(%slots = .*slots = )2",
            r"\g<1>3",
            "sm.terms: memory must have 2 slots, got 3",
        ),
        (
            r"64x16xbf16",
            "128x16xbf16",
            "terms: must be those of !tile.smem<tensor<64x16xf32>",
        ),
        (r"64x16xbf16", "64x16xf16", "sm.terms: terms must be K-major tiles of bf16 or f32, got"),
        (r'(tensor<64x16xbf16>, "k", )"32B"', r'\1"none"', "terms must be K-major tiles of bf16"),
        (
            r"\[!tile, !tile,",
            r"[!tile2, !tile,",
            "sm.terms: must have 4 tiles alike of bf16 or 2 of f32 of each of two or three",
        ),
        (
            r"( *)(%acc)( = .*tile.accumulator.*\n)",
            r"\1\2\3\1%more\3",
            "terms: have the place of one accumulator's steps, got 2; let one agent multiply",
        ),
        (r"\[12288, ", r"[0, ", "sm.slot_memory: apart: bytes below"),
    ],
)
def test_plans_that_are_edited_are_held_to_rules(planned, old, new, message):
    edited = re.sub(old, new, planned)
    assert edited != planned, planned
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "-", "expand-loops")
    assert message in caught.value.message, caught.value.message


@pytest.mark.parametrize(
    ("sizes", "target", "chosen"),
    [
        ((4096, 4096, 4096), "sm_100a", "128x256x16 mma=tcgen05.mma+bf16x9"),
        ((1024, 1024, 1024), "sm_100a", "mma=tcgen05.mma+bf16x9"),
        ((16, 512, 4096), "sm_100a", "warps="),
        ((4096, 4096, 4094), "sm_100a", "warps="),
        ((4096, 4096, 4096), "sm_90a", "128x128x32 mma=wgmma.mma_async+bf16x9"),
        ((64, 4096, 4096), "sm_90a", "split-k{parts=4 over=grid}"),
        ((4096, 4096, 4094), "sm_90a", "warps="),
        ((4096, 4096, 4096), "sm_120a", "warps="),
    ],
)
def test_large_products_are_of_tiles_that_threads_split(sizes, target, chosen):
    """Where TMA loads both operands."""
    assert chosen in choose_pipeline(spec_of(NINE, *sizes), target)


@pytest.mark.parametrize("name", [NINE, THREE])
def test_what_is_chosen_of_large_products_does_not_spill(name):
    assert not compile_matmul(spec_of(name, 4096, 4096, 4096), target="sm_100a").given_up


def test_three_products_of_tiles_are_chosen_on_blackwell_alone():
    assert "mma=tcgen05.mma+3xtf32" in choose_pipeline(spec_of(THREE, 4096, 4096, 4096), "sm_100a")
    assert "mma=" not in choose_pipeline(spec_of(THREE, 4096, 4096, 4096), "sm_90a")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("more", [{}, {"products": 2}, {"a_major": "m", "b_major": "n"}])
@pytest.mark.parametrize("unit", UNITS)
def test_what_is_chosen_is_right(check_matmul, unit, more):
    target, name = UNITS[unit]
    spec = spec_of(name, 72, 68, 36, **more)
    pipeline = tile_candidates(spec, target)[0].pipeline()
    compiled, _ = check_matmul(spec, target=target, pipeline=pipeline)
    assert unit.partition("+")[0] in compiled.ptx


def tile_candidates(spec, target):
    """The schedules that split tiles, the fastest first, whatever else is faster."""
    found = candidates(spec, target_for(spec, target))
    return [each for each, _ in found if each.mma]


@pytest.mark.parametrize("sizes", [(300, 5000, 1100), (4096, 4096, 4096)])
@pytest.mark.parametrize("unit", UNITS)
def test_every_candidate_is_a_tile_that_the_chip_can_hold(unit, sizes):
    """Beside its ring, terms of two steps of each, 8 bytes an element, or of three of B, 6 bytes,
    and two staged pieces."""
    target, name = UNITS[unit]
    found = tile_candidates(spec_of(name, *sizes), target)
    assert len({each.tile for each in found}) > 8
    for each in found:
        m, n, k = each.tile
        ring, terms = each.stages * (m + n) * k * 4, 2 * (m + n) * k * 8
        if target == "sm_90a":
            terms = 3 * n * k * 6
        pieces = 2 * m * (each.columns or 0) * 4
        assert ring + terms + pieces + 1024 <= 232_448
