"""The interface of all devices."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..bundles.bundle import Bundle
from ..errors import DeviceError

DEVICES = ("emulator", "cuda")


class Program(Protocol):
    """A bundle that a device has made ready; tensors come in the manifest's order."""

    relauncher: Any
    """Launches on tensors so much like those of the last one that it is quick (relaunch.py)."""

    def enqueue(self, values: Sequence[Any], stream: int | None = None) -> None:
        """Start the kernel; what uses its output must be ordered after it on the same stream."""
        ...

    def takes(self, inputs: Sequence[Any]) -> bool:
        """Whether these inputs are known to lie as the kernel takes them; False where nobody
        knows."""
        ...

    def run(self, values: Sequence[Any], seed: int = 0) -> Any:
        """Run the kernel, wait for it, and return the device's report."""
        ...


class Device(Protocol):
    """Something that runs bundles.

    `place` is where tensors lie for it, as torch names it; `target` the chip that it is, None where
    bundles for any will run.
    """

    name: str
    place: str

    @property
    def target(self) -> str | None: ...

    def open(self, bundle: Bundle, index: int | None = None) -> Program:
        """Make a bundle ready; `index` is the GPU of its tensors, None on the CPU."""
        ...

    def launch(
        self, bundle: Bundle, tensors: Mapping[str, Any], seed: int = 0, **options: Any
    ) -> Any:
        """Run the kernel on tensors bound by name, wait for it, and return the device's report.

        Outputs are written in place; options are those that this device has. Raises LaunchError
        when a tensor doesn't fit the manifest, and DeviceError when the kernel fails.
        """
        ...


@functools.cache
def open_device(name: str) -> Device:
    """The device called `name`: "emulator", "cuda" (every GPU) or "cuda:1" (that one).

    Raises DeviceError when there is none of that name, or it can't be used on this machine.
    """
    found = re.fullmatch(r"(emulator|cuda)(?::(\d+))?", name)
    if not found or (found[1] == "emulator" and found[2]):
        known = ", ".join(DEVICES)
        raise DeviceError(f"device: must be one of {known}, cuda:N, got '{name}'; use one of them")
    if found[1] == "emulator":
        from .emulator_device import EmulatorDevice

        return EmulatorDevice()
    from ..gpu import CudaDevice

    return CudaDevice(None if found[2] is None else int(found[2]))


def why_no_gpu() -> str | None:
    """None where the device "cuda" can be used, else the reason why not."""
    try:
        open_device("cuda")
    except DeviceError as error:
        return str(error)
    return None
