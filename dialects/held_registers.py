"""Registers that a thread needs for scales, besides accumulators and a product in registers.

A thread of wgmma has two rows of each 64, and pairs of every 8 columns: of a product of n columns
n/2 elements, and n/4 scales where each column has one. Scales of a step that came to shared memory
are read while MMAs run if there is room for them, else after their end.

A factor of an element is the product of two scales. Threads form factors while MMAs run, and hold
them beside the scales. Two warpgroups of several times 64 rows each that have no room for them
multiply a product by the scales of rows, in its own registers, and then by those of columns.
"""

from __future__ import annotations

from .target import WARPGROUP_THREADS

ATOM_ROWS = 64  # of an MMA of a warpgroup

BESIDE_SCALES = ((200, 200, 130), (180, 180, 130))
"""Registers of sums, product and scales by warpgroups, of 64 rows each and of several times that;
ptxas spilled from 224 and 140, and from 196 on."""

APART_MAX = 224
"""The same where scales are multiplied one after the other: 256x128."""

SUMS_MAX = 192
"""Registers of sums and a product, and of scales where these are multiplied one after the other,
beside which threads have enough for addresses and factors, and load warps 40; beyond that load
warps keep 24."""


def beside_scales(rows: int, warpgroups: int, vectors: bool) -> int:
    """Registers of a thread for sums, a product and scales while the MMAs of a tile run; `vectors`:
    whether scales of columns came to shared memory."""
    if vectors and _shares_wide(rows, warpgroups):
        return APART_MAX
    return _beside_factors(rows, warpgroups)


def of_sums(rows: int, columns: int, warpgroups: int) -> int:
    """Registers of a thread for sums and the product of 64 rows."""
    return (rows // warpgroups + ATOM_ROWS) * columns // WARPGROUP_THREADS


def scales_of_columns(columns: int) -> int:
    """Registers of a thread for the scales of a step, where each column has one."""
    return columns // 4


def holds_scales(rows: int, columns: int, warpgroups: int, scales: int) -> bool:
    """Whether a thread has registers for so many scales, which came to shared memory, while the
    MMAs of a tile run."""
    held = of_sums(rows, columns, warpgroups) + scales
    return held <= beside_scales(rows, warpgroups, vectors=True)


def scales_one_by_one(rows: int, columns: int, warpgroups: int) -> bool:
    """Whether a product is multiplied by the scales of its rows, and then by those of its columns,
    which came to shared memory, instead of by factors.

    On an H200 256x96, which has room for factors, was 5 to 11 % slower so.
    """
    held = of_sums(rows, columns, warpgroups) + scales_of_columns(columns)
    return _shares_wide(rows, warpgroups) and held > _beside_factors(rows, warpgroups)


def _shares_wide(rows: int, warpgroups: int) -> bool:
    """Whether two warpgroups share a tile, each with several times 64 rows."""
    return warpgroups == 2 and rows > ATOM_ROWS * warpgroups


def _beside_factors(rows: int, warpgroups: int) -> int:
    return BESIDE_SCALES[rows > ATOM_ROWS * warpgroups][warpgroups - 1]
