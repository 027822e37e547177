"""The integer types that ops are declared with, by their width."""

from typing import TYPE_CHECKING, TypeAlias

from .mlir import ir

if TYPE_CHECKING:  # a width is no type to a type checker
    I1: TypeAlias = ir.IntegerType
    I16: TypeAlias = ir.IntegerType
    I32: TypeAlias = ir.IntegerType
    I128: TypeAlias = ir.IntegerType
else:
    I1, I16, I32, I128 = (ir.IntegerType[bits] for bits in (1, 16, 32, 128))
