"""Builders for the ops of upstream's `llvm` dialect, at the current insertion point.

They are built by name. The bindings' module of the dialect makes two classes for each of its 340
ops, which a compilation would wait for and not use. test/dialects/test_upstream_ops.py holds
names, operands and attributes to those classes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .mlir import LLVM_BINDING, ir

PointerType = LLVM_BINDING.PointerType
Values = Sequence[ir.Value]

# Enumerations of LLVM's, which the ops have as integers (LLVMEnums.td).
ADD, UINC_WRAP = 1, 15
MONOTONIC, ACQUIRE_RELEASE = 2, 6
DYNAMIC_INDEX = -(2**31)
ASM_LINES = "\n\t"
"""Between the instructions of an asm."""


def _value(name: str, type_: ir.Type, operands: Values, **attributes: ir.Attribute) -> ir.Value:
    made = ir.Operation.create(
        f"llvm.{name}", results=[type_], operands=operands, attributes=attributes
    )
    return made.result


def _i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _aligned(alignment: int | None) -> dict[str, ir.Attribute]:
    """The attribute of a load or store; bytes, or what the type has by itself."""
    return {} if alignment is None else {"alignment": _i64(alignment)}


def load(
    type_: ir.Type, pointer: ir.Value, alignment: int | None = None, invariant: bool = False
) -> ir.Value:
    """Invariant: nobody writes there as long as the kernel runs."""
    kept = {"invariant": ir.UnitAttr.get()} if invariant else {}
    return _value("load", type_, [pointer], **_aligned(alignment), **kept)


def store(value: ir.Value, pointer: ir.Value, alignment: int | None = None) -> None:
    ir.Operation.create("llvm.store", operands=[value, pointer], attributes=_aligned(alignment))


def alloca(pointer: ir.Type, count: ir.Value, element: ir.Type) -> ir.Value:
    return _value("alloca", pointer, [count], elem_type=ir.TypeAttr.get(element))


def element_pointer(base: ir.Value, element: ir.Type, offset: ir.Value) -> ir.Value:
    """`base` moved by `offset` elements."""
    return _pointer_at(base, element, [DYNAMIC_INDEX], [offset])


def member_pointer(base: ir.Value, struct: ir.Type, index: int) -> ir.Value:
    """Pointer to a member of the struct at `base`."""
    return _pointer_at(base, struct, [0, index], [])


def _pointer_at(base: ir.Value, type_: ir.Type, indices: list[int], dynamic: Values) -> ir.Value:
    return _value(
        "getelementptr",
        base.type,
        [base, *dynamic],
        rawConstantIndices=ir.DenseI32ArrayAttr.get(indices),
        elem_type=ir.TypeAttr.get(type_),
    )


def address_of(pointer: ir.Type, symbol: str) -> ir.Value:
    return _value("mlir.addressof", pointer, [], global_name=ir.FlatSymbolRefAttr.get(symbol))


def zero(type_: ir.Type) -> ir.Value:
    return _value("mlir.zero", type_, [])


def undef(type_: ir.Type) -> ir.Value:
    return _value("mlir.undef", type_, [])


def bitcast(type_: ir.Type, value: ir.Value) -> ir.Value:
    return _value("bitcast", type_, [value])


def addrspacecast(type_: ir.Type, value: ir.Value) -> ir.Value:
    return _value("addrspacecast", type_, [value])


def ptrtoint(type_: ir.Type, value: ir.Value) -> ir.Value:
    return _value("ptrtoint", type_, [value])


def inttoptr(type_: ir.Type, value: ir.Value) -> ir.Value:
    return _value("inttoptr", type_, [value])


def extractvalue(type_: ir.Type, struct: ir.Value, index: int) -> ir.Value:
    return _value("extractvalue", type_, [struct], position=ir.DenseI64ArrayAttr.get([index]))


def insertvalue(struct: ir.Value, value: ir.Value, index: int) -> ir.Value:
    position = ir.DenseI64ArrayAttr.get([index])
    return _value("insertvalue", struct.type, [struct, value], position=position)


def shufflevector(type_: ir.Type, a: ir.Value, b: ir.Value, mask: Sequence[int]) -> ir.Value:
    return _value("shufflevector", type_, [a, b], mask=ir.DenseI32ArrayAttr.get(list(mask)))


def fma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """`a · b + c`, rounded once."""
    return _value("intr.fma", a.type, [a, b, c])


def fshr(high: ir.Value, low: ir.Value, bits: ir.Value) -> ir.Value:
    """The low word of `high:low` shifted right by bits."""
    return _value("intr.fshr", high.type, [high, low, bits])


def call_intrinsic(type_: ir.Type, name: str, values: Values) -> ir.Value:
    return _value(
        "call_intrinsic",
        type_,
        values,
        intrin=ir.StringAttr.get(name),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(values), 0]),
    )


def inline_asm(
    type_: ir.Type, values: Values, text: str, constraints: str, has_side_effects: bool = False
) -> ir.Value:
    """Without side effects LLVM may drop it, move it, and run it once for two that are the same."""
    effects = {"has_side_effects": ir.UnitAttr.get()} if has_side_effects else {}
    return _value(
        "inline_asm",
        type_,
        values,
        asm_string=ir.StringAttr.get(text),
        constraints=ir.StringAttr.get(constraints),
        **effects,
    )


def asm_statement(text: str, values: Values = (), constraints: str = "") -> None:
    """An asm that gives nothing, and stays where it is."""
    attributes = {"asm_string": text, "constraints": constraints}
    ir.Operation.create(
        "llvm.inline_asm",
        operands=values,
        attributes={
            **{name: ir.StringAttr.get(each) for name, each in attributes.items()},
            "has_side_effects": ir.UnitAttr.get(),
        },
    )


def fence(ordering: int, scope: str) -> None:
    ir.Operation.create(
        "llvm.fence",
        attributes={"ordering": _i64(ordering), "syncscope": ir.StringAttr.get(scope)},
    )


def atomicrmw(
    operation: int, pointer: ir.Value, value: ir.Value, ordering: int, scope: str
) -> ir.Value:
    """The value before."""
    return _value(
        "atomicrmw",
        value.type,
        [pointer, value],
        bin_op=_i64(operation),
        ordering=_i64(ordering),
        syncscope=ir.StringAttr.get(scope),
    )


def global_(
    symbol: str,
    type_: ir.Type,
    space: int,
    linkage: str,
    *,
    alignment: int | None = None,
    constant: ir.Attribute | None = None,
) -> None:
    """A variable in an address space, or a constant with its value."""
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "global_type": ir.TypeAttr.get(type_),
        "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
        "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), space),
        **_aligned(alignment),
    }
    if constant is not None:
        attributes |= {"constant": ir.UnitAttr.get(), "value": constant}
    ir.Operation.create("llvm.mlir.global", attributes=attributes, regions=1)


def func(symbol: str, type_: ir.Type, arguments: Sequence[ir.Attribute]) -> ir.Operation:
    """A function without a body yet, and the attributes of its arguments."""
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "function_type": ir.TypeAttr.get(type_),
        "arg_attrs": ir.ArrayAttr.get(list(arguments)),
    }
    return ir.Operation.create("llvm.func", attributes=attributes, regions=1)


def return_() -> None:
    ir.Operation.create("llvm.return")
