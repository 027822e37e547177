"""What the code of a module may read: names of attributes, and values from around it.

    def forward(self, x):
        return helper(self.layer(x)) * self.scale * CONFIG["scale"] * factor

reads the attributes `layer` and `scale`, the globals `helper` and `CONFIG`, `factor` from the
function around it, and what `helper` reads. Code that reads attributes by names that it makes, by
`getattr`, may read all that there are.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from .module_values import (
    ABSENT,
    UNNAMED,
    around,
    classes_of_user,
    is_module,
    is_of_user,
    wrapped_by,
)

if TYPE_CHECKING:
    import torch

CALLS_MOST = 3
"""How often a part may call another part's method in another's."""
BY_ANY_NAME = frozenset({"getattr", "vars", "__dict__"})
"""What reads attributes that code does not name."""
CALLED = frozenset(["forward"])
ENVIRONMENT = frozenset({"environ", "getenv"})
COLLECTIONS_MOST = 2
"""How deep code is looked for in collections."""


Code = FunctionType | type
"""Functions, and classes with methods."""


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
    """The names of attributes that the code of a module may read, what it reads outside, and the
    functions that this code is."""

    names: frozenset[str]
    outside: tuple[Outside, ...]
    functions: tuple[FunctionType, ...]


def names_read_by(module: torch.nn.Module) -> frozenset[str]:
    """The names of attributes that code of a module and its parts may read, which may call methods
    of each other."""
    kinds = {(type(each), own_code(each)) for each in module.modules()}
    names = CALLED
    for _ in range(CALLS_MOST):
        names |= {name for each in kinds for name in read_by(*each, names).names}
    if names & BY_ANY_NAME:
        names |= {name for each in module.modules() for name in vars(each)}
    # Of torch's own attributes a kernel knows what is to be known, and its tables are read apart.
    return names - _of_torch()


def reads_mode(module: torch.nn.Module) -> bool:
    """Whether a module's own code reads its mode, as that of Dropout and BatchNorm does."""
    return "training" in read_by(type(module), own_code(module), CALLED).names


def own_code(module: torch.nn.Module) -> tuple[Code, ...]:
    """Functions that a module has itself, as a forward of its own, and classes of its objects."""
    own = (value for name, value in vars(module).items() if name not in _of_torch())
    return tuple(dict.fromkeys(each for value in own for each in _code_in(value)))


@functools.cache
def _of_torch() -> frozenset[str]:
    """Names of what every module has."""
    import torch

    return frozenset(vars(torch.nn.Module()))


def _code_in(value: Any, depth: int = COLLECTIONS_MOST) -> Iterator[Code]:
    """Functions and the user's classes that a value is, has or is of."""
    function, within = function_of(value), wrapped_by(value)
    kind = value if isinstance(value, type) else type(value)
    if function is not None:
        yield function
    elif classes_of_user(kind) or is_module(value):
        yield kind
    if within is None and isinstance(value, list | tuple | dict):
        within = tuple(value.values()) if isinstance(value, dict) else tuple(value)
    for each in within if within and depth else ():
        yield from _code_in(each, depth - 1)


def read_by(kind: type, own: tuple[Code, ...], called: frozenset[str]) -> Reads:
    """Of the methods of a class that are called, of what these call of it and of the user's own
    functions, and of functions and objects that a module of it has itself."""
    if own or classes_of_user(kind):  # which may hold whole modules, or change
        return _read_by(kind, own, called)
    return _read_by_class(kind, called)


@functools.lru_cache(1024)
def _read_by_class(kind: type, called: frozenset[str]) -> Reads:
    return _read_by(kind, (), called)


def _read_by(kind: type, own: tuple[Code, ...], called: frozenset[str]) -> Reads:
    methods, left = list[tuple[str, Any]](), list[FunctionType | None]()
    names, outside, seen = set[str](), list[Outside](), set[Code]()

    def add(code: Code) -> None:
        if isinstance(code, FunctionType):
            left.append(code)
        elif code not in seen:
            seen.add(code)
            methods.extend(_methods_of(code))
            left.extend(_called(code, called))

    for each in (kind, *own):
        add(each)
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
            for code in (code for each in found for code in _code_in(each.value())):
                if is_of_user(code.__module__) or isinstance(code, type):
                    add(code)
    functions = tuple(each for each in seen if isinstance(each, FunctionType))
    return Reads(frozenset(names), tuple(outside), functions)


def _methods_of(kind: type) -> list[tuple[str, Any]]:
    import torch

    classes = [each for each in kind.__mro__ if each not in torch.nn.Module.__mro__]
    return [pair for made in classes for pair in vars(made).items()]


def _called(kind: type, called: frozenset[str]) -> Iterator[FunctionType | None]:
    """Methods of a class that are called, also by what is no name."""
    yield from (function_of(each) for name, each in _methods_of(kind) if name in called)
    for made in classes_of_user(kind):
        yield from (function_of(each) for name, each in vars(made).items() if name in UNNAMED)


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
    if named & ENVIRONMENT:
        for key in sorted(filter(_is_text, function.__code__.co_consts)):
            yield Outside(f"the environment's {key}", key, _environment)
    for name in sorted(around(function)):
        where = functools.partial(around, function)
        yield Outside(f"{name} around {function.__name__}", name, where)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _environment() -> dict[str, Any]:
    return {sys.intern(name): sys.intern(value) for name, value in os.environ.items()}


def _same(space: dict[str, Any]) -> dict[str, Any]:
    return space


def function_of(value: Any) -> FunctionType | None:
    """The function that a method, a property or a cached function is; None for what is none."""
    within = wrapped_by(value)
    value = within[0] if within and not isinstance(value, functools.partial) else value
    return value if isinstance(value, FunctionType) else None


def module_of(value: Any) -> Any:
    """The name of the module of Python in which a function or class was made."""
    return getattr(value, "__module__", None)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
