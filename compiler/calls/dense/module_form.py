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
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ....dialects.errors import CompileError
from ..kernels.function_keys import changing_read
from .module_reads import Outside, module_of, names_read_by, own_code, read_by
from .module_values import (
    ABSENT,
    SAME,
    changes_of,
    found_now,
    is_of_user,
    is_same,
    keep_value,
    keep_values,
    shown,
    value_now,
)
from .module_watch import Watch

if TYPE_CHECKING:
    import torch

HOOKS = ("_forward_pre_hooks", "_forward_hooks")
HOOKS_OF_ALL = ("_global_forward_pre_hooks", "_global_forward_hooks")
"""Of every module, as `torch.nn.modules.module` names them."""
TABLES = ("_parameters", "_buffers")
DEFAULT = "torch's default dtype"
STATES = frozenset({
    "is_grad_enabled", "is_inference_mode_enabled", "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision", "get_default_device",
})  # fmt: skip
"""Functions of torch that tell its states."""
GIVEN = "a tensor"
ANEW = "compile the module again"


class Part(NamedTuple):
    """A module within another: its class, the attributes that its code reads, and its hooks."""

    kind: type
    read: dict[str, Any]
    hooks: tuple[Any, ...]


class Form(NamedTuple):
    """What a module is made of, by dotted names, of which "" is itself; and the names of attributes
    that its code may read."""

    names: frozenset[str]
    parts: dict[str, Part]


def form_of(module: torch.nn.Module) -> Form:
    """The form that a module has now."""
    names = names_read_by(module)
    return Form(names, _parts_of(module, names))


def check_reads(where: str, module: torch.nn.Module) -> None:
    """Raise CompileError where code gives something else each time, of which a kernel would keep
    the first."""
    names = names_read_by(module)
    for each in module.modules():
        for function in read_by(type(each), own_code(each), names).functions:
            taken = is_of_user(function.__module__) and changing_read(function, each)
            if taken:
                rule = f"{where}: code must take no random numbers, no clock and no iterator"
                place = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
                cure = "give the number as an input or a buffer"
                raise CompileError(f"{rule}, got {taken} in {function.__name__}; {cure}", place)


def watch_of() -> Watch:
    """What lets `check_form` see at once that nothing has changed since it looked."""
    return Watch(changes_of)


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
    for each in module.modules():
        own = vars(each)
        watch.watch_kind(each)
        watch.watch_keys(own)
        keep_values(watch, own, names & own.keys(), names)
        for table in ("_modules", *HOOKS, *TABLES):
            held = own[table]
            watch.watch_keys(held)
            is_tensors = table in TABLES  # which a call reads again
            watch.watch(held, (key for key in held if not is_tensors or held[key] is None))
        watch.watch(own, ("_modules", *HOOKS, *TABLES))
    outside = {pair for each in module.modules() for pair in _outside_of(each, names)}
    for each in outside:
        watch.watch_result(each.value)
        keep_value(watch, each.value(), names)
    for table in _hooks_of_all():
        watch.watch_keys(table)
    for _, state in _states_read_by(module, names):
        watch.watch_equal(state, operator.eq)
    for kind in {type(each) for each in module.modules()}:
        watch.watch_class(kind, _of_class(kind, names))
        for value in _class_values(kind, names).values():
            keep_value(watch, value, names)
    watch.module = module


def _parts_of(module: torch.nn.Module, names: frozenset[str]) -> dict[str, Part]:
    found = {path: _part(each, names) for path, each in module.named_modules()}
    hooks = [each for table in _hooks_of_all() for each in table.values()]
    own = [each for each in hooks if is_of_user(module_of(getattr(each, "func", each)))]
    read = found[""].read | {name: str(of()) for name, of in _states_read_by(module, names)}
    return found | {"": found[""]._replace(hooks=(*found[""].hooks, *own), read=read)}


def _states_read_by(
    module: torch.nn.Module, names: frozenset[str]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """States of torch that decide what the user's own code computes: those that it asks for, and
    the type of what is made of numbers; layers of torch make none."""
    import torch

    if any(is_of_user(type(each).__module__) or own_code(each) for each in module.modules()):
        yield DEFAULT, torch.get_default_dtype
    for name in sorted(STATES & names):
        yield f"torch.{name}()", getattr(torch, name)


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
        if before is not GIVEN and not is_same(before, after):
            rule = f"{path}: {name} must be {shown(before)}, as it was compiled"
            return f"{rule}, got {shown(after).replace(SAME, 'another')}"
    if not is_same(was.hooks, now.hooks):
        return f"{path} must have the hooks with which it was compiled, got others"
    return None


def _part(module: torch.nn.Module, names: frozenset[str]) -> Part:
    own = vars(module)
    hooks = [each for name in HOOKS for each in own[name].values()]
    read = _attributes(module, names)
    for each in _outside_of(module, names):
        read[each.shown] = found_now(each.value(), names)
    return Part(type(module), read, tuple(hooks))


def _outside_of(module: torch.nn.Module, names: frozenset[str]) -> tuple[Outside, ...]:
    """What code of a module, without its parts, reads from around it."""
    return read_by(type(module), own_code(module), names).outside


def _attributes(module: torch.nn.Module, names: frozenset[str]) -> dict[str, Any]:
    """The values of names, also of numbers and texts of the class; of parameters and buffers only
    whether there is one."""
    kind, own = type(module), vars(module)
    found = {name: found_now(each, names) for name, each in _class_values(kind, names).items()}
    found |= {name: value_now(own[name], names) for name in names & own.keys()}
    for table in TABLES:
        given = own[table]
        found |= {name: None if given[name] is None else GIVEN for name in names & given.keys()}
    return found


def _class_values(kind: type, names: frozenset[str]) -> dict[str, Any]:
    """What a class has, as its methods, numbers and collections."""
    return {name: getattr(kind, name, ABSENT) for name in _of_class(kind, names)}


@functools.lru_cache(1024)
def _of_class(kind: type, names: frozenset[str]) -> tuple[str, ...]:
    """Names that a class has values for which are not made anew when they are read."""
    import torch

    own = [each for each in kind.__mro__ if each not in torch.nn.Module.__mro__]
    found = {name for each in own for name in names & vars(each).keys()}
    return tuple(sorted(n for n in found if getattr(kind, n) is getattr(kind, n)))
