"""Error messages for optional dependencies that are not installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["home_of", "missing"]

CURE = "pip install '.[compiler]' in a checkout of tilewright"


def home_of(name: str) -> ModuleType:
    """The module of ours that has a public name.

    Raises ModuleNotFoundError with the extra to install where it needs one that is not there.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == name.partition(".")[0]:
            raise
        raise ModuleNotFoundError(missing(error), name=error.name) from error


def missing(error: ModuleNotFoundError) -> str:
    """One line about a package that is not installed."""
    return f"{error.name}: must be installed for this, got none; {CURE}"
