"""Tensor maps whose copies walk over pixels, as convolutions by matrix products do.

A tensor of such a map has the dimensions C, W, H, D, N, channels first (contiguous), of which H and
D may be missing. A copy moves some channels of a column of pixels: it starts at a pixel in a
bounding box, goes along W to the end of the box, then on from the box's start of W in the next
row, and so on through H, D and N. Each pixel is one row of the box in shared memory.

Sources: PTX ISA §5.5.4 (im2col mode); CUDA driver API, cuTensorMapEncodeIm2col.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import LaunchError, Trap
from .tensor_map import TensorMap, TiledMap, integers

MAX_PIXELS = 1024
MIN_RANK, MAX_RANK = 3, 5
CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""By rank, of each signed coordinate of a corner; offsets have as many, unsigned."""


@dataclass(frozen=True)
class Im2col:
    """The bounding box and the length of a column. lower, upper: of W, H, D, as far as there are
    such, from the first and the last pixel of an image; pixels: of a column."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    pixels: int

    def check(self, tiled: TiledMap) -> None:
        """`LaunchError` where the driver would refuse it for the other fields of a map."""
        rank = tiled.rank
        if not MIN_RANK <= rank <= MAX_RANK:
            raise _error(f"tensorRank of im2col must be {MIN_RANK}..{MAX_RANK}, got {rank}")
        if not 1 <= self.pixels <= MAX_PIXELS:
            raise _error(f"pixelsPerColumn must be 1..{MAX_PIXELS}, got {self.pixels}")
        high = 1 << CORNER_BITS[rank] - 1
        for name, corner in (
            ("pixelBoxLowerCorner", self.lower),
            ("pixelBoxUpperCorner", self.upper),
        ):
            if len(corner) != rank - 2:
                raise _error(f"{name} must have {rank - 2} entries, got {len(corner)}")
            for index, value in enumerate(corner):
                if not -high <= value < high:
                    rule = f"{name}[{index}] of rank {rank} must be {-high}..{high - 1}"
                    raise _error(f"{rule}, got {value}")

    def check_store(self, tiled: TiledMap) -> None:
        """Trap where a GPU stops a store, whichever pixels its column has."""
        if min(self.lower) >= 0 and max(self.upper) <= 0:
            return
        raise Trap(
            "tma",
            "a tensor store needs a bounding box within the tensor, pixelBoxLowerCorner from 0 and"
            f" pixelBoxUpperCorner up to 0, got {self.lower} and {self.upper} (seen on an H200)",
        )

    def pixels_from(
        self, tiled: TiledMap, coordinates: tuple[int, ...], offsets: tuple[int, ...]
    ) -> tuple[tuple[int, ...], ...]:
        """Coordinates of each pixel of the column that starts at ``coordinates``; ``offsets`` along
        W, H, D, the place in a filter, are added to each."""
        return _column(self, tiled.dims, tiled.element_strides, coordinates, offsets)


@lru_cache(maxsize=1024)
def _column(
    im2col: Im2col,
    dims: tuple[int, ...],
    steps: tuple[int, ...],
    coordinates: tuple[int, ...],
    offsets: tuple[int, ...],
) -> tuple[tuple[int, ...], ...]:
    channel, *at, image = coordinates
    last = [size - 1 + corner for size, corner in zip(dims[1:-1], im2col.upper, strict=True)]
    for axis, place, low, high in zip("WHD", at, im2col.lower, last, strict=False):
        if not low <= place <= high:
            raise Trap(
                "tma",
                f"coordinate {axis} must lie within the bounding box, {low}..{high}, got {place}"
                " (PTX ISA section 5.5.4.1)",
            )
    for axis, offset in zip("WHD", offsets, strict=False):
        if offset >> CORNER_BITS[len(dims)]:
            rule = f"the im2col offset of {axis} must be below {1 << CORNER_BITS[len(dims)]}"
            raise Trap("tma", f"{rule}, got {offset} (PTX ISA section 5.5.4.1)")
    found = []
    for _ in range(im2col.pixels):
        moved = [place + offset for place, offset in zip(at, offsets, strict=True)]
        found.append((channel, *moved, image))
        for axis, low in enumerate(im2col.lower):
            at[axis] += steps[axis + 1]
            if at[axis] <= last[axis]:
                break
            at[axis] = low
        else:
            image += 1
    return tuple(found)


class Im2colMap(TensorMap):
    """A tensor map in im2col mode over ``array``, with the arguments of cuTensorMapEncodeIm2col.

    ``dims`` are those of C, W, H, D and N, of which H and D may be missing; ``lower`` and ``upper``
    the corners of the bounding box along W, H, D; ``channels`` those of each pixel that a copy
    moves, ``pixels`` how many pixels. The other arguments are those of ``TensorMap``;
    ``element_strides`` are the steps from pixel to pixel. Raises ``LaunchError`` where the driver
    would refuse.
    """

    def __init__(
        self, array: np.ndarray, dtype: str | int, dims: Sequence[int], strides: Sequence[int],
        lower: Sequence[int], upper: Sequence[int], channels: int, pixels: int,
        element_strides: Sequence[int] | None = None, interleave: str | int = "none",
        swizzle: str | int = "none", l2_promotion: str | int = "none",
        oob_fill: str | int = "zero", offset: int = 0,
    ):  # fmt: skip
        dims = integers("globalDim", dims)
        box = (channels, *(1 for _ in dims[1:]))
        super().__init__(array, dtype, dims, strides, box, element_strides, interleave, swizzle,
                         l2_promotion, oob_fill, offset)  # fmt: skip
        corners = integers("pixelBoxLowerCorner", lower), integers("pixelBoxUpperCorner", upper)
        self.im2col = Im2col(*corners, *integers("pixelsPerColumn", [pixels]))
        self.im2col.check(self)


def _error(message: str) -> LaunchError:
    return LaunchError(f"tensor map: {message}")
