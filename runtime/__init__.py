"""Runs kernel bundles, on GPUs or on the emulator; needs neither MLIR nor torch."""

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
