"""An interruption while MLIR walks over operations."""

import pytest

from tilewright.dialects.mlir import ir
from tilewright.passes.base import visit_all


@pytest.mark.parametrize(
    ("raised", "seen"), [(KeyboardInterrupt, KeyboardInterrupt), (ValueError, RuntimeError)]
)
def test_an_interrupt_comes_out_as_itself(raised, seen):
    def visit(operation: ir.Operation) -> ir.WalkResult:
        raise raised

    with ir.Context(), ir.Location.unknown(), pytest.raises(seen):
        visit_all(ir.Module.parse("module {}"), visit)
