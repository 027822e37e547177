"""Products that tcgen05.mma leaves in tensor memory, and threads scale and add: the rules of their
columns, and what test_blockwise_scales.py does not ask of both chips."""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.pairwise

FORMS = (("1x128", "128x128"), ("1x128", "1x128"), ("128x128", "1x128"))
TARGET, MMA = "sm_100a", "tcgen05.mma+fma"
TAIL = ",tma-insertion,swizzle-selection,pipelining{stages=3},warp-specialization"

PAIR_TAIL = TAIL.replace("pipelining", "clustering{shape=2x1 pair=true},pipelining")


def spec_of(m, n, k, forms=FORMS[0], **more):
    types = more.pop("types", ("e4m3", "e4m3"))
    return MatmulSpec(m, n, k, *types, "f32", a_scales=forms[0], b_scales=forms[1], **more)


def test_128_columns_end_between_8_columns_of_a_tile(check_matmul):
    """The sixth tile has columns 120 to 143."""
    check_matmul(spec_of(20, 150, 272), target=TARGET, pipeline=f"tiling{{tile=64x24x128}}{TAIL}")


def test_tiles_may_be_handed_out(check_matmul):
    pipeline = f"tiling{{tile=64x16x128}}{TAIL},persistence{{scheduler=clc}}"
    check_matmul(spec_of(140, 40, 272, FORMS[1]), target=TARGET, pipeline=pipeline)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("majors", "types"),
    [("mn", ("e5m2", "e4m3")), ("kn", ("bf16", "bf16")), ("mk", ("f16", "f16"))],
)
def test_operands_that_lie_along_m_and_n(check_matmul, majors, types):
    """The tensor core of this chip reads all of them so."""
    more = {"a_major": majors[0], "b_major": majors[1], "types": types}
    pipeline = f"tiling{{tile=128x48x64}}{TAIL}"
    check_matmul(spec_of(144, 80, 320, FORMS[2], **more), target=TARGET, pipeline=pipeline)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("forms", FORMS[:2])
@pytest.mark.parametrize(
    "pipeline", [None, f"tiling{{tile=128x32x128}}{TAIL},persistence{{ctas=2}}"]
)
def test_groups_have_the_scales_of_their_rows(check_matmul, forms, pipeline):
    """Offsets fall anywhere, and some groups are empty."""
    check_matmul(spec_of(203, 72, 272, forms, groups=5), target=TARGET, pipeline=pipeline)


@pytest.mark.parametrize(
    ("pipeline", "sizes", "forms"),
    [
        (f"tiling{{tile=128x32x128}}{PAIR_TAIL},persistence{{ctas=2}}", (260, 40, 400), FORMS[1]),
        (
            f"tiling{{tile=128x32x128}}{PAIR_TAIL},persistence{{scheduler=clc}}",
            (140, 40, 272),
            FORMS[0],
        ),
        (f"tiling{{tile=128x32x64}}{PAIR_TAIL.replace('2x1', '2x2')}", (200, 72, 144), FORMS[2]),
        (
            f"tiling{{tile=128x32x128 swap=true}}{PAIR_TAIL.replace('2x1', '4x1')}",
            (24, 300, 272),
            FORMS[1],
        ),
        (f"tiling{{tile=128x32x128}}{PAIR_TAIL.partition(',warp')[0]}", (140, 40, 272), FORMS[0]),
    ],
)
def test_threads_of_both_ctas_of_a_pair_add_their_rows_of_a_product(
    check_matmul, pipeline, sizes, forms
):
    """One tile a CTA or several, multicast of A and of B, steps that end within a scale."""
    compiled, _ = check_matmul(spec_of(*sizes, forms), target=TARGET, pipeline=pipeline)
    assert "tcgen05.mma.cta_group::2" in compiled.ptx


def test_threads_of_a_pair_copy_no_operand():
    """A row of K is no multiple of 16 bytes."""
    pipeline = f"tiling{{tile=128x64x128}}{PAIR_TAIL}"
    with pytest.raises(CompileError, match="threads copy an operand"):
        compile_matmul(spec_of(256, 64, 130), target=TARGET, pipeline=pipeline, until="ptx")


def test_all_warps_that_load_groups_read_a_claim(check_matmul):
    """They find the group of a tile together."""
    pipeline = f"tiling{{tile=128x32x128}}{PAIR_TAIL},persistence{{scheduler=clc}}"
    check_matmul(spec_of(129, 40, 128, groups=2), target=TARGET, pipeline=pipeline)


def test_one_product_is_made_while_the_one_before_is_added(check_matmul):
    """In a step MMAs come before reads; behind the steps the last product is read."""
    pipeline = f"tiling{{tile=64x64x128}}{TAIL}"
    compiled, _ = check_matmul(spec_of(64, 64, 512), target=TARGET, pipeline=pipeline)
    assert compiled.ptx.count("tcgen05.ld") == 2
    assert compiled.ptx.index("tcgen05.mma") < compiled.ptx.index("tcgen05.ld")
    assert compiled.ptx.rindex("tcgen05.mma") < compiled.ptx.index("tcgen05.ld")


