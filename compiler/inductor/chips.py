"""The chip or GPU for which the regions of a graph are compiled, if any."""

from __future__ import annotations

import functools
import warnings

import torch

from ...dialects.errors import CompileError
from ...dialects.target import find_target
from ...runtime.errors import DeviceError
from ..calls.kernels.lookup import DEFAULT_TARGET, default_target
from .settings import Settings

FAMILIES = (9, 10)
"""Major compute capabilities of Hopper and of Blackwell's data-center chips."""


def chip_of(device: torch.device, settings: Settings) -> tuple[str, str]:
    """(the target, "") for tensors on a device, or ("", why they are left to Inductor)."""
    if device.type == "cpu":
        if settings.device == "emulator":
            return settings.target or DEFAULT_TARGET, ""
        return "", "tensors in the CPU's memory; device='emulator' runs them on the emulator"
    if device.type != "cuda":
        return "", f"tensors on {device.type}"
    if settings.device != "cuda":
        return "", "tensors on a GPU, and device='emulator'"
    number = torch.cuda.current_device() if device.index is None else device.index
    return _chip_of_gpu(number, settings.target)


@functools.cache
def _chip_of_gpu(number: int, target: str) -> tuple[str, str]:
    """The chip of a GPU, by its number; warns once if it cannot be used."""
    major, minor = torch.cuda.get_device_capability(number)
    if major not in FAMILIES:
        name = torch.cuda.get_device_name(number)
        reason = f"{name} (compute capability {major}.{minor}) is neither Hopper nor Blackwell"
        warnings.warn(f"tilewright: {reason}; all is left to Inductor", stacklevel=2)
        return "", reason
    try:
        return find_target(target or default_target(number)).name, ""
    except (CompileError, DeviceError, ImportError) as error:
        warnings.warn(f"tilewright: all is left to Inductor: {error}", stacklevel=2)
        return "", str(error)
