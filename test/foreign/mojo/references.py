"""What the kernels of this folder must compute, in float64.

A function a kernel: the launch's tensors by name, as float64 or integers, to the expected outputs.
"""

from __future__ import annotations

import numpy as np

Arrays = dict[str, np.ndarray]

TOLERANCE: dict[str, float] = {}
"""Relative and absolute, of kernels whose inputs do not make every sum exact."""


def ring_pair(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}
