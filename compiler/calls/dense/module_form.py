"""What a kernel depends on in a module besides its tensors: its code and constants.

    module.act = GELU()          another code
    module.scale = 3.0           a number that was a constant of the kernel, also of the class, of
                                 a configuration, a list or a global
    register_forward_hook(f)     what else is computed, also by register_module_forward_hook
    with torch.autocast(…):      the types in which torch computes
    set_default_dtype(…)         the type of numbers and of tensors that code makes

Parameters and buffers are arguments of the kernel, and may be others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from ....dialects.errors import CompileError
from ..kernels.function_keys import LIBRARIES
from .module_watch import Watch

if TYPE_CHECKING:
    import torch

HOOKS = ("_forward_pre_hooks", "_forward_hooks")
HOOKS_OF_ALL = ("_global_forward_pre_hooks", "_global_forward_hooks")
"""Of every module, as `torch.nn.modules.module` names them."""
TABLES = ("_parameters", "_buffers")
DEFAULT = "torch's default dtype"
PLAIN = (int, float, complex, bool, str, bytes, tuple, type(None))
ABSENT = ...  # which a copy in another process is, too
GIVEN = "a tensor"
SAME = "the same"
NESTED_MOST = 4
"""How deep collections and objects are looked into."""
CALLS_MOST = 3
"""How often a part may call another part's method in another's."""
ANEW = "compile the module again"


class Part(NamedTuple):
    """A module within another: its class, the attributes that its code reads, and its hooks."""

    kind: type
    read: dict[str, Any]
    hooks: tuple[Any, ...]


class Constant:
    """A tensor, and how often it was changed in place; a copy of both begins to count anew."""

    def __init__(self, tensor: torch.Tensor, is_same: bool = True):
        self.tensor, self.changes = tensor, _changes(tensor) if is_same else -1

    def __reduce__(self) -> Any:
        return Constant, (self.tensor, self.changes == _changes(self.tensor))


def _changes(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


class Form(NamedTuple):
    """What a module is made of, by dotted names, of which "" is itself; and the names of attributes
    that its code may read."""

    names: frozenset[str]
    parts: dict[str, Part]


def form_of(module: torch.nn.Module) -> Form:
    """The form that a module has now."""
    names = _names_read_by(module)
    return Form(names, _parts_of(module, names))


def watch_of() -> Watch:
    """What lets `check_form` see at once that nothing has changed since it looked."""
    return Watch(_changes)


def check_form(where: str, module: torch.nn.Module, form: Form, watch: Watch) -> None:
    """Raise CompileError where a module is another one than it was when it had this form."""
    if watch.holds(module):
        return
    watch.forget()
    was, now = form.parts, _parts_of(module, form.names)
    for path in [*was, *(path for path in now if path not in was)]:
        change = _changed(path or "the module", was.get(path), now.get(path))
        if change:
            raise CompileError(f"{where}: {change}; {ANEW}")
    _keep(watch, module, form.names)


def _keep(watch: Watch, module: torch.nn.Module, names: frozenset[str]) -> None:
    """Let a watch see all that `_parts_of` looks at."""
    around: dict[tuple[int, str], dict[str, Any]] = {}
    for each in module.modules():
        own = vars(each)
        watch.watch_kind(each)
        watch.watch_keys(own)
        _keep_values(watch, own, names & own.keys(), names, NESTED_MOST)
        for table in ("_modules", *HOOKS, *TABLES):
            held = own[table]
            watch.watch_keys(held)
            is_tensors = table in TABLES  # which a call reads again
            watch.watch(held, (key for key in held if not is_tensors or held[key] is None))
        watch.watch(own, ("_modules", *HOOKS, *TABLES))
        outside = _read_by(type(each), own.get("forward"), names).outside
        around |= {(id(where), name): where for name, where in outside}
    for (_, name), where in around.items():
        watch.watch(where, [name])
    for table in _hooks_of_all():
        watch.watch_keys(table)
    watch.watch_result(_default_dtype)
    for kind in {type(each) for each in module.modules()}:
        watch.watch_class(kind, _plain_of(kind, names))
    watch.module = module


def _keep_values(
    watch: Watch, held: dict[Any, Any], keys: Iterable[Any], names: frozenset[str], depth: int
) -> None:
    keys = [*keys]
    watch.watch(held, keys)
    for key in keys:
        _keep_value(watch, held[key], names, depth)


def _keep_value(watch: Watch, value: Any, names: frozenset[str], depth: int) -> None:
    """Watch a value as deeply as `_now` looks into it."""
    if hasattr(value, "_version"):
        watch.watch_tensor(value)
    elif depth and isinstance(value, (list, tuple)):
        if isinstance(value, list):
            watch.watch_list(value)
        for each in value:
            _keep_value(watch, each, names, depth - 1)
    elif depth and isinstance(value, dict):
        watch.watch_keys(value)
        _keep_values(watch, value, value, names, depth - 1)
    elif depth and _is_of_user(type(value).__module__) and hasattr(value, "__dict__"):
        inner = vars(value)
        watch.watch_keys(inner)
        _keep_values(watch, inner, names & inner.keys(), names, depth - 1)


def _names_read_by(module: torch.nn.Module) -> frozenset[str]:
    """The names that a module and its submodules read, which may call methods of each other."""
    import torch

    kinds = {(type(each), vars(each).get("forward")) for each in module.modules()}
    names = frozenset(["forward"])
    for _ in range(CALLS_MOST):
        names |= {name for each in kinds for name in _read_by(*each, names).names}
    # Of torch's own attributes a kernel knows what is to be known, and its tables are read apart.
    return names - {*vars(torch.nn.Module())}


def _parts_of(module: torch.nn.Module, names: frozenset[str]) -> dict[str, Part]:
    found = {path: _part(each, names) for path, each in module.named_modules()}
    hooks = [each for table in _hooks_of_all() for each in table.values()]
    own = [each for each in hooks if _is_of_user(_module(getattr(each, "func", each)))]
    read = found[""].read | _default_of(module)
    return found | {"": found[""]._replace(hooks=(*found[""].hooks, *own), read=read)}


def _default_of(module: torch.nn.Module) -> dict[str, Any]:
    """The type that torch gives what it makes of numbers, where the user's own code may make some;
    layers of torch make none."""
    kinds = {type(each) for each in module.modules()}
    own = any(_is_of_user(kind.__module__) for kind in kinds)
    own = own or any("forward" in vars(each) for each in module.modules())
    return {DEFAULT: str(_default_dtype())} if own else {}


def _default_dtype() -> Any:
    import torch

    return torch.get_default_dtype()


def _hooks_of_all() -> list[dict[Any, Any]]:
    """Hooks of every module. Those of torch itself look on, as for counting operations."""
    from torch.nn.modules import module

    return [getattr(module, name) for name in HOOKS_OF_ALL]


def check_autocast(where: str, operand: torch.Tensor, compiled_in: Any) -> None:
    """Raise CompileError where torch would cast an operand of a product that was compiled in
    another autocast, or in none."""
    found = autocast_of(operand)
    if found in (compiled_in, operand.dtype) or operand.dtype not in _cast():
        return
    rule = f"{where}: autocast must be that in which it was compiled, {compiled_in}"
    raise CompileError(f"{rule}, got {found}; leave it by torch.autocast(…, enabled=False)")


def autocast_of(operand: torch.Tensor) -> Any:
    """The type to which torch casts operands of products where this one lies; None for none."""
    import torch

    place = operand.device.type
    if place == "meta":  # of which torch knows none
        return None
    return torch.get_autocast_dtype(place) if torch.is_autocast_enabled(place) else None


def _cast() -> tuple[Any, ...]:
    import torch

    return torch.float32, torch.float16, torch.bfloat16


def _changed(path: str, was: Part | None, now: Part | None) -> str | None:
    if was is None or now is None:
        one, other = (each.kind.__name__ if each else "nothing" for each in (was, now))
        return f"{path} must be {one}, as it was compiled, got {other}"
    if now.kind is not was.kind:
        rule = f"{path} must be a {was.kind.__name__}, as it was compiled"
        return f"{rule}, got a {now.kind.__name__}"
    for name in {**was.read, **now.read}:
        before, after = was.read.get(name, ABSENT), now.read.get(name, ABSENT)
        if before is not GIVEN and not _is_same(before, after):
            rule = f"{path}: {name} must be {_shown(before)}, as it was compiled"
            return f"{rule}, got {_shown(after).replace(SAME, 'another')}"
    if not _is_same(was.hooks, now.hooks):
        return f"{path} must have the hooks with which it was compiled, got others"
    return None


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are one, or numbers and texts that are alike."""
    if one is other:
        return True
    if isinstance(one, Constant) and isinstance(other, Constant):
        return one.tensor is other.tensor and one.changes == other.changes
    if type(one) is not type(other) or not isinstance(one, PLAIN):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return repr(one) == repr(other)  # which tells -0.0 from 0.0, and knows nan


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "that of its class"
    value = value.tensor if isinstance(value, Constant) else value
    return repr(value) if isinstance(value, PLAIN) else f"{SAME} {type(value).__name__}"


