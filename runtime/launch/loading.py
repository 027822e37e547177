"""Loads bundles as callables."""

from __future__ import annotations

import os
from pathlib import Path

from ..bundles.bundle import Bundle, read_bundle
from ..bundles.manifest import BundleError
from ..bundles.sizes import is_dynamic
from .dynamic_kernel import DynamicKernel
from .kernel import Kernel


def load(bundle: str | Path | Bundle, device: str | None = None) -> Kernel:
    """Load a bundle as a function of arrays.

    bundle: the path of a folder or zip, which is read and checked, or what `as_bundle` made.
    device: where to run it, as for `Kernel`; by default where its inputs are.

    Raises BundleError for a foreign or damaged bundle, and DeviceError for a device that is unknown
    or cannot be used here.
    """
    if isinstance(bundle, str | os.PathLike):
        bundle = read_bundle(bundle)
    if not isinstance(bundle, Bundle):
        rule = f"load: must be a path or a Bundle, got {type(bundle).__name__}"
        raise BundleError(f"{rule}; as_bundle makes one of what compile returned")
    return open_kernel(bundle, device)


def open_kernel(bundle: Bundle, device: str | None = None, copies: bool = False) -> Kernel:
    """A bundle ready to be called; the arguments are those of `Kernel`."""
    kind = DynamicKernel if is_dynamic(bundle.manifest) else Kernel
    return kind(bundle, device, copies)
