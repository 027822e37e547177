"""Bounds of the accumulators of a product before the epilogue, in float64.

    float32     k products in any order: k·u/(1 - k·u) · (|A|·|B|ᵀ), u = 2^-24 (Higham, Accuracy and
                Stability of Numerical Algorithms, §4.2)
    3xtf32      the same of three products each, and what is left out of each, under 2^-20 of it
    bf16x9      nothing is left out; sums of 16 products or 32, and of those (`part_sums`)
    integers    exact in 32 bits, which wrap
    8 bits on   an MMA of wgmma cuts its 32 products and the sum before at 2^-13 of the largest of
    Hopper      them, adds them, and cuts what it gives after 13 fraction bits (Xie et al., MMA-Sim,
                arXiv 2511.10909)

PTX ISA 9.2, wgmma.mma_async, precision and rounding: sums of 8-bit floats have more than half and
less than single precision on current hardware. The emulator's are float32's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bundles.manifest import operands
from ..element_types import INTEGERS, torch_dtype
from .double_sums import double_sums
from .intervals import FLOAT32_LIMIT, HALF_ULP, SMALLEST_NORMAL, Interval, wrapped

NARROW_TARGET = "sm_90a"
SMALLEST_NORMALS = {"e4m3": 2.0**-6, "e5m2": 2.0**-14}
NARROW_K, NARROW_ULP = 32, 2.0**-13
SPLIT_LIMIT = float.fromhex("0x1.ffep127")  # from here on tf32 rounds to infinity
SPLIT_ERROR, SPLIT_PRODUCTS_MAX = 3.01 * 2.0**-22, 1 + 2.0**-9.9
PART_MMA, PART_LIMIT = 16, FLOAT32_LIMIT / 4.1
CUT_TO_NOTHING = 2.0**-133  # a bf16 has nothing of what is below


def sums_of(manifest: Mapping[str, Any], a: np.ndarray, b: np.ndarray, on_gpu: bool) -> Interval:
    """a [m, k] · b [n, k]ᵀ in float64 with the limits of what the manifest's kernel may sum up.

    `on_gpu` is for results of the hardware itself, which for 8-bit floats is less exact than the
    emulator.
    """
    dtypes = [operand["dtype"] for operand in operands(manifest)]
    if dtypes[0] in INTEGERS:
        return integer_sums(a, b)
    if dtypes[0] == "f64":
        return double_sums(a, b)
    if dtypes[0] == "3xtf32":
        return split_sums(a, b)
    if dtypes[0] == "bf16x9":
        return part_sums(a, b, manifest.get("terms", {}).get("depth", PART_MMA))
    smallest = narrow_kinds(manifest, on_gpu)
    return narrow_sums(a, b, *smallest) if smallest else accumulator_interval(a, b)


def narrow_kinds(manifest: Mapping[str, Any], on_gpu: bool) -> tuple[float, float] | None:
    """The smallest normal numbers of A's and B's type where a Hopper GPU sums 8-bit floats."""
    a, b = (operand["dtype"] for operand in operands(manifest))
    if not on_gpu or a not in SMALLEST_NORMALS or manifest["target"] != NARROW_TARGET:
        return None
    return SMALLEST_NORMALS[a], SMALLEST_NORMALS[b]


def sums_of_floats(a: np.ndarray, b: np.ndarray, hopper_gpu: bool) -> Interval:
    """a [m, k] · b [n, k]ᵀ of floats of any type, known by their values.

    hopper_gpu: what fits 8 bits may have been summed as 8-bit floats by a Hopper GPU.
    """
    if not hopper_gpu:
        return accumulator_interval(a, b)
    kinds = [_narrow_kind(each) for each in (a, b)]
    if None in kinds:
        return accumulator_interval(a, b)
    return narrow_sums(a, b, *(SMALLEST_NORMALS[kind] for kind in kinds if kind))


def product_of_integers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a [m, k] · b [n, k]ᵀ of int64, as 32 bits hold it."""
    largest = float(np.abs(a).max(initial=0)) * float(np.abs(b).max(initial=0)) * a.shape[1]
    if largest < 2.0**53:
        return wrapped(_product(a.astype(np.float64), b.astype(np.float64))).astype(np.int64)
    return (a @ b.T << 32) >> 32


def integer_sums(a: np.ndarray, b: np.ndarray) -> Interval:
    """a [m, k] · b [n, k]ᵀ of integers, as 32 bits hold it."""
    return Interval.exactly(wrapped(_product(a, b)))


def accumulator_interval(a: np.ndarray, b: np.ndarray) -> Interval:
    """a [m, k] · b [n, k]ᵀ in float64 with the limits of a float32 sum in any order."""
    exact, magnitude = _product(a, b), _product(np.abs(a), np.abs(b))
    k = a.shape[1]
    relative = k * HALF_ULP / (1 - k * HALF_ULP)
    sums = Interval(exact, exact, exact).widened(relative * magnitude + k * SMALLEST_NORMAL)
    return _overflowing(sums, a, b) if (magnitude >= FLOAT32_LIMIT).any() else sums


