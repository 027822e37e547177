"""Frozen dataclasses that are cheap to define."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(made: Class) -> Class:
    """`dataclasses.dataclass(frozen=True)` with the methods below.

    It compiles the text of five methods for each class, which is a tenth of what a process does
    before its first kernel is there. These do the same for every class; only `__init__` takes
    longer, by a microsecond. Fields, defaults, `__post_init__`, `replace` and `fields` are those of
    dataclasses. TypeError for a field that is to be left out of one of those methods.
    """
    dataclasses.dataclass(init=False, repr=False, eq=False)(made)
    for field in dataclasses.fields(made):
        everywhere = field.init and field.repr and field.compare and field.hash in (None, True)
        if not everywhere or field.kw_only:
            rule = f"{made.__qualname__}.{field.name} must be in all methods of a record"
            raise TypeError(f"{rule}; take a frozen dataclass")
    for method in (__init__, __repr__, __eq__, __hash__, __setattr__, __delattr__):
        if method.__name__ not in vars(made):
            setattr(made, method.__name__, method)
    made.__signature__ = _Signature()
    return made


class _Signature:
    """What `inspect.signature` and `help` ask a class for, made when they do."""

    def __get__(self, made: Any, owner: type) -> inspect.Signature:
        every = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter(field.name, every, default=_shown(field), annotation=field.type)
                for field in dataclasses.fields(owner)
            ]
        )


def _shown(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def __init__(self: Any, *values: Any, **named: Any) -> None:
    names, own = self.__match_args__, self.__dict__
    if len(values) > len(names):
        raise TypeError(f"{_name(self)} takes {len(names)} values, got {len(values)}")
    own.update(zip(names, values, strict=False))
    for name in names[len(values) :]:
        own[name] = named.pop(name) if name in named else _default(self, name)
    if named:
        raise TypeError(f"{_name(self)} takes no {', '.join(map(repr, named))} here")
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _default(self: Any, name: str) -> Any:
    field = self.__dataclass_fields__[name]
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise TypeError(f"{_name(self)} needs a value for {name!r}")
    return field.default


def _name(self: Any) -> str:
    return type(self).__qualname__


def _values(self: Any) -> tuple[Any, ...]:
    own = self.__dict__
    return tuple([own[name] for name in self.__match_args__])


def __repr__(self: Any) -> str:
    pairs = zip(self.__match_args__, _values(self), strict=True)
    return f"{_name(self)}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def __eq__(self: Any, other: object) -> bool:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def __hash__(self: Any) -> int:
    return hash(_values(self))


def __setattr__(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
