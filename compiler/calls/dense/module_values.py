"""Values that a module's code reads: what they hold, whether that is the same, and how it is seen.

3.0, "relu", (1, 2)           by what they are
[2.0], {"scale": 2.0}         by what they hold: lists, dicts, sets, arrays, partial functions
options (a user's object)     by the attributes that code may read, also of its class
a user's class, a namespace   by these, too
a tensor                      by which one it is, and how often it changed in place
a function, a method          by its code, its defaults, what it has from around it, its object
a module that is no part      by its numbers, hooks and parts
others                        by which one they are
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextvars import ContextVar
from threading import local
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary, ref

from ..kernels.function_keys import LIBRARIES
from .module_watch import Watch

if TYPE_CHECKING:
    import torch

PLAIN = (int, float, complex, bool, str, bytes, tuple, type(None))
ABSENT = ...  # which a copy in another process is, too
SAME = "the same"
NESTED_MOST = 6
"""How deep collections and objects are looked into."""
WEAK = (WeakKeyDictionary, WeakValueDictionary, WeakSet)
"""Collections that forget by themselves, as caches do."""
SPACES = (SimpleNamespace, local)
OF_SLOTS = (MemberDescriptorType, GetSetDescriptorType)
UNNAMED = frozenset({
    "__call__", "__getattr__", "__getitem__", "__contains__", "__iter__", "__next__", "__len__",
    "__bool__", "__float__", "__int__", "__index__", "__enter__",
})  # fmt: skip
"""Methods that code calls without their names."""
SHOWN_MOST = 60
OWN_CLASS = "__class__"  # the cell of `super()`


class Constant:
    """A tensor, and how often it was changed in place; a copy of both begins to count anew."""

    def __init__(self, tensor: torch.Tensor, is_same: bool = True):
        self.tensor, self.changes = tensor, changes_of(tensor) if is_same else -1

    def __reduce__(self) -> Any:
        return Constant, (self.tensor, self.changes == changes_of(self.tensor))


class Found:
    """What is found outside a module, by which object it is; which that was is unknown to a copy in
    another process."""

    def __init__(self, value: Any = None, is_known: bool = False):
        self.value, self.is_known = value, is_known

    def __reduce__(self) -> Any:
        return Found, ()

    def __deepcopy__(self, memo: Any) -> Found:
        return self


class Code(NamedTuple):
    """A function by what it does, of which a copy in another process is the same."""

    instructions: bytes
    names: tuple[str, ...]
    constants: tuple[Any, ...]


def changes_of(tensor: torch.Tensor) -> int:
    """How often a tensor was changed in place."""
    return 0 if tensor.is_inference() else tensor._version


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor."""
    import torch

    return isinstance(value, torch.Tensor)


def is_module(value: Any) -> bool:
    """Whether a value is a module of torch."""
    import torch

    return isinstance(value, torch.nn.Module)


def is_of_user(module: str | None) -> bool:
    """Whether a module of Python is the user's own."""
    top = str(module or "builtins").partition(".")[0]
    return top == "test" or top not in (*LIBRARIES, "builtins", "tilewright")


def value_now(value: Any, names: Collection[str], depth: int = NESTED_MOST) -> Any:
    """A value as it is: of a collection what it holds, of an object what code may read of it, and
    of a tensor that is no buffer, a constant of the kernel, which of its changes it is."""
    if is_tensor(value):
        return Constant(value)
    if isinstance(value, PLAIN) and not isinstance(value, tuple):
        return value
    if not depth or isinstance(value, WEAK):
        return value
    inner = functools.partial(value_now, names=names, depth=depth - 1)
    kind = type(value).__name__
    if isinstance(value, FunctionType):
        held = around(value) | _named(vars(value), names)
        pairs = ((name, _found(inner(each))) for name, each in held.items())
        return code_of(value.__code__), *pairs
    if (within := wrapped_by(value)) is not None:
        found = tuple(map(inner, within))
        return kind, *(_found(found) if isinstance(value, ref) else found)
    if isinstance(value, Mapping):
        return "dict", *((key, inner(each)) for key, each in value.items())
    if isinstance(value, Set):
        return kind, *sorted(map(inner, value), key=repr)
    if isinstance(value, Sequence):
        return kind, *map(inner, value)
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return kind, str(value.dtype), value.tobytes()
    held = _attributes_of(value, names)
    return (value, *((name, inner(each)) for name, each in held.items())) if held else value


def found_now(value: Any, names: Collection[str]) -> Any:
    """A value outside a module, as one of its methods or globals, as it is."""
    return _found(value_now(value, names))


def _found(now: Any) -> Any:
    """A value of which a copy has no copy, as of what a function, a class or a reference has."""
    if type(now) is tuple:
        return tuple(map(_found, now))
    return now if isinstance(now, (*PLAIN, Constant, Found)) else Found(now, True)


