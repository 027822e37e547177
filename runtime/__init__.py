"""Runs kernel bundles, on GPUs or on the emulator; needs neither MLIR nor torch."""

from .bundle import Bundle, read_bundle
from .errors import DeviceError, LaunchError
from .kernel import Kernel, load
from .launch_files import run_launch_file
from .manifest import BundleError

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
