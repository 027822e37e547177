"""Looking for ops of a kind."""

from tilewright.dialects.context import lent_context
from tilewright.dialects.mlir import arith, ir, scf
from tilewright.dialects.pipe import ReleaseOp
from tilewright.passes.base import operations_named, walk

LOOPS = """
func.func @f(%zero: index, %one: index, %two: index, %three: index) {
  scf.for %a = %zero to %one step %one {
    scf.for %b = %one to %one step %one {
      %c = arith.constant 1 : i32
    }
    scf.for %b = %two to %one step %one { }
  }
  scf.for %a = %three to %one step %one { }
  %d = arith.constant 2 : i32
  return
}
"""


def starts(loops):
    return [ir.BlockArgument(loop.operation.operands[0]).arg_number for loop in loops]


def test_they_come_in_program_order_and_the_root_is_none_of_them():
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(LOOPS)
        loops = walk(module, scf.ForOp)
        assert starts(loops) == [0, 1, 2, 3]
        assert starts(walk(loops[0], scf.ForOp)) == [1, 2]
        assert walk(loops[2], scf.ForOp) == walk(module, ReleaseOp) == []
        assert starts(operations_named(module, "scf.for")) == [0, 1, 2, 3]


def test_of_several_kinds_they_are_among_each_other():
    with lent_context(), ir.Location.unknown():
        found = walk(ir.Module.parse(LOOPS), scf.ForOp | arith.ConstantOp)
        names = [op.operation.name.partition(".")[2] for op in found]
        assert names == ["for", "for", "constant", "for", "for", "constant"]