def wrapped_by(value: Any) -> tuple[Any, ...] | None:
    """What a value stands for that holds nothing else; None for others."""
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, (classmethod, staticmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return (value.fget,)
    if isinstance(value, functools._lru_cache_wrapper):
        return (value.__wrapped__,)
    if isinstance(value, ContextVar):
        return (value.get(ABSENT),)
    return (value(),) if isinstance(value, ref) else None


def _named(held: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: held[name] for name in sorted(held.keys() & {*names})}


def _attributes_of(value: Any, names: Collection[str]) -> dict[str, Any]:
    """What code may read of an object or class of the user's, of a namespace, or of a module."""
    if isinstance(value, type):
        return _of_classes(value, names)
    kind = type(value)
    held = dict[str, Any]()
    if is_of_user(kind.__module__):
        held = {name: getattr(value, name) for name in _slots_of(kind) if hasattr(value, name)}
    elif not is_module(value) and not isinstance(value, SPACES):
        return {}
    held |= getattr(value, "__dict__", {})
    own = _of_classes(kind, names) | _named(held, names)
    return own | _of_module(value) if is_module(value) else own


def _of_module(module: torch.nn.Module) -> dict[str, Any]:
    """What is computed by a module that is no part of the compiled one."""
    code = getattr(type(module).forward, "__code__", None)
    has_mode = code is not None and "training" in code.co_names
    kept = "training", "_forward_pre_hooks", "_forward_hooks", "_modules"
    found = {name: vars(module)[name] for name in kept[not has_mode :]}
    if is_of_user(type(module).__module__):
        return found
    return found | {n: v for n, v in vars(module).items() if n[0] != "_" and n != "training"}


def _of_classes(kind: type, names: Collection[str]) -> dict[str, Any]:
    """What the user's classes have for names, as methods and numbers, by which objects read it."""
    found = dict[str, Any]()
    for each in classes_of_user(kind)[::-1]:
        found |= _named(vars(each), UNNAMED.union(names))
    return {name: value for name, value in found.items() if not isinstance(value, OF_SLOTS)}


@functools.lru_cache(1024)
def classes_of_user(kind: type) -> tuple[type, ...]:
    """A class and those that it inherits from, as far as they are the user's own."""
    return tuple(each for each in kind.__mro__ if is_of_user(each.__module__))


@functools.lru_cache(1024)
def _slots_of(kind: type) -> tuple[str, ...]:
    found = (pair for each in kind.__mro__ for pair in vars(each).items())
    return tuple(name for name, each in found if isinstance(each, MemberDescriptorType))


@functools.lru_cache(1024)
def code_of(code: CodeType) -> Code:
    """What code does, wherever it stands."""
    inner = [code_of(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return Code(code.co_code, (*code.co_names, *code.co_varnames), tuple(inner))


def around(function: FunctionType) -> dict[str, Any]:
    """What a function has from functions around it, and the defaults of its parameters."""
    found, code = dict(function.__kwdefaults__ or {}), function.__code__
    last = code.co_varnames[: code.co_argcount][::-1]
    found |= dict(zip(last, (function.__defaults__ or ())[::-1], strict=False))
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    return found | {name: _contents(cell) for name, cell in cells if name != OWN_CLASS}


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a name that has no value yet
        return ABSENT


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are one, or numbers and texts that are alike."""
    if one is other:
        return True
    if isinstance(one, Constant) and isinstance(other, Constant):
        return one.tensor is other.tensor and one.changes == other.changes
    if isinstance(one, Found) and isinstance(other, Found):
        return one.value is other.value or not (one.is_known and other.is_known)
    if type(one) is not type(other) or not isinstance(one, PLAIN):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return repr(one) == repr(other)  # which tells -0.0 from 0.0, and knows nan


def shown(value: Any) -> str:
    """A value in a message."""
    if value is ABSENT:
        return "that of its class"
    value = value.tensor if isinstance(value, Constant) else value
    value = value.value if isinstance(value, Found) else value
    if isinstance(value, tuple) and value and isinstance(value[0], Code):
        return f"{SAME} function"
    if isinstance(value, tuple) and value[:1] == ("method",):
        return f"{SAME} method"
    if not isinstance(value, PLAIN):
        return f"{SAME} {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= SHOWN_MOST else f"{text[: SHOWN_MOST - 1]}…"


def keep_values(
    watch: Watch,
    held: dict[Any, Any],
    keys: Iterable[Any],
    names: Collection[str],
    depth: int = NESTED_MOST,
) -> None:
    """Let a watch see what a dictionary has for some of its keys, and what that holds."""
    keys = [*keys]
    watch.watch(held, keys)
    for key in keys:
        if key in held:
            keep_value(watch, held[key], names, depth)


def keep_value(watch: Watch, value: Any, names: Collection[str], depth: int = NESTED_MOST) -> None:
    """Let a watch see all that `value_now` looks at."""
    if is_tensor(value):
        watch.watch_tensor(value)
    elif not depth or (isinstance(value, PLAIN) and not isinstance(value, tuple)):
        return
    elif type(value) in (list, tuple):
        if isinstance(value, list):
            watch.watch_list(value)
        for each in value:
            keep_value(watch, each, names, depth - 1)
    elif type(value) is dict:
        watch.watch_keys(value)
        keep_values(watch, value, value, names, depth - 1)
    elif is_of_user(type(value).__module__) and _is_plain_object(value):
        inner = vars(value)
        watch.watch_keys(inner)
        keep_values(watch, inner, {*names} & inner.keys(), names, depth - 1)
        of_class = _of_classes(type(value), names)
        for each in classes_of_user(type(value)):
            watch.watch(vars(each), of_class)
        for each in of_class.values():
            keep_value(watch, each, names, depth - 1)
    elif isinstance(value, FunctionType) and not (around(value) or vars(value)):
        for name in ("__code__", "__defaults__"):
            watch.watch_result(functools.partial(getattr, value, name))
    elif value_now(value, names, depth) is not value:
        watch.watch_equal(functools.partial(value_now, value, names, depth), is_same)


def _is_plain_object(value: Any) -> bool:
    """Whether all that an object holds are its attributes."""
    others = Mapping, Set, Sequence, FunctionType, type
    wraps = wrapped_by(value) is not None or is_module(value)
    simple = hasattr(value, "__dict__") and not wraps and not isinstance(value, others)
    return simple and not _slots_of(type(value))