def test_a_scheduler_has_registers_that_two_warpgroups_of_consumers_leave(check_matmul):
    """Beside a warpgroup of loads; a 13th warp asks for tiles."""
    pipeline = f"tiling{{tile=128x16x128}}{TAIL},persistence{{scheduler=clc}}"
    compiled, _ = check_matmul(spec_of(200, 20, 128), target=TARGET, pipeline=pipeline)
    assert len(re.findall(r"setmaxnreg\.inc\.sync\.aligned\.u32\s+208;", compiled.ptx)) == 1


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("tiling{tile=64x16x256}", "tile K must divide 128"),
        ("tiling{tile=192x16x128}", "more than the accumulator registers"),
        ("tiling{mma=tcgen05.mma}", r"mma must be tcgen05.mma\+fma for scales of 128"),
        (f"tiling{{tile=64x64x128}}{PAIR_TAIL}", "threads add products needs 128 rows a CTA"),
        (f"tiling{{tile=64x64x128}}{TAIL},persistence,ping-pong", "of one consumer"),
    ],
)
def test_what_is_not_built_is_refused(pipeline, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(spec_of(300, 200, 512), target=TARGET, pipeline=pipeline, until="ptx")


def test_integers_are_not_added_in_f32():
    spec = MatmulSpec(64, 64, 64, "s8", "s8", "s32", "s32")
    with pytest.raises(CompileError, match="s8"):
        compile_matmul(spec, target=TARGET, pipeline=f"tiling{{mma={MMA}}}", until="ptx")


@pytest.fixture(scope="module")
def texts():
    """A kernel behind each of two passes, as text."""
    pipeline = f"tiling{{tile=128x64x128}}{TAIL}"
    how = {"target": TARGET, "pipeline": pipeline, "until": "mlir"}
    spec = spec_of(128, 64, 512)
    return {
        name: compile_matmul(spec, stop_after=name, **how).mlir
        for name in ("plan-memory", "expand-loops")
    }


@pytest.mark.parametrize(
    ("after", "old", "new", "message"),
    [
        (
            "plan-memory",
            r"each = 64",
            "each = 32",
            "products: must have 64 columns each, and one arrival, got 32 and 1",
        ),
        (
            "plan-memory",
            r'arrivals = 1 : i64, label = "products.done"',
            'arrivals = 2 : i64, label = "products.done"',
            "products: must have 64 columns each, and one arrival, got 64 and 2",
        ),
        (
            "plan-memory",
            r"each = 64 : i64, first = 0",
            "each = 64 : i64, first = 8",
            "sm.product_columns: must lie in the 128 columns, got 8 to 136",
        ),
        (
            "plan-memory",
            r"first = 0 : i64, slots = 2",
            "first = 0 : i64, slots = 3",
            "sm.product_columns: must have 1 or 2 products and 2 barriers, got 3 and",
        ),
        (
            "plan-memory",
            r"first = 0 : i64, slots = 2",
            "first = 0 : i64, slots = 1",
            "products: threads add or read 2 in turns here, got 1; run plan-memory",
        ),
        (
            "plan-memory",
            r'(.*label = "products.done".*)',
            r'\1\n%r = "sm.barriers"() {arrivals = 1 : i64, label = "products.ready", '
            r"offset = 65536 : i64, slots = 2 : i64} : () -> !sm.mbarriers<2 : i64>",
            "'products.ready' of one arrival, others have none, got [(2, 1)]; run plan-memory",
        ),
        (
            "plan-memory",
            r' *"sm.product_columns".*\n',
            "",
            "products: tcgen05.mma+fma has 1 sm.product_columns, got 0; run plan-memory",
        ),
        (
            "expand-loops",
            r'( *"tile.blockwise_mma".*\n)((?:.*\n)*?)( *"tile.finish_sums".*\n)',
            r"\1\3\2",
            "tile.finish_sums: finish: must stand after the MMAs into its sums, and outside of",
        ),
        (
            "expand-loops",
            r'( *"tile.finish_sums".*\n)((?:.*\n)*?)( *}\) {agent = "consumer")',
            r"\2\1\3",
            "tile.finish_sums: finish: must stand before the sums are read, got it after",
        ),
    ],
)
def test_kernels_that_are_edited_are_held_to_rules(texts, after, old, new, message):
    edited = re.sub(old, new, texts[after])
    assert edited != texts[after], texts[after]
    following = "expand-loops" if after == "plan-memory" else "pipes-to-barriers"
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "-", following)
    assert message in caught.value.message


@pytest.mark.parametrize("left_out", [False, True])
def test_without_an_end_steps_wait_for_their_own_products(texts, left_out):
    """A step then leaves nothing to the next."""
    text = texts["expand-loops"]
    edited = re.sub(r' *"tile.finish_sums".*\n', "", text) if left_out else text
    made = run_passes_on_text(edited, "-", "pipes-to-barriers,select-instructions")
    assert made.count("sm.tmem_load") == (1 if left_out else 2)
