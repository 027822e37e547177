"""Keys of Python functions from which kernels are made.

A lambda in a loop is a new object each time, and the same function as long as its code, and what it
reads from around it, are the same:

    lambda acc: helper(acc) * config.scale.alpha     reads   helper, config.scale.alpha

What it reads is looked up anew in each call, as the function itself would. A value at the end of
such a path counts by what it holds, as nobody knows what of it is read. A function of which nobody
knows what it reads, as one that evaluates text, is like no other, and is traced in each call.
"""

from __future__ import annotations

import builtins
import dis
import functools
import importlib
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

COLLECTIONS = (tuple, list, dict, set, frozenset, functools.partial)
"""Those that are the same as others which hold the same."""
NUMBERS = frozenset({int, float, complex, bool, str, bytes, range, slice, type(None)})
LIBRARIES = frozenset({*sys.stdlib_module_names, "numpy", "torch"})
"""Whose functions and classes are taken as they are."""
MISSING = object()
CODES_KEPT = 4096
LIKE_NO_OTHER = object()
"""Among what is kept of a function whose key is equal to none."""
OPEN = (globals, eval, exec, __import__, importlib.import_module, sys._getframe)
"""By which a function reads what its code does not name."""
STATES = ("is_grad_enabled", "is_inference_mode_enabled")
"""Functions of torch that tell what another call may find otherwise."""
CHANGING = ("random", "time", "datetime", "secrets", "uuid", "numpy.random")
"""Libraries whose functions give something else in each call."""


class UnknownReads(Exception):
    """Nobody knows what a function reads."""


class Path(NamedTuple):
    """What a function reads: a global, a local from around it or a module that it imports, by its
    name, and attributes from there on."""

    kind: str
    name: str
    attributes: tuple[str, ...]


class Read(NamedTuple):
    """What code reads of globals and modules and of locals, and all names in it; with functions
    within it. `code` is kept, as it is known by its identity."""

    code: CodeType
    outside: tuple[Path, ...]
    locals: tuple[Path, ...]
    names: tuple[str, ...]


_read: dict[int, Read] = {}


def function_key(function: Any, kept: list[Any]) -> Any:
    """Equal for functions that compute the same of the same arguments.

    Numbers that a function reads from around it count by their values, functions, collections and
    objects by what they hold. `kept` gets the objects whose identity is in the key, so that none is
    another's while it is held, and `LIKE_NO_OTHER` where the key is equal to none.
    """
    torch = sys.modules.get("torch")
    try:
        return _Keys(kept).of_called(function), torch and torch.get_default_dtype()
    except (RecursionError, UnknownReads):  # what nests too deeply, or reads what it does not name
        kept.append(LIKE_NO_OTHER)
        return object()


class _Keys:
    """The keys of values that one function reaches; of each object once, as they may be cyclic."""

    def __init__(self, kept: list[Any]):
        self.kept = kept
        self.known: dict[int, int] = {}
        self.names: list[tuple[str, ...]] = []

    def of_called(self, function: Any) -> Any:
        """The key of what is called with the sums."""
        if isinstance(function, FunctionType | MethodType | functools.partial):
            return self.of(function)
        called = getattr(type(function), "__call__", None)  # noqa: B004
        own = isinstance(called, FunctionType) and not _is_library(called.__module__)
        return self.of(function), self._function(called, function) if own else None

    def of(self, value: Any) -> Any:
        """The key of a value, for what nobody knows of it to be read."""
        kind = type(value)
        if kind in NUMBERS:
            return kind, repr(value)  # which tells -0.0 from 0.0
        number = self.known.get(id(value))
        if number is not None:
            return "again", number
        self.known[id(value)] = len(self.known)
        self.kept.append(value)
        _check_named(value)
        if kind is FunctionType:
            return self._function(value), *map(self.of, vars(value).items())
        if kind is MethodType:
            return "method", self._function(value.__func__, value.__self__)
        if kind is BuiltinFunctionType and not isinstance(value.__self__, type | ModuleType | None):
            return "method", value.__name__, self.of(value.__self__)
        if _is_constant(value):
            return id(value)
        if kind.__module__ == "numpy" and hasattr(value, "tobytes"):
            elements = value.tobytes() if not value.dtype.hasobject else self.of(value.tolist())
            return str(value.dtype), value.shape, elements
        same = kind if isinstance(value, COLLECTIONS) else id(value)
        return same, self._within(value), *self._held(value)

    def _within(self, value: Any) -> Any:
        """The key of what an object has that is no attribute of it."""
        if isinstance(value, Mapping):
            return tuple((self.of(name), self.of(each)) for name, each in value.items())
        if isinstance(value, Set):
            return tuple(map(self.of, sorted(value, key=repr)))
        if isinstance(value, Sequence):
            return tuple(map(self.of, value))
        if isinstance(value, functools.partial):
            return self.of((value.func, value.args, value.keywords))
        if isinstance(value, ContextVar):
            return self.of(value.get(MISSING))
        if isinstance(value, weakref.ref):
            return self.of(value())
        if isinstance(value, property):
            return self.of(value.fget)
        return None

    def _function(self, function: Any, owner: Any = MISSING) -> Any:
        """A function by its code and what it reads, that of an object by what it reads of it."""
        if not isinstance(function, FunctionType) or (
            _is_library(function.__module__) and not function.__closure__
        ):
            self.kept.append(function)
            return id(function), None if owner is MISSING else self.of(owner)
        read = _what_is_read(function.__code__)
        self.names.append(read.names)
        found = [read.code, *[self._at(path, function.__globals__) for path in read.outside]]
        around = _surroundings(function, owner) if read.locals else None
        return *found, *[self._at(path, around) for path in read.locals if around]

    def _at(self, path: Path, around: dict[str, Any]) -> Any:
        """The key of what is at the end of a path."""
        if path.kind == "module":
            if path.name not in sys.modules:  # or is named from a package
                raise UnknownReads
            return self.of(sys.modules[path.name])
        value = around.get(path.name, MISSING)
        if value is MISSING and path.kind == "global":
            value = _attribute(builtins, path.name)
        for name in path.attributes:
            if value is MISSING:
                break
            attribute = _attribute(value, name)
            _check_named(attribute)
            if _is_constant(value):
                break
            value = attribute
        return self.of(value)

    def _held(self, value: Any) -> Iterator[Any]:
        """What an object or class holds: its attributes, and those of classes outside libraries."""
        if isinstance(value, ModuleType):  # of which only attributes are read
            names = dict.fromkeys(name for names in self.names for name in names)
            yield from ((name, self.of(_attribute(value, name))) for name in names)
            return
        classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
        for each in classes:
            own = () if _is_library(each.__module__) else tuple(vars(each).items())
            for name, attribute in own:
                if isinstance(attribute, MemberDescriptorType) and value is not each:
                    yield name, self.of(_attribute(value, name))
                elif not (name.startswith("__") and name.endswith("__")) or name == "__call__":
                    yield name, self.of(attribute)
        if not isinstance(value, type):
            for name, each in getattr(value, "__dict__", {}).items():
                yield name, self.of(each)


