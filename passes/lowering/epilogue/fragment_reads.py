"""`tile.await_sums` and `tile.read_fragment`: a thread's part of 16 rows of accumulators."""

from __future__ import annotations

from ....dialects import llvm
from ....dialects.mlir import ir
from ....dialects.target import WARP_THREADS
from ....dialects.tile.pieces import ReadFragmentOp
from ....dialects.tile.stores import AwaitSumsOp
from ....dialects.tile.threads import MATRIX_VALUES
from ...base import refused
from ...clone import constant_of
from ...places import ATOM_M
from ...team import Team
from ..registers.elements import joined
from ..registers.register_accumulator import parts, pinned, struct_of_type
from ..registers.tensor_memory import LANE, lanes_of, read_matrices
from ..registers.warp_accumulator import ATOM_M as WARP_ATOM_M
from ..registers.warp_accumulator import FRAGMENT, WarpSums
from ..scales.block_factors import atom_slots
from ..scales.group_scales import scaled_rows
from ..scope.scope import Scope, lowered_as, lowered_parts, sums_at


def await_sums(_: Scope, op: AwaitSumsOp) -> ir.Value:
    """The sums stay where they are."""
    return op.acc


def await_registers(scope: Scope, op: AwaitSumsOp) -> ir.Value:
    """From here on the registers may be read: the MMAs are done."""
    struct = struct_of_type(op.acc.type)
    atoms = [pinned(llvm.load(struct, slot)) for slot in atom_slots(scope, op.acc)]
    values = [
        value
        for number, atom in enumerate(atoms)
        for value in scaled_rows(scope, op.acc, number, parts(atom))
    ]
    return lowered_as(values, op.sums.type)


def read_tensor_memory(scope: Scope, op: ReadFragmentOp) -> ir.Value:
    """One tcgen05.ld.16x256b of 16 of the warp's lanes."""
    m, n = op.sums.type.shape
    atom_m = scope.mma_rows(m)
    atom, half = divmod(op.row.value, atom_m)
    if half >= atom_m // 4:
        rule = f"row must be below the {atom_m // 4} that a warp has of each {atom_m}"
        raise refused(op, f"{rule}, got {op.row.value}; read those of another MMA")
    if _count(op) // 2 not in MATRIX_VALUES:
        known = ", ".join(str(2 * each) for each in MATRIX_VALUES)
        raise refused(op, f"must give {known} values, got {_count(op)}; read fewer columns")
    base, first = sums_at(op.sums)
    lanes = lanes_of(Team.of(op).thread // WARP_THREADS) + half * LANE
    column = op.start + (first + atom * n)
    return read_matrices(2 * _count(op), op.sums.type.element, base + (lanes + column))


def read_registers(_: Scope, op: ReadFragmentOp) -> ir.Value:
    """The registers of an accumulator that hold some columns: two per four columns."""
    held, half = lowered_parts(op.sums), op.sums.type.shape[1] // 2
    first = op.row.value // ATOM_M * half
    return joined(_part(op, held[first : first + half], _start(op) // 2, _count(op)))


def read_warp(scope: Scope, op: ReadFragmentOp) -> ir.Value:
    """The registers of the MMAs side by side that have the columns."""
    held, first = WarpSums.of(scope, op.sums), _start(op) // FRAGMENT.shape[1]
    number = op.row.value // WARP_ATOM_M
    row = list(held.slots[number]) if number < len(held.slots) else []
    slots = _part(op, row, first, _count(op) // FRAGMENT.values)
    atoms = [llvm.load(held.struct, slot) for slot in slots]
    return joined([value for atom in atoms for value in parts(atom)])


def _count(op: ReadFragmentOp) -> int:
    return ir.VectorType(op.values.type).shape[0]


def _start(op: ReadFragmentOp) -> int:
    start = constant_of(op.start)
    if start is None:
        rule = "a piece of sums in registers must start at a constant, got a value"
        raise refused(op, f"{rule}; unroll the loop")
    if start % FRAGMENT.shape[1]:
        raise refused(op, f"start must be a multiple of {FRAGMENT.shape[1]}, got {start}; round it")
    return start


def _part(op: ReadFragmentOp, held: list[ir.Value], first: int, count: int) -> list[ir.Value]:
    """Some of what a thread holds of a row of MMAs."""
    found = held[first : first + count] if first >= 0 else []
    if len(found) != count:
        got = f"row {op.row.value} from column {_start(op)} on"
        raise refused(op, f"the sums must be ones that a thread has, got {got}; read those")
    return found
