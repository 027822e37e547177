"""Arguments of forms, and how their results are compared."""

from __future__ import annotations

import re

import numpy as np
import torch
from held_tensors import bit_rounded
from linalg_writing import spelled_out

TYPES = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i32": torch.int32,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
}


def small_integers(arguments: str) -> list[torch.Tensor]:
    """A tensor of each `name: T[8x24xbf16]`, of -3 to 3, so that every order of sums is exact."""
    made = np.random.default_rng(11)
    found = []
    for told in re.findall(r"T\[([^\]]*)\]", spelled_out(arguments)):
        *shape, element = told.split("x")
        least = 0 if element == "u8" else -3
        values = made.integers(least, 4, tuple(map(int, shape)))
        found.append(torch.from_numpy(np.asarray(values)).to(TYPES[element]))
    return found


def exact_or_close(found: torch.Tensor, wanted: np.ndarray, relative: float) -> str:
    """ "" where a result is right: to the last bit, or within a share of each element."""
    values = torch.from_numpy(np.ascontiguousarray(wanted))
    if list(found.shape) != list(values.shape):
        return f"shape {list(found.shape)} for {list(values.shape)}"
    if not relative:
        values = bit_rounded(values, found.dtype).double()
    error = (found.double() - values).abs()
    wrong = ~(error <= relative * values.abs()) & ~(found.double().isnan() & values.isnan())
    if not bool(wrong.any()):
        return ""
    at = tuple(wrong.nonzero()[0].tolist())
    return f"{int(wrong.sum())} elements, {list(at)} is {found[at].item()} for {values[at].item()}"
