"""What an op on narrow weights can know is wrong by itself, and what its kernel's rules are."""

import re

import pytest
from edited_ir import ir_after

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

MATMUL = """
func.func @f(%a: tensor<48x256xbf16>, %b: tensor<200x256xui4>, %s: tensor<200x2xbf16>,
             %z: tensor<200x2xui8>) -> tensor<48x200xf32> {
  %c = "tile.weight_matmul"(%a, %b, %s, %z) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", group = 128 : i64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1>}
    : (tensor<48x256xbf16>, tensor<200x256xui4>, tensor<200x2xbf16>, tensor<200x2xui8>)
    -> tensor<48x200xf32>
  return %c : tensor<48x200xf32>
}
"""
WITHOUT = {
    "%a, %b, %s, %z)": "%a, %b)",
    "array<i32: 1, 1, 1, 1>": "array<i32: 1, 1, 0, 0>",
    "xui4>, tensor<200x2xbf16>, tensor<200x2xui8>)": "xui4>)",
}


def message_of(text, passes, target="sm_90a"):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "-", passes, target=target)
    return caught.value.message


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({'a_major = "k"': 'a_major = "mn"'}, "a_major and b_major must be 'k', got ('mn', 'k')"),
        ({"200x256xui4": "200x128xui4"}, "a and b must have the same K, got 256 and 128"),
        ({"48x200xf32": "48x201xf32"}, "c must be 48x200, got [48, 201]"),
        (
            {"48x256xbf16": "48x256xf32"},
            "a must hold bf16 or f16, and b what threads widen to it, got f32 and ui4",
        ),
        (
            {"ui4": "bf16"},
            "a must hold bf16 or f16, and b what threads widen to it, got bf16 and bf16",
        ),
        ({"x256x": "x255x"}, "K must be whole bytes of ui4, got 255; pad K"),
        ({"group = 128": "group = 48"}, "group must be 32, 64, 128 or all 256 of K, got 48"),
        ({"x256x": "x320x"}, "group must divide K, got 128 and K of 320; pad K"),
        (WITHOUT, "group must be 0 without scales, got 128"),
        (
            {"tensor<200x2xbf16>": "tensor<200x4xbf16>"},
            "scales must be 200x2 of bf16, f16, f32, got tensor<200x4xbf16>",
        ),
        (
            {"tensor<200x2xbf16>": "tensor<200x2xf64>"},
            "scales must be 200x2 of bf16, f16, f32, got tensor<200x2xf64>",
        ),
        ({"ui4": "i4"}, "zeros must come with weights of ui4, got tensor<200x256xi4>"),
        (
            {"tensor<200x2xui8>": "tensor<200x2xi8>"},
            "zeros must be tensor<200x2xui8>, as scales, got tensor<200x2xi8>",
        ),
    ],
)
def test_a_product_of_weights_that_does_not_verify_is_refused(edits, message):
    text = MATMUL
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    assert message_of(text, "tiling") == f"tile.weight_matmul: {message}"


@pytest.fixture(scope="module")
def kernel():
    """A kernel of u4 in TMA's slots, as text; K is two tiles and a part."""
    spec = MatmulSpec(
        48, 200, 320, "bf16", "u4", "f32", group_size=64, scale_dtype="bf16", zero_points=True
    )
    how = {"pipeline": "tiling{tile=16x64x128},tma-insertion", "stop_after": "tma-insertion"}
    return compile_matmul(spec, target="sm_90a", until="mlir", **how).mlir


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'b_type = "u4"',
            'b_type = "s8"',
            "tile.weight_mma: b must hold the bytes of weights that threads widen, got s8 in a "
            "tile of 'ui8'",
        ),
        (
            'b_type = "u4"',
            'b_type = "bf16"',
            "tile.weight_mma: b must hold the bytes of weights that threads widen, got bf16 in a "
            "tile of 'ui8'",
        ),
        (
            'b_type = "u4"',
            'b_type = "s4"',
            "tile.weight_mma: zeros must come with scales of u4, got s4",
        ),
        (
            "group = 64",
            "group = 0",
            "tile.weight_mma: group must be 0 without scales alone, got 0",
        ),
        (
            "group = 64",
            "group = 32",
            "tile.weight_mma: weights: scales must be those of b, 200x10, one row after the other, "
            "got memref<200x5xbf16, 1>; give the argument that type",
        ),
        (
            "group = 64",
            "group = 48",
            "tile.weight_mma: weights: group must be 32, 64, 128 or all 320 of K, got 48",
        ),
        (
            '"scales", "zeros"',
            '"scales", "points"',
            "tile.kernel: weights: the views after a and b must be ['scales', 'zeros'], got "
            "['scales']; rename them",
        ),
        (
            r"%j, %k, %scales",
            r"%i, %k, %scales",
            "tile.weight_mma: weights: j must be the N place of its tile, got another index; "
            "take the store's",
        ),
        (
            'tile.mma_unit = "mma.sync"',
            'tile.mma_unit = "wgmma.mma_async"',
            "tile.weight_mma: weights: B must be those of mma.sync, and A those of "
            "wgmma.mma_async+cvt+fma, got wgmma.mma_async; run tiling for it",
        ),
    ],
)
def test_a_kernel_of_weights_that_breaks_a_rule_is_refused(kernel, old, new, message):
    text = re.sub(old, new, kernel)
    assert text != kernel, kernel
    assert message_of(text, "swizzle-selection") == message.replace("'ui8'", "ui8")


