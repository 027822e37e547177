"""A functional emulator of PTX: modules in text, numpy arrays as global memory.

    report = launch(ptx, "kernel", grid=(4,), block=(128,), params=[a, b, c, n])

Semantics come from the PTX ISA; what is not modelled stops with the PTX line and the reason.
"""

from __future__ import annotations

from .copies.im2col import Im2colMap
from .copies.tensor_map import TensorMap
from .errors import Deadlock, DeviceError, LaunchError, PtxSyntaxError, Trap
from .host.launch import launch
from .host.params import GlobalArray, PointerArray, TensorMapArray
from .observe.report import Report, Suspicion

__all__ = [
    "Deadlock",
    "DeviceError",
    "GlobalArray",
    "Im2colMap",
    "LaunchError",
    "PointerArray",
    "PtxSyntaxError",
    "Report",
    "Suspicion",
    "TensorMap",
    "TensorMapArray",
    "Trap",
    "launch",
]
