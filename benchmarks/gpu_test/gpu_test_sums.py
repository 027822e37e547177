"""How Hopper's tensor cores sum products, bit for bit: what gpu_test.py holds kernels to.

PTX leaves order and rounding of sums open; what follows is what others found out (Xie et al.,
MMA-Sim, arXiv 2511.10909). For every MMA, of 32 bytes of K:

    terms    the products, and the sum before; an exponent is that of a factor, or of a sum
    cut      each term, towards zero, `fraction` bits below the largest exponent of a term (that of
             a product is the sum of its factors')
    sum      exactly, and cut after `kept` bits of its own
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from tilewright.runtime.element_types import WIDE_DTYPES, torch_dtype
from tilewright.runtime.judge.reference import to_float64

TARGET = "sm_90a"
NOTHING = -10_000  # the exponent of zero
ELEMENTS_MAX = 2**27  # of float64 at once


class Sums(NamedTuple):
    """Products of one MMA, and the bits that are kept of them and of their sum."""

    products: int
    fraction: int
    kept: int


SUMS = {
    "bf16": Sums(16, 25, 23),
    "f16": Sums(16, 25, 23),
    "tf32": Sums(8, 25, 23),
    "e4m3": Sums(32, 13, 13),
    "e5m2": Sums(32, 13, 13),
}


def summed_in_order(manifest: Mapping[str, Any]) -> bool:
    """Whether the kernel is one of wgmma's that sums floats along all of K in one accumulator."""
    ranks = [len(each["shape"]) for each in manifest["tensors"]]
    if "mma=" in manifest["pipeline"] or max(ranks[1], ranks[-1]) > 2:
        return False  # what mma.sync gives is not known; stacks and groups are not summed here
    if "blockwise" in manifest or (manifest.get("spec") or {}).get("sums"):
        return False  # threads add the sums of parts of K
    a, b = (each["dtype"] for each in manifest["tensors"][:2])
    if a in WIDE_DTYPES and a != b:
        return False  # narrow weights are multiplied by mma.sync
    whole = manifest["schedule"]["split_k"] == 1 and not manifest["epilogue"]["arguments"][1:]
    return whole and manifest["target"] == TARGET and manifest["tensors"][0]["dtype"] in SUMS


def known_product(
    manifest: Mapping[str, Any], inputs: Mapping[str, torch.Tensor], place: str
) -> torch.Tensor:
    """What the kernel's output must be, computed on `place`, on the CPU."""
    a, b = (
        torch.from_numpy(to_float64(inputs[each["name"]], each["dtype"])).to(place)
        for each in manifest["tensors"][:2]
    )
    sums = SUMS[manifest["tensors"][0]["dtype"]]
    rows = max(1, ELEMENTS_MAX // (b.shape[0] * sums.products))
    parts = [hopper_sums(part, b, sums) for part in a.split(rows)]
    return torch.cat(parts).float().to(torch_dtype(manifest["tensors"][-1]["dtype"])).cpu()


def hopper_sums(a: torch.Tensor, b: torch.Tensor, sums: Sums) -> torch.Tensor:
    """a [m, k] · b [n, k]ᵀ in float64, each sum with the bits that the hardware has."""
    total = a.new_zeros((a.shape[0], b.shape[0]))
    for x, y in zip(a.split(sums.products, 1), b.split(sums.products, 1), strict=True):
        places = (_exponent(x)[:, None] + _exponent(y)[None]).amax(-1)
        unit = _unit(torch.maximum(places, _exponent(total)) - sums.fraction)
        terms = (x[:, None] * y[None] / unit[..., None]).trunc().sum(-1)
        total = (terms + (total / unit).trunc()) * unit
        unit = _unit(_exponent(total) - sums.kept)
        total = (total / unit).trunc() * unit
    return total


def _exponent(values: torch.Tensor) -> torch.Tensor:
    """floor(log2 |value|), and far less for zero."""
    return torch.where(values == 0, NOTHING, torch.frexp(values).exponent - 1)


def _unit(exponents: torch.Tensor) -> torch.Tensor:
    """2 to the exponents, of which those of zeros may be anything small."""
    return torch.ldexp(torch.ones_like(exponents, dtype=torch.float64), exponents.clamp(min=-900))
