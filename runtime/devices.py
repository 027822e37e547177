"""The one small interface behind which every device stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from .bundle import Bundle
from .errors import DeviceError

DEVICES = ("emulator",)


class Device(Protocol):
    """Something that runs bundles."""

    name: str

    def launch(self, bundle: Bundle, tensors: Mapping[str, Any], seed: int = 0) -> Any:
        """Run the kernel on tensors bound by name, wait for it, and return the device's report.

        Outputs are written in place. Raises LaunchError when a tensor doesn't fit the manifest,
        and DeviceError when the kernel fails.
        """
        ...


def open_device(name: str) -> Device:
    """The device called `name`; raises DeviceError when there is none of that name."""
    if name not in DEVICES:
        known = ", ".join(DEVICES)
        raise DeviceError(f"device: must be one of {known}, got '{name}'; use --device {known}")
    from .emulator_device import EmulatorDevice

    return EmulatorDevice()
