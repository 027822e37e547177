"""Values that a module's code reads: what they hold, whether that is the same, and how it is seen.

3.0, "relu", (1, 2)           by what they are
[2.0], {"scale": 2.0}         by what they hold: lists, dicts, sets, arrays, partial functions
options (a user's object)     by the attributes that code may read
a tensor                      by which one it is, and how often it changed in place
a function                    by its code, its defaults and what it has from around it
classes, methods, others      by which one they are
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from types import CodeType, FunctionType, MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kernels.function_keys import LIBRARIES
from .module_watch import Watch

if TYPE_CHECKING:
    import torch

PLAIN = (int, float, complex, bool, str, bytes, tuple, type(None))
ABSENT = ...  # which a copy in another process is, too
SAME = "the same"
NESTED_MOST = 4
"""How deep collections and objects are looked into."""
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
    """Whether a value is a tensor; an nn.Module has a `_version`, too."""
    return hasattr(value, "_version") and hasattr(value, "is_inference")


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
    if not depth:
        return value
    inner = functools.partial(value_now, names=names, depth=depth - 1)
    kind = type(value).__name__
    if isinstance(value, FunctionType):
        around_it = ((name, inner(each)) for name, each in around(value).items())
        return code_of(value.__code__), *around_it
    if isinstance(value, Mapping):
        return "dict", *((key, inner(each)) for key, each in value.items())
    if isinstance(value, Set):
        return kind, *sorted(map(inner, value), key=repr)
    if isinstance(value, Sequence):
        return kind, *map(inner, value)
    if isinstance(value, functools.partial):
        return kind, value.func, inner(value.args), inner(value.keywords)
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return kind, str(value.dtype), value.tobytes()
    held = _attributes_of(value, names)
    return (value, *((name, inner(each)) for name, each in held.items())) if held else value


def found_now(value: Any, names: Collection[str]) -> Any:
    """A value outside a module, as one of its methods or globals, as it is."""
    now = value_now(value, names)
    return now if isinstance(now, (*PLAIN, Constant)) else Found(now, True)


def _attributes_of(value: Any, names: Collection[str]) -> dict[str, Any]:
    """What code may read of an object of the user's, or of a namespace."""
    kind = type(value)
    if isinstance(value, type) or not (is_of_user(kind.__module__) or kind is SimpleNamespace):
        return {}
    slots = _slots_of(kind) if is_of_user(kind.__module__) else ()
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    return {name: held[name] for name in sorted(held.keys() & {*names})}


@functools.lru_cache(1024)
def _slots_of(kind: type) -> tuple[str, ...]:
    found = (pair for each in kind.__mro__ for pair in vars(each).items())
    return tuple(name for name, each in found if isinstance(each, MemberDescriptorType))


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
    elif isinstance(value, FunctionType) and not around(value):
        return  # which the watch knows by what has it
    elif value_now(value, names, depth) is not value:
        watch.watch_equal(functools.partial(value_now, value, names, depth), is_same)


def _is_plain_object(value: Any) -> bool:
    """Whether all that an object holds are its attributes."""
    others = Mapping | Set | Sequence | functools.partial | FunctionType | type
    simple = hasattr(value, "__dict__") and not isinstance(value, others)
    return simple and not _slots_of(type(value))
