"""A functional emulator of PTX: modules in text, numpy arrays as global memory.

    report = launch(ptx, "kernel", grid=(4,), block=(128,), params=[a, b, c, n])

Semantics come from the PTX ISA; what is not modelled stops with the PTX line and the reason.
"""

from __future__ import annotations

from .errors import Deadlock, DeviceError, LaunchError, PtxSyntaxError, Trap
from .launch import launch
from .params import GlobalArray, TensorMapArray
from .report import Report, Suspicion
from .tensormap import TensorMap

__all__ = [
    "Deadlock",
    "DeviceError",
    "GlobalArray",
    "LaunchError",
    "PtxSyntaxError",
    "Report",
    "Suspicion",
    "TensorMap",
    "TensorMapArray",
    "Trap",
    "launch",
]
