"""Copies between global and shared memory in `sm`, and cluster launch control."""

from collections.abc import Sequence
from typing import Any

from ..integer_types import I1, I16, I32, I128
from ..layout import UNIT_BYTES
from ..mlir import ext, ir
from ..tile_types import TensorMapType, element_bytes
from ..verify import refuse
from .types import (
    CTA_GROUPS,
    GENERIC,
    GLOBAL,
    SCOPES,
    SHARED,
    Instruction,
    verify_choice,
    verify_pointer,
    verify_range,
)

CP_ASYNC_BYTES = {"ca": (4, 8, 16), "cg": (16,)}
CLAIM_FIELDS = ("claimed", "x", "y")
COPIES_PENDING_MAX = 64


class PrefetchTensorMapOp(Instruction, name="prefetch_tensor_map"):
    """Fetches a tensor map, so that the first copy by it need not wait.

    `map` is a pointer to it once `select-instructions` has made it a parameter of the kernel.
    """

    map: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        return isinstance(self.map.type, TensorMapType) or verify_pointer(self, "map", GENERIC)


class LoadOnceOp(Instruction, name="load_once"):
    """`value`: 16 bytes of global memory that the kernel reads once and does not write, so that L1
    keeps others (PTX ISA, ld.global.nc with .L1::no_allocate)."""

    address: ext.Operand[Any]
    value: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        got, (count,) = self.value.type, self.value.type.shape
        if count * element_bytes(got.element_type) != UNIT_BYTES:
            return refuse(self, f"must give a vector of {UNIT_BYTES} bytes, got {got}")
        return verify_pointer(self, "address", GENERIC, GLOBAL)


class PrefetchBoxOp(Instruction, name="prefetch_box"):
    """Asks L2 for one box of a tensor, without waiting for it."""

    map: ext.Operand[Any]
    coordinates: Sequence[ext.Operand[I32]]

    def verify_invariants(self) -> bool:
        if not 1 <= len(self.coordinates) <= 5:
            return refuse(self, f"a tensor has 1 to 5 dimensions, got {len(self.coordinates)}")
        return verify_pointer(self, "map", GENERIC)


class TmaLoadOp(Instruction, name="tma_load"):
    """Starts a TMA copy of one box of a tensor to shared memory; `barrier` counts its bytes.

    `to` is in the "cta" or, with a `mask` of ranks, at the same place in each such CTA of the
    "cluster". With `cta_group` 2 the barrier may be that of the pair's other CTA.
    """

    to: ext.Operand[Any]
    map: ext.Operand[Any]
    barrier: ext.Operand[Any]
    coordinates: Sequence[ext.Operand[I32]]
    destination: ir.StringAttr
    cta_group: ir.IntegerAttr
    mask: ext.Operand[I16] | None = None

    def verify_invariants(self) -> bool:
        if not 1 <= len(self.coordinates) <= 5:
            return refuse(self, f"a tensor has 1 to 5 dimensions, got {len(self.coordinates)}")
        if self.mask is not None and self.destination.value == "cta":
            return refuse(self, 'a mask needs the destination "cluster", got "cta"')
        return (
            verify_pointer(self, "to", SHARED)
            and verify_pointer(self, "map", GENERIC)
            and verify_pointer(self, "barrier", SHARED)
            and verify_choice(self, "destination", SCOPES)
            and verify_choice(self, "cta_group", CTA_GROUPS)
        )


class TmaGatherOp(Instruction, name="tma_gather"):
    """Starts a TMA copy of four rows of a matrix to shared memory; `barrier` counts their bytes.

    `coordinates` are the first column and the rows. With `cta_group` 2 the barrier may be that of
    the pair's other CTA.
    """

    to: ext.Operand[Any]
    map: ext.Operand[Any]
    barrier: ext.Operand[Any]
    coordinates: Sequence[ext.Operand[I32]]
    cta_group: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if len(self.coordinates) != 5:
            rule = "coordinates must be a column and four rows"
            return refuse(self, f"{rule}, got {len(self.coordinates)}")
        return (
            verify_pointer(self, "to", SHARED)
            and verify_pointer(self, "map", GENERIC)
            and verify_pointer(self, "barrier", SHARED)
            and verify_choice(self, "cta_group", CTA_GROUPS)
        )


