from collections.abc import Sequence
from enum import IntEnum

from ..ir import (
    ArrayAttr,
    Attribute,
    DenseI32ArrayAttr,
    OpResult,
    OpView,
    Region,
    StringAttr,
    Type,
    TypeAttr,
    Value,
)
from ._builders import Cast, Ternary

class PointerType(Type):
    @property
    def address_space(self) -> int: ...

class UndefOp(OpView):
    def __init__(self, res: Type) -> None: ...
    @property
    def result(self) -> OpResult: ...

class ZeroOp(OpView):
    def __init__(self, res: Type) -> None: ...
    @property
    def result(self) -> OpResult: ...

class AddressOfOp(OpView):
    def __init__(self, res: Type, global_name: str) -> None: ...

class GEPOp(OpView):
    def __init__(
        self,
        res: Type,
        base: Value,
        dynamicIndices: Sequence[Value],
        rawConstantIndices: Sequence[int] | DenseI32ArrayAttr,
        elem_type: Type,
        noWrapFlags: object,
    ) -> None: ...

class GlobalOp(OpView):
    def __init__(
        self,
        global_type: Type,
        sym_name: str,
        linkage: Attribute,
        *,
        constant: bool | None = None,
        value: object | None = None,
        alignment: int | None = None,
        addr_space: int | None = None,
    ) -> None: ...

class LLVMFuncOp(OpView):
    def __init__(
        self,
        sym_name: str | StringAttr,
        function_type: Type | TypeAttr,
        *,
        arg_attrs: ArrayAttr | None = None,
    ) -> None: ...
    @property
    def body(self) -> Region: ...

class LoadOp(OpView): ...

class AtomicBinOp(IntEnum):
    uinc_wrap = ...

class AtomicOrdering(IntEnum):
    monotonic = ...
    acq_rel = ...

def atomicrmw(
    bin_op: AtomicBinOp,
    ptr: Value,
    val: Value,
    ordering: AtomicOrdering,
    *,
    syncscope: str | None = None,
) -> OpResult: ...
def fence(ordering: AtomicOrdering, *, syncscope: str | None = None) -> OpView: ...

addrspacecast: Cast
bitcast: Cast
inttoptr: Cast
ptrtoint: Cast
intr_fshr: Ternary

def alloca(
    res: Type, array_size: Value, elem_type: Type, *, alignment: int | None = None
) -> OpResult: ...
def call_intrinsic(
    results_: Type | None,
    intrin: str,
    args: Sequence[Value],
    op_bundle_operands: Sequence[Value],
    op_bundle_sizes: Sequence[int],
) -> OpResult: ...
def insertvalue(container: Value, value: Value, position: Sequence[int]) -> OpResult: ...
def extractvalue(res: Type, container: Value, position: Sequence[int]) -> OpResult: ...
def inline_asm(
    res: Type | None,
    operands_: Sequence[Value],
    asm_string: str,
    constraints: str,
    *,
    has_side_effects: bool | None = None,
) -> OpResult: ...
def load(
    res: Type,
    addr: Value,
    *,
    alignment: int | None = None,
    volatile_: bool | None = None,
    nontemporal: bool | None = None,
    invariant: bool | None = None,
) -> OpResult: ...
def return_(*, arg: Value | None = None) -> OpView: ...
def mlir_zero(res: Type) -> OpResult: ...
def shufflevector(res: Type, v1: Value, v2: Value, mask: Sequence[int]) -> OpResult: ...
def store(
    value: Value,
    addr: Value,
    *,
    alignment: int | None = None,
    volatile_: bool | None = None,
    nontemporal: bool | None = None,
) -> OpView: ...
def intr_fma(a: Value, b: Value, c: Value) -> OpResult: ...
