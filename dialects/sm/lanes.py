"""Shuffles and votes within a warp."""

from ..integer_types import I1, I32
from ..mlir import ext, ir
from .types import Instruction, verify_choice

LANE_BITS = (1, 2, 4, 8, 16)
F32 = ir.F32Type


class ShuffleOp(Instruction, name="shuffle"):
    """`result`: the value of the lane whose number differs by the bit `apart` (PTX ISA, shfl.bfly).

    All 32 lanes run it together.
    """

    apart: ir.IntegerAttr
    value: ext.Operand[F32]
    result: ext.Result[F32]

    def verify_invariants(self) -> bool:
        return verify_choice(self, "apart", LANE_BITS)


class ShuffleUpOp(Instruction, name="shuffle_up"):
    """`result`: the value of the lane `apart` numbers before, of the first ones their own (PTX ISA,
    shfl.up).

    All 32 lanes run it together.
    """

    apart: ir.IntegerAttr
    value: ext.Operand[I32]
    result: ext.Result[I32] = ext.infer_result()

    def verify_invariants(self) -> bool:
        return verify_choice(self, "apart", LANE_BITS)


class ShuffleFromOp(Instruction, name="shuffle_from"):
    """`result`: the value that lane `lane` has (PTX ISA, shfl.idx).

    All 32 lanes run it together.
    """

    value: ext.Operand[I32]
    lane: ext.Operand[I32]
    result: ext.Result[I32] = ext.infer_result()


class BallotOp(Instruction, name="ballot"):
    """`lanes`: a bit for each lane, 1 where the flag holds, that of lane 0 the lowest (PTX ISA,
    vote.ballot).

    All 32 lanes run it together.
    """

    flag: ext.Operand[I1]
    lanes: ext.Result[I32] = ext.infer_result()
