"""What of a module a kernel cannot read again at a call: its code, and the numbers that this reads.

    module.act = GELU()          another code
    module.scale = 3.0           a number that was a constant of the kernel
    register_forward_hook(f)     what else is computed
    with torch.autocast(…):      the types in which torch computes

Parameters and buffers are arguments of the kernel, and may be others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from ....dialects.errors import CompileError

if TYPE_CHECKING:
    import torch

HOOKS = ("_forward_pre_hooks", "_forward_hooks")
TABLES = ("_parameters", "_buffers")
PLAIN = (int, float, complex, bool, str, bytes, tuple, type(None))
ABSENT = ...  # which a copy in another process is, too
GIVEN = "a tensor"
SAME = "the same"
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


def form_of(module: torch.nn.Module) -> dict[str, Part]:
    """What the module is made of, by dotted names; "" is itself."""
    return {path: _part(each) for path, each in module.named_modules()}


def check_form(where: str, module: torch.nn.Module, form: dict[str, Part]) -> None:
    """Raise CompileError where a module is another one than it was when it had this form."""
    now = form_of(module)
    for path in [*form, *(path for path in now if path not in form)]:
        change = _changed(path or "the module", form.get(path), now.get(path))
        if change:
            raise CompileError(f"{where}: {change}; {ANEW}")


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
    for name in was.read:
        before, after = was.read[name], now.read[name]
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


def _part(module: torch.nn.Module) -> Part:
    own = vars(module)
    names = _read_by(type(module), own.get("forward"))
    hooks = [each for name in HOOKS for each in own[name].values()]
    return Part(type(module), {name: _now(own, name) for name in names}, tuple(hooks))


def _now(own: dict[str, Any], name: str) -> Any:
    """The value of a name; of a tensor that is no buffer, a constant of the kernel, also which of
    its changes it is. Of parameters and buffers only whether there is one."""
    for table in TABLES:
        if name in own[table]:
            return None if own[table][name] is None else GIVEN
    value = own.get(name, ABSENT)
    return Constant(value) if hasattr(value, "_version") else value


@functools.lru_cache(1024)
def _read_by(kind: type, forward: Any) -> tuple[str, ...]:
    """The names of attributes that a class's methods may read, or a forward of the module's own."""
    import torch

    classes = [each for each in kind.__mro__ if each not in torch.nn.Module.__mro__]
    methods = [
        each
        for made in classes
        for name, each in vars(made).items()
        if isinstance(each, FunctionType) and not name.startswith("__")
    ]
    methods += [forward] if isinstance(forward, FunctionType) else []
    names = {name for each in methods for name in _names(each.__code__)}
    # Of torch's own attributes a kernel knows what is to be known, and its tables are read apart.
    return "forward", *sorted(names - set(vars(torch.nn.Module())))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
