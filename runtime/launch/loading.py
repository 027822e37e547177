"""Bundles to kernels that are called."""

from __future__ import annotations

from pathlib import Path

from ..bundles.bundle import Bundle, read_bundle
from ..bundles.sizes import is_dynamic
from .dynamic_kernel import DynamicKernel
from .kernel import Kernel


def load(path: str | Path, device: str | None = None) -> Kernel:
    """Read and check the bundle at `path` (folder or zip), for `device` or any that fits.

    Raises BundleError for a foreign or damaged bundle, and DeviceError for a device that is unknown
    or cannot be used here.
    """
    return open_kernel(read_bundle(path), device)


def open_kernel(bundle: Bundle, device: str | None = None, copies: bool = False) -> Kernel:
    """A bundle ready to be called; the arguments are those of `Kernel`."""
    kind = DynamicKernel if is_dynamic(bundle.manifest) else Kernel
    return kind(bundle, device, copies)
