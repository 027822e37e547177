"""Random operands with block scales: codes of all values, scales of many sizes, NaN in padding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...runtime.bundles.manifest import k_of, operands
from ...runtime.element_types import DTYPES
from ...runtime.group_sizes import OFFSETS

BLOCKS = {"ue8m0": 32, "ue4m3": 16}
NAN = {"ue8m0": 0xFF, "ue4m3": 0x7F}
# The whole range of a product's scales would leave that of float32.
USUAL = {"ue8m0": (120, 136), "ue4m3": (0, 0x7F)}
EDGES = {"ue8m0": (0, 1, 64, 127), "ue4m3": (0, 1, 8, 0x7E)}
"""The smallest and a small scale, of ue4m3 zero, the smallest and the largest one; and 1."""
ONE_IN = 16


def fill_codes(values: Any, dtype: str, generator: Any) -> None:
    """Packed elements of every code, or scales: most of usual sizes, some at the edges."""
    import torch

    codes = values.view(torch.uint8)
    if dtype not in BLOCKS:
        codes.copy_(torch.randint(0, 256, codes.shape, generator=generator))
        return
    made = torch.randint(*USUAL[dtype], codes.shape, generator=generator)
    edges = torch.tensor(EDGES[dtype])[torch.randint(0, 4, codes.shape, generator=generator)]
    rare = torch.randint(0, ONE_IN, codes.shape, generator=generator) == 0
    codes.copy_(torch.where(rare, edges, made))


def hide_padding(manifest: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Make scales NaN that no element has: nobody may read them."""
    import torch

    for operand, name in zip(operands(manifest), ("a_scales", "b_scales"), strict=True):
        if name not in tensors:
            return
        if tensors[name].dim() < 5:  # linear ones have no padding
            continue
        dtype = next(each["dtype"] for each in manifest["tensors"] if each["name"] == name)
        blocks = k_of(operand) // BLOCKS[dtype]
        rows = operand["shape"][-2]
        codes = tensors[name].view(torch.uint8)
        along_mn, along_k = codes.shape[-5:-3]
        row = torch.arange(along_mn).view(-1, 1, 1, 1, 1) * 128
        row = row + torch.arange(4).view(1, 1, 1, -1, 1) * 32
        row = row + torch.arange(32).view(1, 1, -1, 1, 1)
        block = torch.arange(along_k).view(1, -1, 1, 1, 1) * 4 + torch.arange(4)
        outside = row >= rows
        if name == "a_scales" and OFFSETS in tensors:
            outside = ~torch.isin(row, rows_in_atoms(tensors[OFFSETS], rows))
        codes.masked_fill_(outside | (block >= blocks), NAN[dtype])


def rows_in_atoms(offsets: Any, rows: int) -> Any:
    """The rows of atoms that are some row's, where each group has whole atoms of 128 rows."""
    import torch

    ends = offsets.clamp(0, rows).cummax(0).values
    counts = torch.diff(ends, prepend=ends.new_zeros(1))
    sizes = (counts + 127) // 128 * 128
    firsts = sizes.cumsum(0) - sizes
    own = [
        torch.arange(count) + first
        for first, count in zip(firsts.tolist(), counts.tolist(), strict=True)
    ]
    return torch.cat(own)


def fill_identity(values: Any, dtype: str) -> None:
    """A (rectangular) identity of packed elements."""
    import numpy as np
    import torch

    bits = DTYPES[dtype].bits
    one = {"e2m1": 0b0010, "e2m3": 0b001000, "e3m2": 0b001100}[dtype]
    rows, stored = values.shape
    codes = np.eye(rows, stored * 8 // bits, dtype=np.uint8) * np.uint8(one)
    flags = codes[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    packed = np.packbits(flags.reshape(rows, -1), axis=-1, bitorder="little")
    values.view(torch.uint8).copy_(torch.from_numpy(packed))
