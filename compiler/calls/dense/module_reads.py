"""What the code of a module may read: names of attributes, and values from around it.

    def forward(self, x):
        return helper(self.layer(x)) * self.scale * CONFIG["scale"] * factor

reads the attributes `layer` and `scale`, the globals `helper` and `CONFIG`, `factor` from the
function around it, and what `helper` reads. Code that reads attributes by names that it makes, by
`getattr`, may read all that there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from .module_values import ABSENT, around, is_of_user

if TYPE_CHECKING:
    import torch

CALLS_MOST = 3
"""How often a part may call another part's method in another's."""
BY_ANY_NAME = frozenset({"getattr", "vars", "__dict__"})
"""What reads attributes that code does not name."""
CALLED = frozenset(["forward"])


class Outside(NamedTuple):
    """Something that code reads from around it: its name in messages, and the names and values
    among which it is found, which those of a module or a function are."""

    shown: str
    name: str
    around: Callable[[], dict[str, Any]]

    def value(self) -> Any:
        """What it is now."""
        return self.around().get(self.name, ABSENT)


class Reads(NamedTuple):
    """The names of attributes that the code of a module may read, and what it reads outside."""

    names: frozenset[str]
    outside: tuple[Outside, ...]


def names_read_by(module: torch.nn.Module) -> frozenset[str]:
    """The names of attributes that code of a module and its parts may read, which may call methods
    of each other."""
    import torch

    kinds = {(type(each), own_functions(each)) for each in module.modules()}
    names = CALLED
    for _ in range(CALLS_MOST):
        names |= {name for each in kinds for name in read_by(*each, names).names}
    if names & BY_ANY_NAME:
        names |= {name for each in module.modules() for name in vars(each)}
    # Of torch's own attributes a kernel knows what is to be known, and its tables are read apart.
    return names - {*vars(torch.nn.Module())}


def reads_mode(module: torch.nn.Module) -> bool:
    """Whether a module's own code reads its mode, as that of Dropout and BatchNorm does."""
    return "training" in read_by(type(module), own_functions(module), CALLED).names


def own_functions(module: torch.nn.Module) -> tuple[FunctionType, ...]:
    """Functions that a module has itself, as a forward of its own."""
    found = map(function_of, vars(module).values())
    return tuple(each for each in found if each is not None)


@functools.lru_cache(1024)
def read_by(kind: type, own: tuple[FunctionType, ...], called: frozenset[str]) -> Reads:
    """Of the methods of a class that are called, of what these call of it and of the user's own
    functions, and of functions that a module of it has itself."""
    import torch

    classes = [each for each in kind.__mro__ if each not in torch.nn.Module.__mro__]
    methods = [pair for made in classes for pair in vars(made).items()]
    left = [function_of(each) for name, each in methods if name in called]
    left += own
    names, outside, seen = set[str](), list[Outside](), set[FunctionType]()
    while left:
        function = left.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        named = set(_names(function.__code__))
        names |= named
        left += [function_of(each) for name, each in methods if name in named]
        if is_of_user(function.__module__):
            found = [*_outside(function, named)]
            outside += found
            values = [each.value() for each in found]
            left += [function_of(each) for each in values if is_of_user(module_of(each))]
    return Reads(frozenset(names), tuple(outside))


def _outside(function: FunctionType, named: set[str]) -> Iterator[Outside]:
    """The globals, also those of the user's own modules, locals of functions around, and defaults
    that a function reads."""
    space = function.__globals__
    for name in sorted(named & space.keys()):
        yield Outside(f"the global {name}", name, functools.partial(_same, space))
        if isinstance(space[name], ModuleType) and is_of_user(space[name].__name__):
            inner = vars(space[name])
            for each in sorted(named & inner.keys()):
                yield Outside(f"the global {name}.{each}", each, functools.partial(_same, inner))
    for name in sorted(around(function)):
        where = functools.partial(around, function)
        yield Outside(f"{name} around {function.__name__}", name, where)


def _same(space: dict[str, Any]) -> dict[str, Any]:
    return space


def function_of(value: Any) -> FunctionType | None:
    """The function that a method or property is; None for what is none."""
    value = getattr(value, "fget", getattr(value, "__func__", value))
    return value if isinstance(value, FunctionType) else None


def module_of(value: Any) -> Any:
    """The name of the module of Python in which a function or class was made."""
    return getattr(value, "__module__", None)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