def _surroundings(function: FunctionType, owner: Any) -> dict[str, Any]:
    """The cells of a function by their names, and the values of its parameters."""
    code, found = function.__code__, dict(function.__kwdefaults__ or {})
    if not (function.__closure__ or function.__defaults__ or owner is not MISSING):
        return found
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # of a name that has no value yet
            continue
    last = code.co_varnames[: code.co_argcount][::-1]
    found |= zip(last, (function.__defaults__ or ())[::-1], strict=False)
    if owner is not MISSING and code.co_argcount:
        found[code.co_varnames[0]] = owner
    return found


def _what_is_read(code: CodeType) -> Read:
    """What code reads; by its identity, as comparing code takes long."""
    found = _read.get(id(code))
    if found is None:
        inner = [_what_is_read(each) for each in code.co_consts if isinstance(each, CodeType)]
        paths = [*_paths(code), *(path for each in inner for path in (*each.outside, *each.locals))]
        names = (*code.co_names, *(name for each in inner for name in each.names))
        outside = dict.fromkeys(path for path in paths if path.kind != "local")
        if len(_read) >= CODES_KEPT:
            _read.clear()
        own = (*code.co_freevars, *code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        around = dict.fromkeys(each for each in paths if each.kind == "local" and each.name in own)
        found = _read[id(code)] = Read(code, tuple(outside), tuple(around), names)
    return found


def _paths(code: CodeType) -> Iterator[Path]:
    """What the instructions of code read."""
    path = None
    for each in dis.get_instructions(code):
        if path and each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path = path._replace(attributes=(*path.attributes, each.argval))
            continue
        if path:
            yield path
        path = None
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            path = Path("global", each.argval, ())
        elif each.opname == "IMPORT_NAME":
            path = Path("module", each.argval, ())
        elif each.opname.startswith("LOAD_") and each.opcode in (*dis.haslocal, *dis.hasfree):
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            yield from (Path("local", name, ()) for name in names[:-1])
            path = Path("local", names[-1], ())


def _check_named(value: Any) -> None:
    """Raise UnknownReads of what reads what code does not name, or gives another result each time:
    iterators, random numbers, clocks, states of torch."""
    if any(value is each for each in OPEN) or _is_changing(value):
        raise UnknownReads
    if _made_in(value).startswith("torch") and getattr(value, "__name__", "") in STATES:
        raise UnknownReads


def _is_changing(value: Any) -> bool:
    """Whether a value gives something else each time: iterators, random numbers, clocks."""
    made_in = _made_in(value)
    is_open = made_in in CHANGING or made_in.startswith("numpy.random.")
    return is_open or isinstance(value, Iterator)


def changing_read(function: FunctionType, owner: Any) -> str | None:
    """What a function, as a method of an object, reads that gives something else each time."""
    read = _what_is_read(function.__code__)
    around = _surroundings(function, owner)
    for path in (*read.outside, *read.locals):
        found = around if path.kind == "local" else function.__globals__
        value = sys.modules.get(path.name) if path.kind == "module" else found.get(path.name)
        for name in path.attributes:
            if isinstance(value, Iterator):
                break
            value = _attribute(value, name)
        if not isinstance(value, ModuleType) and _is_changing(value):
            return ".".join((path.name, *path.attributes))
    return None


def _made_in(value: Any) -> str:
    """The name of the module in which a function was made, or the class of a method's object."""
    if isinstance(value, ModuleType):
        return value.__name__
    if not callable(value):
        return ""
    owner = _attribute(value, "__self__")
    kind = owner if isinstance(owner, type) else type(owner)
    return str(_attribute(value, "__module__") or kind.__module__)


def _attribute(value: Any, name: str) -> Any:
    """An attribute, or that there is none: the function itself will meet what is raised."""
    try:
        return getattr(value, name, MISSING)
    except Exception:  # a property's own
        return MISSING


@functools.cache
def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in LIBRARIES


def _is_constant(value: Any) -> bool:
    """Whether what a value holds is taken as it is: libraries, and what is written in C."""
    kind = type(value)
    if kind is ModuleType:
        return _is_library(value.__name__) and value.__name__ != "os"
    return kind is BuiltinFunctionType or (kind is type and _is_library(value.__module__))