def _part(module: torch.nn.Module, names: frozenset[str]) -> Part:
    own = vars(module)
    hooks = [each for name in HOOKS for each in own[name].values()]
    read = _attributes(module, names)
    for name, where in _read_by(type(module), own.get("forward"), names).outside:
        read[f"the global {name}"] = where.get(name, ABSENT)
    return Part(type(module), read, tuple(hooks))


def _attributes(module: torch.nn.Module, names: frozenset[str]) -> dict[str, Any]:
    """The values of names, also of numbers and texts of the class; of parameters and buffers only
    whether there is one."""
    kind, own = type(module), vars(module)
    found = {name: getattr(kind, name) for name in _plain_of(kind, names)}
    found |= {name: _now(own[name], names, NESTED_MOST) for name in names & own.keys()}
    for table in TABLES:
        given = own[table]
        found |= {name: None if given[name] is None else GIVEN for name in names & given.keys()}
    return found


@functools.lru_cache(1024)
def _plain_of(kind: type, names: frozenset[str]) -> list[str]:
    return [name for name in names if isinstance(getattr(kind, name, ABSENT), PLAIN)]


def _now(value: Any, names: frozenset[str], depth: int) -> Any:
    """A value as it is: of a collection what it holds, of an object what code may read of it, and
    of a tensor that is no buffer, a constant of the kernel, which of its changes it is."""
    if hasattr(value, "_version"):
        return Constant(value)
    if depth and isinstance(value, (list, tuple)):
        return type(value).__name__, *(_now(each, names, depth - 1) for each in value)
    if depth and isinstance(value, dict):
        return "dict", *((key, _now(value[key], names, depth - 1)) for key in value)
    if depth and _is_of_user(type(value).__module__) and hasattr(value, "__dict__"):
        held = vars(value)
        inner = (name for name in sorted(names & {*held}))
        return value, *((name, _now(held[name], names, depth - 1)) for name in inner)
    return value


