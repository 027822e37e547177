"""Runs kernel bundles, on GPUs or on the emulator; needs neither MLIR nor torch.

A name is imported when it is first asked for: a compilation needs few modules of this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bundles.bundle import Bundle, read_bundle
    from .bundles.manifest import BundleError
    from .errors import DeviceError, LaunchError
    from .launch.kernel import Kernel
    from .launch.loading import load
    from .launch_files import run_launch_file

__all__ = [
    "Bundle",
    "BundleError",
    "DeviceError",
    "Kernel",
    "LaunchError",
    "load",
    "read_bundle",
    "run_launch_file",
]

_HOMES = {
    "Bundle": "bundles.bundle",
    "BundleError": "bundles.manifest",
    "DeviceError": "errors",
    "Kernel": "launch.kernel",
    "LaunchError": "errors",
    "load": "launch.loading",
    "read_bundle": "bundles.bundle",
    "run_launch_file": "launch_files",
}


def __getattr__(name: str) -> Any:
    """A public name, from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