class TmaStoreOp(Instruction, name="tma_store"):
    """Starts a TMA copy of one box of a tensor from shared memory; the bulk group has it."""

    map: ext.Operand[Any]
    source: ext.Operand[Any]
    coordinates: Sequence[ext.Operand[I32]]

    def verify_invariants(self) -> bool:
        if not 1 <= len(self.coordinates) <= 5:
            return refuse(self, f"a tensor has 1 to 5 dimensions, got {len(self.coordinates)}")
        return verify_pointer(self, "map", GENERIC) and verify_pointer(self, "source", SHARED)


class BulkCommitOp(Instruction, name="bulk_commit"):
    """Closes this thread's bulk group: what it has started since the last one."""


class BulkWaitOp(Instruction, name="bulk_wait"):
    """Waits until all but the `pending` newest bulk groups have read their sources."""

    pending: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_range(self, "pending", 0, COPIES_PENDING_MAX)


class CpAsyncOp(Instruction, name="cp_async"):
    """Starts this thread's copy of `bytes` bytes from global to shared memory.

    Of these, `read` bytes are read where it is given, the others are zero. `cache` says which
    level keeps them: "ca" all, "cg" L2.
    """

    to: ext.Operand[Any]
    source: ext.Operand[Any]
    bytes: ir.IntegerAttr
    cache: ir.StringAttr
    read: ext.Operand[I32] | None = None

    def verify_invariants(self) -> bool:
        if not verify_choice(self, "cache", tuple(CP_ASYNC_BYTES)):
            return False
        return (
            verify_choice(self, "bytes", CP_ASYNC_BYTES[self.cache.value])
            and verify_pointer(self, "to", SHARED)
            and verify_pointer(self, "source", GLOBAL)
        )


class CpAsyncCommitOp(Instruction, name="cp_async_commit"):
    """Closes this thread's group of `sm.cp_async` copies."""


class CpAsyncWaitOp(Instruction, name="cp_async_wait"):
    """Waits until all but the `pending` newest groups of `sm.cp_async` copies are done."""

    pending: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_range(self, "pending", 0, COPIES_PENDING_MAX)


class StmatrixOp(Instruction, name="stmatrix"):
    """The warp stores an 8x8 matrix of 16 bits for each word; `to` is this lane's row."""

    to: ext.Operand[Any]
    words: Sequence[ext.Operand[I32]]

    def verify_invariants(self) -> bool:
        if len(self.words) not in (1, 2, 4):
            return refuse(self, f"must store 1, 2 or 4 matrices, got {len(self.words)}")
        return verify_pointer(self, "to", SHARED)


class StmatrixTransposedOp(StmatrixOp, name="stmatrix_transposed"):
    """The same, of matrices whose columns become rows in memory (PTX ISA, stmatrix.trans)."""


class TryCancelOp(Instruction, name="try_cancel"):
    """Asks launch control for a cluster that has not been launched; `barrier` counts the answer.

    Its 16 bytes go to `to`, with `multicast` in every CTA of the cluster.
    """

    to: ext.Operand[Any]
    barrier: ext.Operand[Any]
    multicast: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "to", SHARED) and verify_pointer(self, "barrier", SHARED)


class QueryCancelOp(Instruction, name="query_cancel"):
    """Reads launch control's answer: whether a cluster is "claimed" (i1), its first CTA's "x", "y".

    The latter are defined where one is claimed.
    """

    answer: ext.Operand[I128]
    field: ir.StringAttr
    value: ext.Result[I1 | I32]

    def verify_invariants(self) -> bool:
        return verify_choice(self, "field", CLAIM_FIELDS)
