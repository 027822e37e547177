"""What the kernels of this folder must compute, in float64.

A function a kernel: the launch's tensors by name, as float64 or integers, to the expected outputs.
"""

from __future__ import annotations

import numpy as np

Arrays = dict[str, np.ndarray]

TOLERANCE: dict[str, float] = {"attention": 2e-3}
"""Relative and absolute, of kernels whose inputs do not make every sum exact."""


def pipelined_gemm(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}


def attention(tensors: Arrays) -> Arrays:
    scores = tensors["q"] @ tensors["k"].T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return {"out": weights @ tensors["v"] / weights.sum(axis=1, keepdims=True)}


def quantized_gemm(tensors: Arrays) -> Arrays:
    packed = tensors["b"]
    codes = np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), -1)
    numbers = (codes.astype(np.float64) - 8) * tensors["scale"].repeat(32, axis=1)
    return {"c": tensors["a"] @ numbers.T + tensors["bias"]}


def tmem_gemm(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}
