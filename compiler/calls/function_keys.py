"""What tells Python functions apart that a kernel was made of.

A lambda in a loop is a new object each time, and the same function as long as its code, and what it
reads from around it, are the same.
"""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

NUMBERS = (int, float, complex, bool, str, bytes, type(None))
BY_VALUE = (*NUMBERS, tuple, list, dict)
DEPTH_MAX = 4


def function_key(function: Any, kept: list[Any], depth: int = 0) -> Any:
    """Equal for functions that compute the same of the same arguments.

    Numbers around the function count by their values, functions, dicts and lists by theirs, and
    other objects by their identity and what of these is among their attributes. `kept` gets the
    objects whose identity is in the key, so that none is another's while it is held.
    """
    if isinstance(function, functools.partial):
        parts = (function.func, *function.args, *function.keywords.values())
        names = tuple(function.keywords)
        return "partial", names, *(_key(each, kept, depth) for each in parts)
    if isinstance(function, MethodType):
        owner = _object_key(function.__self__, kept, depth)
        return "method", function_key(function.__func__, kept, depth), owner
    if not isinstance(function, FunctionType):
        return _object_key(function, kept, depth)
    code = function.__code__
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    around += function.__defaults__ or ()
    around += (function.__kwdefaults__ or {}).values()
    read = [function.__globals__[name] for name in _names(code) if name in function.__globals__]
    return code, *(_key(each, kept, depth + 1) for each in (*around, *read))


def _key(value: Any, kept: list[Any], depth: int) -> Any:
    if isinstance(value, NUMBERS):
        return type(value), repr(value)  # which tells -0.0 from 0.0
    if isinstance(value, tuple | list):
        return type(value), *(_key(each, kept, depth) for each in value)
    if isinstance(value, dict):
        return dict, *((repr(name), _key(each, kept, depth)) for name, each in value.items())
    if isinstance(value, FunctionType | MethodType | functools.partial) and depth < DEPTH_MAX:
        return function_key(value, kept, depth)
    return _object_key(value, kept, depth)


def _object_key(value: Any, kept: list[Any], depth: int) -> Any:
    kept.append(value)
    if isinstance(value, ModuleType | BuiltinFunctionType | type) or depth >= DEPTH_MAX:
        return id(value)
    attributes = list(getattr(value, "__dict__", {}).items())
    read = [(name, each) for name, each in attributes if isinstance(each, BY_VALUE)]
    return id(value), *((name, _key(each, kept, depth + 1)) for name, each in read)


@functools.cache
def _names(code: CodeType) -> tuple[str, ...]:
    """The globals that code may read, that of functions within it included."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return tuple(dict.fromkeys((*code.co_names, *(n for each in inner for n in _names(each)))))
