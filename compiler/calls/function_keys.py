"""What tells Python functions apart that a kernel was made of.

A lambda in a loop is a new object each time, and the same function as long as its code, and what it
reads from around it, are the same.
"""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

NUMBERS = (int, float, complex, bool, str, bytes, type(None))
DEPTH_MAX = 4


def function_key(function: Any, kept: list[Any], depth: int = 0) -> Any:
    """Equal for functions that compute the same of the same arguments.

    Numbers around the function count by their values, functions by theirs, and other objects by
    their identity and the numbers among their attributes. `kept` gets the objects whose identity
    is in the key, so that none is another's while it is held.
    """
    if isinstance(function, functools.partial):
        parts = (function.func, *function.args, *function.keywords.values())
        names = tuple(function.keywords)
        return "partial", names, *(_key(each, kept, depth) for each in parts)
    if not isinstance(function, FunctionType):
        return _object_key(function, kept)
    code = function.__code__
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    around += function.__defaults__ or ()
    around += (function.__kwdefaults__ or {}).values()
    read = [function.__globals__[name] for name in _names(code) if name in function.__globals__]
    return code, *(_key(each, kept, depth + 1) for each in (*around, *read))


def _key(value: Any, kept: list[Any], depth: int) -> Any:
    if isinstance(value, NUMBERS):
        return type(value), value
    if isinstance(value, tuple | list):
        return type(value), *(_key(each, kept, depth) for each in value)
    if isinstance(value, FunctionType | functools.partial) and depth < DEPTH_MAX:
        return function_key(value, kept, depth)
    return _object_key(value, kept)


def _object_key(value: Any, kept: list[Any]) -> Any:
    kept.append(value)
    if isinstance(value, ModuleType | BuiltinFunctionType | type):
        return id(value)
    numbers = {name: each for name, each in _attributes(value) if isinstance(each, NUMBERS)}
    return id(value), *numbers.items()


def _attributes(value: Any) -> list[tuple[str, Any]]:
    return list(getattr(value, "__dict__", {}).items())


@functools.cache
def _names(code: CodeType) -> tuple[str, ...]:
    """The globals that code may read, that of functions within it included."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return tuple(dict.fromkeys((*code.co_names, *(n for each in inner for n in _names(each)))))