@pytest.fixture(scope="module")
def turned_kernel():
    """The same of exchanged operands: weights are A of wgmma."""
    spec = MatmulSpec(
        48, 200, 320, "bf16", "u4", "f32", group_size=64, scale_dtype="bf16", zero_points=True
    )
    tiling = "tiling{tile=64x16x128 mma=wgmma.mma_async+cvt+fma swap=true}"
    how = {"pipeline": f"{tiling},tma-insertion", "stop_after": "tma-insertion"}
    return compile_matmul(spec, target="sm_90a", until="mlir", **how).mlir


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'b_type = "u4"',
            'b_type = "s8"',
            "tile.exchanged_weight_mma: a must hold the bytes of weights that threads widen, got "
            "s8 in a tile of 'ui8'",
        ),
        (
            r"%i, %k, %scales",
            r"%j, %k, %scales",
            "tile.exchanged_weight_mma: weights: j must be the N place of its tile, got another "
            "index; take the store's",
        ),
        (
            "wgmma.mma_async\\+cvt\\+fma",
            "mma.sync",
            "tile.exchanged_weight_mma: weights: B must be those of mma.sync, and A those of "
            "wgmma.mma_async+cvt+fma, got mma.sync; run tiling for it",
        ),
        (
            "wgmma.mma_async\\+cvt\\+fma",
            "fma",
            "tile.exchanged_weight_mma: weights: B must be those of mma.sync, and A those of "
            "wgmma.mma_async+cvt+fma, got fma; run tiling for it",
        ),
        (
            "wgmma.mma_async\\+cvt\\+fma",
            "wgmma.mma_async+cvt",
            "tile.exchanged_weight_mma: weights: B must be those of mma.sync, and A those of "
            "wgmma.mma_async+cvt+fma, got wgmma.mma_async+cvt; run tiling for it",
        ),
        (
            "64x16xf32",
            "64x24xf32",
            "tile.exchanged_weight_mma: acc must be (64, 16), got (64, 24)",
        ),
        (
            '"scales", "zeros"',
            '"scales", "points"',
            "tile.kernel: views: a swapped kernel must take a, b and what its epilogue reads, got "
            "a, b, scales, points, c; drop tile.swapped",
        ),
        (
            "tile.swapped",
            "tile.swopped",
            "tile.kernel: attributes: nothing reads 'tile.swopped'; take it off the op",
        ),
        (
            ", tile.swapped",
            "",
            "tile.exchanged_weight_mma: views: must take a's tiles from a and b's from b, got a "
            "from b; swap them",
        ),
    ],
)
def test_a_kernel_of_turned_weights_that_breaks_a_rule_is_refused(turned_kernel, old, new, message):
    text = re.sub(old, new, turned_kernel)
    assert text != turned_kernel, turned_kernel
    assert message_of(text, "swizzle-selection") == message.replace("'ui8'", "ui8")


def test_steps_of_k_that_leave_some_out_are_refused(kernel):
    """Threads ask for the scales of the next step, which must be the next one."""
    text = kernel.replace("constant 1 : index", "constant 2 : index")
    assert "K steps must follow one another" in message_of(text, "swizzle-selection")


@pytest.mark.parametrize(
    ("target", "mma"),
    [
        ("sm_100a", "tcgen05.mma+cvt"),
        ("sm_100a", "tcgen05.mma+cvt+fma"),
        ("sm_90a", "wgmma.mma_async+cvt"),
        ("sm_90a", "wgmma.mma_async+cvt+fma"),
    ],
)
def test_an_mma_that_widens_weights_is_for_products_of_weights(target, mma):
    spec = MatmulSpec(96, 80, 64)
    pipeline = f"tiling{{tile=64x32x32 mma={mma}}}"
    with pytest.raises(CompileError, match=f"{re.escape(mma)} is for weights that threads widen"):
        compile_matmul(spec, target=target, pipeline=pipeline)
    plain = "\n".join(ir_after("normalize,tiling", target))
    head = 'tile.target = "sm_'
    named = plain.replace(head, f'tile.mma_unit = "{mma}", {head}', 1)
    assert named != plain
    with pytest.raises(CompileError, match="is for weights that threads widen, got none"):
        run_passes_on_text(named, "kernel.mlir", "lower-to-nvvm")