def _is_of_user(module: str | None) -> bool:
    top = str(module or "builtins").partition(".")[0]
    return top == "test" or top not in (*LIBRARIES, "builtins", "tilewright")


class Reads(NamedTuple):
    """The names of attributes that the code of a module may read, and the globals that are numbers
    or texts, with where they stand."""

    names: frozenset[str]
    outside: tuple[tuple[str, dict[str, Any]], ...]


def reads_mode(module: torch.nn.Module) -> bool:
    """Whether a module's own code reads its mode, as that of Dropout and BatchNorm does."""
    forward = vars(module).get("forward")
    return "training" in _read_by(type(module), forward, frozenset(["forward"])).names


@functools.lru_cache(1024)
def _read_by(kind: type, forward: Any, called: frozenset[str]) -> Reads:
    """Of the methods of a class that are called, of what these call of it and of the user's own
    functions, and of a forward of the module's own."""
    import torch

    classes = [each for each in kind.__mro__ if each not in torch.nn.Module.__mro__]
    methods = [pair for made in classes for pair in vars(made).items()]
    left = [_function_of(each) for name, each in methods if name in called]
    left.append(_function_of(forward))
    names, outside, seen = set[str](), dict[str, dict[str, Any]](), {None}
    while left:
        function = left.pop()
        if function in seen:
            continue
        seen.add(function)
        own = set(_names(function.__code__))
        names |= own
        left += [_function_of(each) for name, each in methods if name in own]
        if _is_of_user(function.__module__):
            around = function.__globals__
            found = {name: around[name] for name in own if name in around}
            left += [_function_of(each) for each in found.values() if _is_of_user(_module(each))]
            outside |= {name: around for name in found if isinstance(found[name], PLAIN)}
    return Reads(frozenset(names), tuple(outside.items()))


def _function_of(value: Any) -> Any:
    """The function that a method or property is; None for what is none."""
    value = getattr(value, "fget", getattr(value, "__func__", value))
    return value if isinstance(value, FunctionType) else None


def _module(value: Any) -> Any:
    return getattr(value, "__module__", None)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
