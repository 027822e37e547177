"""From a spec, linalg or arrays to a kernel; `tilewright` has the public names."""

from __future__ import annotations

import importlib
from typing import Any

# They stood here before `tilewright` had them.
_PUBLIC = ("compile_module", "matmul")


def __getattr__(name: str) -> Any:
    """A name that `tilewright` has."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("tilewright"), name)