def split_sums(a: np.ndarray, b: np.ndarray) -> Interval:
    """a [m, k] · b [n, k]ᵀ of f32 by three products of tf32, added in float32 in any order.

    An operand x is two tf32, of which the first is within 2^-11 of x and both within 2^-22; so the
    products are together within 3.01 · 2^-22 of x · y, and in magnitude 1 + 2^-9.9 times it. What
    is below the normal numbers is left out whole. An operand that tf32 rounds to infinity may make
    NaN of its sums.
    """
    exact, magnitude = _product(a, b), _product(np.abs(a), np.abs(b))
    k = 3 * a.shape[1]
    relative = SPLIT_PRODUCTS_MAX * k * HALF_ULP / (1 - k * HALF_ULP) + SPLIT_ERROR
    lost = SMALLEST_NORMAL * (np.abs(a).sum(1)[:, None] + np.abs(b).sum(1)[None, :])
    sums = Interval(exact, exact, exact).widened(
        relative * magnitude + k * SMALLEST_NORMAL + np.nan_to_num(lost, nan=np.inf)
    )
    huge_a, huge_b = (np.abs(each).max(axis=1, initial=0) for each in (a, b))
    huge = ~(np.maximum.outer(huge_a, huge_b) < SPLIT_LIMIT)
    sums = Interval(sums.low, sums.middle, sums.high, sums.nan | huge)
    return _overflowing(sums, a, b) if (magnitude >= FLOAT32_LIMIT / 4).any() else sums


def part_sums(a: np.ndarray, b: np.ndarray, depth: int = PART_MMA) -> Interval:
    """a [m, k] · b [n, k]ᵀ of f32 by nine products of the three bf16 that make up each.

    Nothing is left out. MMAs add `depth` products and those of smaller parts, which together have
    less than 2^-5 of the magnitude, and may cut off where they add, which counts twice; threads add
    what MMAs of at least half of that give. Sums of the parts that are multiplied by 2^8 overflow
    where the magnitude comes near a quarter of the largest number. An infinite operand times one of
    which bf16 has nothing may make NaN.
    """
    exact, magnitude = _product(a, b), _product(np.abs(a), np.abs(b))
    k = a.shape[1]
    additions = 2 * k / depth + 2.4 * min(k, depth) + 4
    relative = additions * HALF_ULP / (1 - additions * HALF_ULP)
    sums = Interval(exact, exact, exact).widened(relative * magnitude + k * SMALLEST_NORMAL)
    (no_a, cut_a), (no_b, cut_b) = ((np.isinf(each), _is_cut(each)) for each in (a, b))
    met = _product(no_a * 1.0, cut_b * 1.0) + _product(cut_a * 1.0, no_b * 1.0)
    sums = Interval(sums.low, sums.middle, sums.high, sums.nan | (met > 0))
    if not (magnitude >= PART_LIMIT / 2).any():
        return sums
    return _overflowing(sums, a, b, PART_LIMIT)


def _is_cut(values: np.ndarray) -> np.ndarray:
    return (values != 0) & (np.abs(values) < CUT_TO_NOTHING)


def _overflowing(
    sums: Interval, a: np.ndarray, b: np.ndarray, limit: float = 0.999 * FLOAT32_LIMIT
) -> Interval:
    """Also ∞, or -∞, where finite products of one sign overflow before others take it back."""
    a, b = (np.where(np.isfinite(each), each, 0.0) for each in (a, b))
    exact, magnitude = _product(a, b), _product(np.abs(a), np.abs(b))
    number = ~sums.certainly_nan()
    up = number & ((magnitude + exact) / 2 >= limit)
    down = number & ((magnitude - exact) / 2 >= limit)
    low, high = np.where(down, -np.inf, sums.low), np.where(up, np.inf, sums.high)
    nan = (up & (low == -np.inf)) | (down & (high == np.inf))
    return Interval(low, sums.middle, high, sums.nan | nan)


def narrow_sums(a: np.ndarray, b: np.ndarray, smallest_a: float, smallest_b: float) -> Interval:
    """a [m, k] · b [n, k]ᵀ with the limits of Hopper's sums of 8-bit floats along K.

    `smallest_a` and `smallest_b` are the smallest normal numbers, whose exponent those below have.
    A kernel may sum parts of K by themselves: no partial sum is larger than the range of the sums
    that start at 0.
    """
    sums = accumulator_interval(a, b)
    total = np.zeros((a.shape[0], b.shape[0]))
    low, high, error = total, total, total
    lost = (NARROW_K + 2) * NARROW_ULP  # of the products, the sum before and the new one
    for start in range(0, a.shape[1], NARROW_K):
        of_a, of_b = (each[:, start : start + NARROW_K] for each in (a, b))
        total = total + _product(of_a, of_b)
        low, high = np.minimum(low, total), np.maximum(high, total)
        largest = np.outer(_largest(of_a, smallest_a), _largest(of_b, smallest_b))
        error = error * (1 + lost) + lost * np.maximum(high - low, largest)
    return sums.widened(error)


def _narrow_kind(values: np.ndarray) -> str | None:
    """The 8-bit float that holds all the values, if one does; e4m3, which has more digits, first"""
    import torch

    single = torch.from_numpy(np.asarray(values, np.float32))
    for kind in SMALLEST_NORMALS:
        there_and_back = single.to(torch_dtype(kind)).float()
        if torch.equal(there_and_back.nan_to_num(nan=0.0), single.nan_to_num(nan=0.0)):
            return kind
    return None


def _largest(part: np.ndarray, smallest: float) -> np.ndarray:
    """The largest magnitude of each row, where it isn't 0 at least the smallest normal number."""
    found = np.abs(part).max(axis=1)
    return np.where(found > 0, np.maximum(found, smallest), 0)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    import torch

    return (torch.from_numpy(a) @ torch.from_numpy(b).T).numpy()
