"""Kernels with scales of 128 that break a rule, edited as text, are refused."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

TARGET = "sm_90a"


def kernel_of(sizes, tile, stop_after, c="bf16"):
    """One whose operands have scales of each row, as text."""
    spec = MatmulSpec(*sizes, "e4m3", "e4m3", c, a_scales="1x128", b_scales="1x128")
    pipeline = f"tiling{{tile={tile}}},tma-insertion"
    options = {"target": TARGET, "pipeline": pipeline, "stop_after": stop_after, "until": "mlir"}
    return compile_matmul(spec, **options).mlir


def square_of(stop_after, c="bf16", depth=128):
    """One whose views of scales are alike."""
    return kernel_of((64, 64, 272), f"64x64x{depth}", stop_after, c)


@pytest.fixture(scope="module")
def tiled():
    return kernel_of((256, 136, 272), "64x32x128", "tiling")


@pytest.fixture(scope="module")
def piped():
    return kernel_of((256, 136, 272), "64x32x128", "tma-insertion")


def refusal(text, old, new, following):
    """What the pass that follows says of an edited text."""
    assert old in text, text
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text.replace(old, new), "-", following)
    return caught.value.message


def test_vectors_are_loaded_from_scales():
    text = square_of("tiling", "f32")
    old = '"tile.load"(%a_scales, %k, %i) : (memref<3x64xf32, 1>'
    message = refusal(text, old, '"tile.load"(%c, %k, %i) : (memref<64x64xf32, 1>', "tma-insertion")
    assert message == (
        "tile.load: views: must load from a_scales or b_scales, got another view; swap it"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"tile.tensor_map"(%b_scales) : (memref<3x136xf32, 1>)',
            '"tile.tensor_map"(%a_scales) : (memref<3x256xf32, 1>)',
            "tile.tma_load: views: the tensor map of memref<3x256xf32, 1> must have dims [256, 3] "
            "and strides [1024] of f32, got [136, 3] and [544] of f32",
        ),
        (
            '"tile.blockwise_mma"(%acc, %a_tile_1, %b_tile_2, %adds, %a_scales_tile_3',
            '"tile.blockwise_mma"(%acc, %a_tile_1, %b_tile_2, %adds, %a_scales_tile',
            "tile.blockwise_mma: holding: reads a tile of a slot between pipe.wait and "
            "pipe.release, got one of pipe.acquire; move it between the two",
        ),
    ],
)
def test_slots_with_vectors_are_held_to_their_rules(piped, old, new, message):
    assert refusal(piped, old, new, "swizzle-selection") == message


def test_vectors_are_those_of_their_operand():
    """Of as many rows, so that nothing else tells them apart."""
    text = square_of("tiling")
    message = refusal(text, '"tile.load"(%a_scales', '"tile.load"(%b_scales', "tma-insertion")
    assert message == (
        "tile.blockwise_mma: views: must take a's tiles from a and b's from b, got a_scales from "
        "b_scales; swap them"
    )


def test_the_place_is_that_of_the_tile(tiled):
    old, new = "b_scales_tile, %i, %j, %k)", "b_scales_tile, %j, %i, %k)"
    assert refusal(tiled, old, new, "tma-insertion") == (
        "tile.blockwise_mma: scales: i must be the M place of its tile, got another index; take "
        "the store's"
    )


def test_views_are_those_of_their_operand():
    text = square_of("tiling", depth=64)
    old, new = "%adds, %a_scales, %b_scales", "%adds, %b_scales, %a_scales"
    assert refusal(text, old, new, "tma-insertion") == (
        "tile.blockwise_mma: scales: a_scales must be those of a, got others; swap them"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "tensor<1x64xf32>",
            "tensor<1x96xf32>",
            "a_scales must be a view, or a linear tile of 1x64xf32, got "
            '!tile.smem<tensor<1x96xf32>, "k", "linear">',
        ),
        (
            'tensor<1x64xf32>, "k", "linear"',
            'tensor<1x64xf32>, "mn", "linear"',
            "a_scales must be a view, or a linear tile of 1x64xf32, got "
            '!tile.smem<tensor<1x64xf32>, "mn", "linear">',
        ),
        (
            'a_form = "1x128"',
            'a_form = "128x128"',
            "a_scales must be a view where a step has no scale of its own for each row, got "
            "128x128 and a K of 128",
        ),
        (
            'x128xf8E4M3FN>, "k"',
            'x64xf8E4M3FN>, "k"',
            "a_scales must be a view where a step has no scale of its own for each row, got "
            "1x128 and a K of 64",
        ),
    ],
)
def test_an_mma_whose_scales_do_not_verify_is_refused(tiled, old, new, message):
    assert refusal(tiled, old, new, "tma-insertion") == f"tile.blockwise_mma: {message}"
