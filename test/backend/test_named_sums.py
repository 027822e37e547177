"""Which sums are in registers that PTX names: those that nobody but MMAs and pins touches."""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.passes.lowering.nvvm.named_sums import IN_PLACE

EIGHT_BITS = {"a_dtype": "e4m3", "b_dtype": "e4m3"}
PERMUTES = (
    "tiling{tile=128x64x64},tma-insertion,swizzle-selection,pipelining{stages=2},"
    "warp-specialization,persistence{ctas=4},ping-pong"
)


def ptx_of(spec: MatmulSpec, pipeline: str | None = None) -> str:
    return compile_matmul(spec, target="sm_90a", pipeline=pipeline, until="ptx").ptx


@pytest.mark.parametrize("pipeline", [PERMUTES.removesuffix(",ping-pong"), PERMUTES])
def test_a_consumer_has_registers_for_each_mma_down_its_tile(pipeline):
    ptx = ptx_of(MatmulSpec(256, 128, 192), pipeline)
    declared = re.findall(r"\.reg \.b32 (%sums\d+_)<(\d+)>;", ptx)
    assert declared == [(f"%sums{number}_", "32") for number in range(2)]
    multiplied = re.findall(r"wgmma\.mma_async\S+ \{([^}]*)\}", ptx)
    assert multiplied
    for registers in multiplied:
        prefix = registers.partition("0,")[0]
        assert registers.split(", ") == [f"{prefix}{index}" for index in range(32)]


def test_two_products_of_one_mma_each_share_the_registers_of_a_tile():
    ptx = ptx_of(
        MatmulSpec(64, 128, 64, products=2, epilogue_instructions=18), "tiling{tile=64x64x64}"
    )
    multiplied = re.findall(r"wgmma\.mma_async\S+ \{([^}]*)\}", ptx)
    halves = [", ".join(f"%sums0_{at + index}" for index in range(16)) for at in (0, 16)]
    assert multiplied == halves * 4


def test_sums_that_threads_add_to_have_no_names():
    assert "%sums" not in ptx_of(MatmulSpec(256, 128, 256, **EIGHT_BITS, sums="two-level"))


@pytest.mark.parametrize(
    "order, holds",
    [
        ("", True),
        ("lmmslmslplp", True),  # two groups of MMAs, read twice
        ("slms", False),  # somebody clears the sums
        ("lplms" + "lps", False),  # somebody stores what a pin gave
        ("llmsp", False),  # what was there before the MMAs is read behind them
        ("lm", False),  # the sums stay in another block
    ],
)
def test_an_order_of_touches_holds_if_no_value_is_needed_behind_the_next_one(order, holds):
    assert bool(IN_PLACE.fullmatch(order)) == holds
