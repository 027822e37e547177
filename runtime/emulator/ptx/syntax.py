"""The PTX module as a tree of frozen dataclasses: what the parser makes and the decoder reads.

Source: PTX ISA §4 (syntax), §5 (state spaces, types, variables), §6 (operands), §11 (directives).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Symbol:
    """A register, special register (`%tid.x`), variable, label or the sink `_`."""

    name: str


@dataclass(frozen=True)
class Integer:
    """An integer constant, sign kept."""

    value: int


@dataclass(frozen=True)
class Float:
    """A floating constant: its bit pattern at `width` (32 for `0f…`, else 64) bits."""

    bits: int
    width: int


@dataclass(frozen=True)
class SymbolOffset:
    """`symbol+4` or `generic(symbol)+4`; in an initialiser also `0xFF(symbol)` by `mask`."""

    name: str
    offset: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(frozen=True)
class Vector:
    """`{a, b, …}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True)
class Address:
    """`[base+offset]`, or `[base, {coordinates}]` of a tensor copy. Further items go to `rest`."""

    base: Symbol | Integer
    offset: int = 0
    coordinates: Vector | None = None
    rest: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Pair:
    """`d|p`: two results of one instruction."""

    first: Symbol
    second: Symbol


@dataclass(frozen=True)
class Negated:
    """`!p`."""

    operand: Symbol


@dataclass(frozen=True)
class Group:
    """`(a, b)`: the argument or result list of a call."""

    elements: tuple[Operand, ...]


Initial = Symbol | Integer | Float | SymbolOffset
"""A value of an initialiser: a number or an address."""
Operand = Initial | Vector | Address | Pair | Negated | Group


@dataclass(frozen=True)
class Guard:
    """`@p` or `@!p`."""

    register: str
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction; `text` is its source without the final semicolon."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    text: str


@dataclass(frozen=True)
class Label:
    name: str
    line: int
    targets: tuple[str, ...] | None = None
    """The labels of a `.branchtargets` list that this label names, else None."""


@dataclass(frozen=True)
class Variable:
    """A variable in any state space except registers.

    `dims` are the array extents (empty: a scalar; 0 as first extent: unsized), `vector` the
    elements of a `.v2`/`.v4` type, `initializer` the flat list of values or None.
    """

    space: str
    type: str
    name: str
    line: int
    align: int | None = None
    vector: int = 1
    dims: tuple[int, ...] = ()
    initializer: tuple[Initial, ...] | None = None
    extern: bool = False


@dataclass(frozen=True)
class Registers:
    """`.reg .type a, b, %r<10>`; `count` None is a single name, else names `name0…name(n-1)`.

    vector: elements of a `.v2`/`.v4` register, which are called `name.x`, `name.y` …
    """

    type: str
    names: tuple[tuple[str, int | None], ...]
    line: int
    vector: int = 1


@dataclass(frozen=True)
class Block:
    """`{ … }`: a scope of declarations and statements."""

    statements: tuple[Statement, ...]


Statement = Instruction | Label | Variable | Registers | Block


@dataclass(frozen=True)
class Function:
    """`.entry` or `.func`; `body` is None for a declaration.

    `directives` maps a performance directive without its dot to its integers
    (`reqntid: (128,)`, `maxntid`, `reqnctapercluster`, `explicitcluster: ()` …).
    """

    name: str
    is_entry: bool
    params: tuple[Variable | Registers, ...]
    returns: tuple[Variable | Registers, ...]
    directives: dict[str, tuple[int, ...]]
    body: Block | None
    line: int


@dataclass(frozen=True)
class Module:
    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    variables: tuple[Variable, ...]
    functions: dict[str, Function] = field(default_factory=dict)
