"""A bundle on a device, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .bundle import Bundle, read_bundle
from .devices import open_device


class Kernel:
    """A loaded bundle.

    >>> kernel = load("matmul.zip")  # doctest: +SKIP
    >>> report = kernel.run({"a": a, "b": b, "c": c})  # doctest: +SKIP
    """

    def __init__(self, bundle: Bundle, device: str = "emulator"):
        self.bundle = bundle
        self.device = open_device(device)

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The bundle's manifest (docs/bundle.md)."""
        return self.bundle.manifest

    def run(self, tensors: Mapping[str, Any], seed: int = 0) -> Any:
        """Run on tensors named as in the manifest; outputs are written in place.

        Numpy arrays or torch tensors of the manifest's dtypes, shapes and strides (in elements);
        none is copied. `seed` picks the emulator's order of events. Returns the device's report;
        raises LaunchError or another DeviceError.
        """
        return self.device.launch(self.bundle, tensors, seed)


def load(path: str | Path, device: str = "emulator") -> Kernel:
    """Read and check the bundle at `path` (folder or zip) and open `device` for it.

    Raises BundleError for a foreign or damaged bundle, DeviceError for an unknown device.
    """
    return Kernel(read_bundle(path), device)
