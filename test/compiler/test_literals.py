"""Numbers that MLIR reads from what is written of them are the same, bit for bit."""

import math

import pytest
import torch

from tilewright.compiler.importers.mlir_literals import literal
from tilewright.dialects.context import lent_context
from tilewright.dialects.mlir import ir

TYPES = {
    "f32": (torch.float32, torch.int32),
    "bf16": (torch.bfloat16, torch.int16),
    "f16": (torch.float16, torch.int16),
    "f64": (torch.float64, torch.int64),
}
NUMBERS = (0.0, -0.0, 1 / 3, -0.1, 6e-8, -1e-40, 65504.0, 1e38, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_float_is_read_as_torch_rounds_it(type_, number):
    dtype, words = TYPES[type_]
    wanted = torch.tensor(number, dtype=dtype)
    with lent_context(), ir.Location.unknown():
        read = ir.FloatAttr(ir.Attribute.parse(f"{literal(wanted.item(), type_)} : {type_}")).value
    assert torch.tensor(read, dtype=dtype).view(words) == wanted.view(words)


@pytest.mark.parametrize(
    ("type_", "number", "read"),
    [("i32", -(2**31), -(2**31)), ("i32", 2**32 - 1, -1), ("i64", 2**63, -(2**63))],
)
def test_an_integer_is_read_as_its_bits(type_, number, read):
    with lent_context(), ir.Location.unknown():
        found = ir.IntegerAttr(ir.Attribute.parse(f"{literal(number, type_)} : {type_}"))
    assert found.value == read


@pytest.mark.parametrize("number", [2**32, -(2**31) - 1])
def test_what_has_more_bits_is_refused(number):
    with pytest.raises(OverflowError, match=f"an integer of 32 bits, got {number}"):
        literal(number, "i32")


@pytest.mark.parametrize("number", [2.5, -0.5, math.inf, math.nan])
def test_what_is_no_whole_number_is_no_integer(number):
    with pytest.raises(OverflowError, match=f"an integer of .* bits, got {number}"):
        literal(number, "i32")


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(
    "number",
    [2**24 + 1, 2**24 + 2**16 + 1, 2**11 + 1 + 2**-13, 2**53 + 1, 2**60 + 2**36 + 1, 1 - 2**62],
)
def test_a_number_of_more_digits_is_rounded_as_torch_does(type_, number):
    """Of bf16 and f16 by way of f32, and a large integer at once."""
    dtype, words = TYPES[type_]
    if number > 2**15 and type_ == "f16":
        number = number / 2**50 + 2**11
    wanted = torch.full((), number, dtype=dtype)
    with lent_context(), ir.Location.unknown():
        read = ir.FloatAttr(ir.Attribute.parse(f"{literal(number, type_)} : {type_}")).value
    assert torch.tensor(read, dtype=dtype).view(words) == wanted.view(words)
