"""Values of the interpreter: floats and truth values as `Interval`, integers exactly in int64.

An integer is held in two's complement of its own width, sign extended; MLIR's have no sign, so each
op says how it reads them. A tensor is an array of its shape, a scalar one without dimensions.
"""

# The upstream builders have no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np

from ...dialects.errors import CompileError
from ...dialects.mlir import ir
from ...runtime.judge.intervals import Interval

Value = Interval | np.ndarray
FLOATS = ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2")
INDEX_BITS = 64


def refuse(op: Any, what: str) -> NoReturn:
    """Raise the error for what the interpreter doesn't evaluate."""
    operation = op.operation
    place = re.search(r'"([^"]+)":(\d+):(\d+)', str(operation.location))
    name = operation.name
    cure = "compare with a formula of your own (tilewright emulate, or Python)"
    raise CompileError(
        f"{name}: the reference evaluates no {what}; {cure}",
        ":".join(place.groups()) if place else None,
    )


def element_type(type_: ir.Type) -> str:
    """The name of a scalar's type, or of a tensor's elements'."""
    found = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    return str(found)


def bits_of(name: str) -> int | None:
    """The width of an integer type, None if it is none."""
    if name == "index":
        return INDEX_BITS
    return int(name[1:]) if re.fullmatch(r"i\d+", name) else None


def is_float(name: str) -> bool:
    """Whether a type's values are floats that the interpreter knows."""
    return name in FLOATS


def wrap(values: Any, bits: int) -> np.ndarray:
    """int64 values as `bits` of them hold it, sign extended."""
    shift = np.int64(64 - bits)
    return (np.asarray(values, np.int64) << shift) >> shift


def unsigned(values: np.ndarray, bits: int, op: Any) -> np.ndarray:
    """The same bits read without a sign."""
    if bits >= 64:
        refuse(op, "unsigned integer of 64 bits")
    return values & np.int64((1 << bits) - 1)


def truth(values: Any) -> Interval:
    """Exact truth values."""
    return Interval.exactly(np.asarray(values, np.float64))


def constant(op: Any) -> Value:
    """The value of an arith.constant; a dense one need not be a splat."""
    attribute = op.attributes["value"]
    type_ = op.results[0].type
    if not isinstance(type_, ir.RankedTensorType):
        return of_type(op, attribute.value, str(type_))
    if not isinstance(attribute, ir.DenseElementsAttr):
        refuse(op, f"constant like {attribute}")
    dense: Any = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        scalar = of_type(op, dense.get_splat_value().value, element_type(type_))
        return places(scalar, lambda part: np.broadcast_to(part, type_.shape))
    try:
        elements = np.array([float(element) for element in dense], np.float64)
    except TypeError:
        refuse(op, f"dense constant of {element_type(type_)}")
    return of_type(op, elements.reshape(type_.shape), element_type(type_))


def of_type(op: Any, number: Any, name: str) -> Value:
    """A number, or an array of them, as a value of a type."""
    if name == "i1":
        return truth(np.asarray(number) != 0)
    bits = bits_of(name)
    if bits is not None:
        return wrap(number, bits)
    if not is_float(name):
        refuse(op, f"value of type {name}")
    return Interval.exactly(number)


def places(value: Value, function: Any) -> Any:
    """The elements of a value in other places."""
    return value.reshaped(function) if isinstance(value, Interval) else function(value)
