"""The root of every error a launch can raise, on any device."""

from __future__ import annotations

__all__ = ["CopyWarning", "DeviceError", "LaunchError", "PrecisionWarning"]


class DeviceError(Exception):
    """A launch, a driver call or the emulated program failed; `str(error)` is one message."""


class LaunchError(DeviceError):
    """The launch itself is not legal: grid, block, shared bytes or a parameter."""


class CopyWarning(UserWarning):
    """A large operand is copied before each launch, since no kernel takes it as it lies."""


class PrecisionWarning(UserWarning):
    """Operands are multiplied with fewer bits than torch's own setting asks for."""
