"""Ops that are built with keywords alone are those that the declared constructor makes."""

import pytest

from tilewright.dialects.context import make_context
from tilewright.dialects.mlir import ir
from tilewright.dialects.sm.threads import TeamOp
from tilewright.dialects.tile.threads import ThreadColumnOp
from tilewright.dialects.tile_types import AccumulatorType


@pytest.fixture
def sums():
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        tile = ir.TypeAttr.get(ir.Type.parse("tensor<128x64xf32>"))
        with ir.InsertionPoint(module.body):
            made = ir.Operation.create("test.sums", results=[AccumulatorType.get(tile)])
            made.context.allow_unregistered_dialects = True
            yield made.results[0]


def test_keywords_make_the_op_that_positions_make(sums):
    eight = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 8)
    by_name = ThreadColumnOp(sums=sums, neighbours=eight)
    assert str(by_name) == str(ThreadColumnOp(sums, eight)).replace("%2", "%1")
    assert by_name.column.type == ir.IntegerType.get_signless(32)
    assert TeamOp().thread.type == by_name.column.type


@pytest.mark.parametrize("wrong", [{}, {"neighbors": None}])
def test_a_field_that_is_missing_or_unknown_is_refused(sums, wrong):
    with pytest.raises(TypeError):
        ThreadColumnOp(sums=sums, **wrong)
