"""Short names for the ops that passes emit most, at the current insertion point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..dialects import llvm, sm
from ..dialects.integers import constant as constant
from ..dialects.integers import like
from ..dialects.mlir import arith, ir, scf
from ..dialects.sm.types import CLUSTER as CLUSTER
from ..dialects.sm.types import GLOBAL as GLOBAL
from ..dialects.sm.types import SHARED as SHARED
from ..dialects.sm.types import TENSOR as TENSOR


def i1() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def i16() -> ir.Type:
    return ir.IntegerType.get_signless(16)


def i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def pointer(space: int = 0) -> ir.Type:
    """The LLVM pointer type of an address space."""
    return ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")


def signed(word: int) -> int:
    """A 32-bit word as the signed number that an i32 constant takes."""
    return word - 2**32 if word >= 2**31 else word


def f32(value: float) -> ir.Value:
    """A constant of f32."""
    type_ = ir.F32Type.get()
    return arith.ConstantOp(type_, ir.FloatAttr.get(type_, value)).result


def true() -> ir.Value:
    return constant(1, i1())


def as_value(number: ir.Value | int) -> ir.Value:
    """A number as a constant of i32."""
    return constant(number) if isinstance(number, int) else number


def shift_left(number: int, amount: ir.Value) -> ir.Value:
    """A constant shifted by a run-time amount."""
    return arith.shli(constant(number), amount)


def both(left: ir.Value | None, right: ir.Value | None) -> ir.Value | None:
    """The conjunction of two predicates, None standing for true."""
    if left is None or right is None:
        return left if right is None else right
    return arith.andi(left, right)


def less(left: ir.Value, right: int | ir.Value) -> ir.Value:
    """Unsigned `left < right`."""
    assert not isinstance(right, int) or right >= 0  # an extent that a launch says is no number
    return arith.cmpi(arith.CmpIPredicate.ult, left, like(left, right))


def as_i32(value: ir.Value) -> ir.Value:
    """index → i32."""
    return arith.index_cast(i32(), value)


def equal(left: ir.Value, right: ir.Value | int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, left, like(left, right))


def widen(value: ir.Value) -> ir.Value:
    """i32 → i64, unsigned."""
    return arith.extui(i64(), value)


def as_index(value: ir.Value) -> ir.Value:
    """i32 → index, unsigned."""
    return arith.index_castui(ir.IndexType.get(), value)


def offset_pointer(base: ir.Value, offset_bytes: ir.Value | int) -> ir.Value:
    """`base` moved by bytes, in the same address space."""
    if isinstance(offset_bytes, int):
        offset_bytes = constant(offset_bytes)
    return element_pointer(base, ir.IntegerType.get_signless(8), offset_bytes)


def element_pointer(base: ir.Value, element: ir.Type, offset: ir.Value) -> ir.Value:
    """`base` moved by `offset` elements, in the same address space.

    LLVM has no floats of 8 bits: translating a pointer to one ends the process.
    """
    if isinstance(element, ir.FloatType) and element.width < 16:
        element = ir.IntegerType.get_signless(element.width)
    return llvm.element_pointer(base, element, offset)


@contextmanager
def when(condition: ir.Value | None) -> Iterator[None]:
    """Emit the body under `if condition` (None: always)."""
    if condition is None:
        yield
        return
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])


@contextmanager
def loop(start: ir.Value, end: int | ir.Value, step: int) -> Iterator[ir.Value]:
    """Emit the body for an i32 counter from `start` below `end`."""
    for_op = scf.ForOp(start, as_value(end), constant(step))
    with ir.InsertionPoint(for_op.body):
        yield for_op.induction_variable
        scf.YieldOp([])


def cluster_barrier(releases: bool = True) -> None:
    """All threads of the cluster meet; what one wrote before (release), all may read (acquire)."""
    sm.ClusterBarrierOp.of(releases=releases)


def barrier_wait(barrier: ir.Value, parity: ir.Value, in_cluster: bool = False) -> None:
    """Wait until the mbarrier's phase of that parity has completed; scopes as those of `arrive`."""
    sm.WaitBarrierOp.of(barrier, parity, scope="cluster" if in_cluster else "cta")


def special(register: str) -> ir.Value:
    """What a special register holds."""
    return sm.SpecialRegisterOp.of(register=register).value


def elect() -> ir.Value:
    """True in one lane of the warp."""
    return sm.ElectOp.of().elected


def fence(kind: str) -> None:
    sm.FenceOp.of(kind=kind)


def shared_at(offset_bytes: ir.Value | int) -> ir.Value:
    """Pointer to a byte of dynamic shared memory."""
    return sm.SharedAddressOp.of(as_value(offset_bytes), pointer=pointer(SHARED)).pointer


def in_cta(address: ir.Value, rank: ir.Value) -> ir.Value:
    """The same place of shared memory in the CTA of that rank."""
    return sm.MapaOp.of(address, rank, remote=pointer(CLUSTER)).remote


def arrive(barrier: ir.Value, in_cluster: bool = False) -> None:
    """One arrival, maybe at another CTA's barrier.

    That reads are over it tells with the scope of the CTA. What threads wrote it passes on
    `in_cluster` alone: that is a memory barrier of the GPU, and drops L1 where one waits.
    """
    sm.ArriveOp.of(barrier, scope="cluster" if in_cluster else "cta")
