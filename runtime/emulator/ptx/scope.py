"""Names of a kernel and where they are declared: registers, variables, labels, functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import syntax
from .values import Type


@dataclass(frozen=True)
class Register:
    """type: as declared."""

    slot: int
    bits: int
    type: Type


@dataclass(frozen=True)
class Placed:
    """A variable and where it lives: `space` is a state space, or `call-param` for the
    parameters of a function that is called (they live in per-thread memory)."""

    space: str
    variable: syntax.Variable
    offset: int | None


@dataclass
class Scope:
    """The names declared in one `{ … }` and, through `outer`, around it.

    A register or variable holds from its declaration on: what a block declares behind its first
    instructions goes to a further scope. Labels hold in the whole block; lines: where each name of
    the block is declared, which has one meaning there (PTX ISA §4.4, §5.4).
    """

    function: FunctionCode
    outer: Scope | None = None
    lines: dict[str, int] = field(default_factory=dict)
    registers: dict[str, Register] = field(default_factory=dict)
    variables: dict[str, Placed] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    vectors: dict[str, syntax.Vector] = field(default_factory=dict)

    def _find(self, table: str, name: str):
        scope: Scope | None = self
        while scope is not None:
            found = getattr(scope, table).get(name)
            if found is not None:
                return found
            scope = scope.outer
        return None

    def register(self, name: str) -> Register | None:
        return self._find("registers", name)

    def vector(self, name: str) -> syntax.Vector | None:
        """The elements of a vector register."""
        return self._find("vectors", name)

    def variable(self, name: str) -> Placed | None:
        return self._find("variables", name)

    def label(self, name: str) -> int | None:
        """The pc of a label."""
        return self._find("labels", name)

    def table(self, name: str) -> tuple[str, ...] | None:
        """The labels of a `.branchtargets` list."""
        return self._find("tables", name)


@dataclass
class FunctionCode:
    """A function in the flat code: its first pc, and its parameters in its own scope."""

    function: syntax.Function
    pc: int
    calls: set[str] = field(default_factory=set)
    scope: Scope | None = None

    @property
    def is_entry(self) -> bool:
        return self.function.is_entry
