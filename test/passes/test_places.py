"""`passes/places.py`: what it emits for a thread, computed again, is what the ISA's tables say."""

import pytest

from tilewright.dialects.context import lent_context
from tilewright.dialects.fragments import find_fragment
from tilewright.dialects.integers import constant
from tilewright.dialects.mlir import arith, ir
from tilewright.passes.places import column_in, matrix_column, matrix_row, row_in

RULES = {arith.DivUIOp: int.__floordiv__, arith.RemUIOp: int.__mod__, arith.MulIOp: int.__mul__}


def value_of(value, numbers):
    """What a value that was emitted is, with these numbers for lane and warp."""
    if value in numbers:
        return numbers[value]
    op = value.owner.opview
    if isinstance(op, arith.ConstantOp):
        return op.literal_value
    left, right = (value_of(operand, numbers) for operand in op.operands)
    return left + right if isinstance(op, arith.AddIOp) else RULES[type(op)](left, right)


@pytest.mark.parametrize(
    ("atom", "operand", "row", "column"),
    [  # PTX ISA: fragments of mma, wgmma D, and tcgen05.ld
        ("m16n8k16", "d", lambda t: t // 4, lambda t: t % 4 * 2),
        ("m64n32k16", "d", lambda t: t // 32 * 16 + t % 32 // 4, lambda t: t % 4 * 2),
        ("16x256b.x2", None, lambda t: t // 4, lambda t: t % 4 * 2),
        ("16x32bx2.x8", None, lambda t: t % 16, lambda t: t // 16 * 8),
        ("32x32b.x4", None, lambda t: t, lambda _: 0),
    ],
)
def test_the_first_value_is_where_the_tables_have_it(atom, operand, row, column):
    with lent_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            lane, warp = constant(7), constant(1)
            fragment = find_fragment(atom, operand, 32)
            found = row_in(fragment, lane, warp), column_in(fragment, lane, warp)
        for thread in range(fragment.threads):
            numbers = {lane: thread % 32, warp: thread // 32}
            place = tuple(value_of(value, numbers) for value in found)
            assert place == (row(thread), column(thread)), thread


@pytest.mark.parametrize("origins", [((0, 0), (8, 0), (0, 8), (8, 8)), ((0, 0), (0, 1)), ((0, 0),)])
def test_matrices_begin_at_the_sums_of_the_second_origin_and_the_third(origins):
    for number, origin in enumerate(origins):
        assert (matrix_row(origins, number), matrix_column(origins, number)) == origin


def test_origins_that_no_bits_of_a_number_add_up_to_are_refused():
    with pytest.raises(AssertionError):
        matrix_row(((0, 0), (8, 0), (0, 8), (16, 16)), 0)
