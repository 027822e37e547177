"""The two layouts of scales in global memory, and conversion between them.

    linear     [rows, blocks], row-major: the scale of row r and block kb is byte r · blocks + kb
    blocked    atoms of 128 rows × 4 blocks, 512 bytes each; atoms run along K first, then along
               rows. The scale of row r and block kb is byte
                   (r / 128 · ⌈blocks / 4⌉ + kb / 4) · 512
                   + r % 32 · 16 + r % 128 / 32 · 4 + kb % 4

Blocked scales are what a kernel on the tensor cores of Blackwell reads: a `tcgen05.cp.32x128b` puts
the 16 bytes of an atom's row into a lane of tensor memory, four columns of four bytes. The same
bytes are called SfAtom by CUTLASS, 32_4_4 swizzle by torch, 128x4 by cuDNN and FlashInfer.
Rows pad to 128 and blocks to 4, so that an array of either form may be larger than the scales.
Source: cuBLAS, "1D Block Scaling Factors Layout".
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..element_types import blocked_scale_shape, is_torch
from .formats import ScaleError


def padded_shape(rows: int, blocks: int) -> tuple[int, int]:
    """Rows and blocks that whole atoms hold."""
    high, wide, *atom = blocked_scale_shape(rows, blocks)
    return high * atom[0] * atom[1], wide * atom[2]


def to_blocked(scales: Any, fill: int = 0) -> Any:
    """Linear scales [..., rows, blocks] as blocked ones, [..., rows / 128, blocks / 4, 32, 4, 4].

    `scales` is an array of numpy or torch with elements of one byte; the result is contiguous, of
    its type and on its device. `fill` is the byte of the padding. A kernel multiplies padding by
    operands that are zero, so that it must not be a NaN (ue8m0 0xFF, ue4m3 0x7F): 0 · NaN is NaN.
    Raises ScaleError for other arrays.
    """
    raw = _as_bytes(scales)
    if raw.ndim < 2:
        raise ScaleError(
            f"scales: linear scales must be [rows, blocks], got shape {list(raw.shape)}; "
            "reshape them"
        )
    *batch, rows, blocks = raw.shape
    padded = _filled(raw, (*batch, *padded_shape(rows, blocks)), fill)
    padded[..., :rows, :blocks] = raw
    high, wide, lanes, quarters, columns = blocked_scale_shape(rows, blocks)
    atoms = padded.reshape(*batch, high, quarters, lanes, wide, columns)
    return _of_type(_transposed(atoms, (0, 3, 2, 1, 4)), scales)


def from_blocked(scales: Any, rows: int, blocks: int) -> Any:
    """Blocked scales as linear ones, [..., rows, blocks], without their padding.

    `scales` is an array of numpy or torch with elements of one byte: of one matrix in any shape of
    as many bytes as `to_blocked` gives, or of a batch as [..., bytes] or in the shape that
    `to_blocked` gives. What has the shape of linear scales, padded or not, is refused: read as
    blocked, it would give wrong numbers. Raises ScaleError for it and for other sizes.
    """
    raw = _as_bytes(scales)
    check_blocked(tuple(raw.shape), rows, blocks)
    atoms = blocked_scale_shape(rows, blocks)
    batch = _batch(tuple(raw.shape), atoms)
    moved = _transposed(raw.reshape(*batch, *atoms), (0, 3, 2, 1, 4))
    return _of_type(moved.reshape(*batch, *padded_shape(rows, blocks))[..., :rows, :blocks], scales)


def layout_of(shape: tuple[int, ...], rows: int, blocks: int) -> str:
    """What an array of scales can be by its shape: linear, padded, blocked, or empty for none.

    Padded scales are row-major as linear ones, with as many bytes as blocked ones.
    """
    padded, atoms = padded_shape(rows, blocks), blocked_scale_shape(rows, blocks)
    ending = tuple(shape[-2:])
    if tuple(shape[-5:]) == atoms:
        return "blocked"
    if ending == (rows, blocks):
        return "linear"
    if ending == padded:
        return "padded"
    if prod(shape) == prod(padded) or _batch(shape, atoms):
        return "blocked"
    return "linear" if prod(shape) == rows * blocks else ""


def check_blocked(shape: tuple[int, ...], rows: int, blocks: int, what: str = "scales") -> None:
    """Raise ScaleError unless an array of this shape can hold blocked scales."""
    if (got := layout_of(shape, rows, blocks)) == "blocked":
        return
    high, wide = padded_shape(rows, blocks)
    cures = {
        "linear": ", which is linear; pass it through to_blocked",
        "padded": ", which is padded but row-major; pass it through to_blocked, or flatten it if "
        "its bytes are blocked",
        "": ", which is neither linear, nor padded, nor blocked",
    }
    raise ScaleError(
        f"{what}: blocked scales must be {high * wide} bytes, for {rows} rows and {blocks} blocks "
        f"padded to {high} and {wide}, got shape {list(shape)}{cures[got]}"
    )


def check_linear(shape: tuple[int, ...], wanted: tuple[int, ...], what: str = "scales") -> None:
    """Raise ScaleError unless linear scales have the wanted shape [..., rows, blocks]."""
    if tuple(shape) == wanted:
        return
    cures = {
        "linear": "; reshape them",
        "padded": ", which is padded; cut the padding off, or pass it through from_blocked if its "
        "bytes are blocked",
        "blocked": ", which is blocked; pass it through from_blocked",
        "": ", which is neither linear, nor padded, nor blocked",
    }
    raise ScaleError(
        f"{what}: linear scales must be {list(wanted)}, one for each row and block, got shape "
        f"{list(shape)}{cures[layout_of(shape, *wanted[-2:])]}"
    )


def _batch(shape: tuple[int, ...], atoms: tuple[int, ...]) -> tuple[int, ...]:
    """The extents in front of a matrix's blocked scales; none if the array is of one matrix."""
    if shape[-len(atoms) :] == atoms:
        return shape[: -len(atoms)]
    return shape[:-1] if shape[-1:] == (prod(atoms),) else ()


def _as_bytes(scales: Any) -> Any:
    """The same array as uint8, without a copy."""
    if is_torch(scales):
        import torch  # already imported by whoever made `scales`

        bits = scales.detach()
        _check_size(bits.element_size(), bits.dtype)
        return bits.view(torch.uint8)
    array = np.asarray(scales)
    _check_size(array.itemsize, array.dtype)
    return array.view(np.uint8)


def _check_size(size: int, dtype: object) -> None:
    if size != 1:
        raise ScaleError(f"scales: elements must have one byte, got {dtype}; pass codes, as "
                         "quantize gives them")  # fmt: skip


def _of_type(raw: Any, like: Any) -> Any:
    if is_torch(like):
        return raw.contiguous().view(like.dtype)
    return np.ascontiguousarray(raw).view(np.asarray(like).dtype)


def _filled(raw: Any, shape: tuple[int, ...], fill: int) -> Any:
    if is_torch(raw):
        return raw.new_full(shape, fill)
    return np.full(shape, fill, np.uint8)


def _transposed(array: Any, axes: tuple[int, ...]) -> Any:
    """The last axes in another order; the ones before them stay."""
    before = array.ndim - len(axes)
    order = (*range(before), *(before + axis for axis in axes))
    return array.permute(order) if is_torch(array) else array.transpose(order)
