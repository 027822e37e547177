"""Values of a graph in the shape that the kernel sees: [m, n], or [batch, m, n].

A product of [rows, n] is often seen as [batch, sequence, n] by what follows. Such views keep the
last dim and the order of the rows, so that an element is the same one in the frame. Operands that
are broadcast to a value in one of these forms are brought into the frame as well.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch

Sizes = tuple[int, ...]


def in_frame(sizes: Sizes, frame: Sizes) -> bool:
    """Whether a value of these sizes has all of the frame's elements in its order, row by row."""
    if len(sizes) < len(frame) or sizes[-1] != frame[-1]:
        return False
    if len(frame) == 2:
        return prod(sizes[:-1]) == frame[0]
    return sizes[-2] == frame[-2] and prod(sizes[:-2]) == frame[0]


def framed(operand: Sizes, value: Sizes, frame: Sizes) -> Sizes | None:
    """The sizes in the frame of an operand that is broadcast to a value of these sizes.

    Each dim of the frame is whole or 1. None where an operand has some of the dims that are one of
    the frame, and not all.
    """
    wide = (1,) * (len(value) - len(operand)) + operand
    if len(wide) != len(value):
        return None
    ends = [0, len(value) - len(frame) + 1, *range(len(value) - len(frame) + 2, len(value) + 1)]
    found = []
    for begin, end, extent in zip(ends, ends[1:], frame, strict=False):
        taken = wide[begin:end]
        if taken == value[begin:end]:
            found.append(extent)
        elif all(size == 1 for size in taken):
            found.append(1)
        else:
            return None
    return tuple(found)


def viewed(value: torch.Tensor, sizes: Sizes) -> torch.Tensor | None:
    """How a value lies when it has other sizes; None where only a copy of it has them."""
    like = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    try:
        return like.view(sizes)
    except (RuntimeError, ValueError):  # the latter where torch.compile's fake tensors are made
        return None


def like(value: Any) -> torch.Tensor:
    """A tensor without memory that lies as a value of the graph."""
    return torch.empty_strided(
        tuple(value.shape), tuple(value.stride()), dtype=value.dtype, device="meta"
    )


def is_one_matrix(value: torch.Tensor) -> bool:
    """Whether a value is a stack of one matrix that comes again and again."""
    return value.dim() == 3 and value.shape[0] > 1 and value.stride(0) == 0
