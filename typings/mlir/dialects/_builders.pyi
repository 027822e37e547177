"""The shapes that many generated builders have; all take `loc` and `ip` by name."""

from collections.abc import Sequence
from typing import Protocol

from ..ir import InsertionPoint, Location, OpResult, OpView, Type, Value

class Nullary(Protocol):
    def __call__(
        self,
        *,
        results: Sequence[Type] | None = None,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> OpResult: ...

class Unary(Protocol):
    def __call__(
        self, operand: Value, *, loc: Location | None = None, ip: InsertionPoint | None = None
    ) -> OpResult: ...

class Binary(Protocol):
    def __call__(
        self,
        lhs: Value,
        rhs: Value,
        *,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> OpResult: ...

class Ternary(Protocol):
    def __call__(
        self,
        a: Value,
        b: Value,
        c: Value,
        *,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> OpResult: ...

class Cast(Protocol):
    def __call__(
        self,
        out: Type,
        in_: Value,
        *,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> OpResult: ...

# An instruction without operands.
class Statement(Protocol):
    def __call__(
        self, *, loc: Location | None = None, ip: InsertionPoint | None = None
    ) -> OpView: ...
