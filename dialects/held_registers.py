"""What threads that scale and add products hold of scales, beside sums and a product in registers.

A thread of wgmma has two rows of each 64, and pairs of every 8 columns: of a product of n columns
n/2 elements, and n/4 scales where each column has one. Scales of a step that came to shared memory
are read while MMAs run if there is room for them, else behind their end.
"""

from __future__ import annotations

from .target import WARPGROUP_THREADS

ATOM_ROWS = 64  # of an MMA of a warpgroup

BESIDE_SCALES = ((200, 200, 130), (180, 180, 130))
"""Registers of sums, product and scales by warpgroups, of 64 rows each and of several times that;
ptxas spilled from 224 and 140, and from 196 on."""


SUMS_MAX = 192
"""Registers of sums and a product beside which threads have enough for addresses and factors, and
load warps 40; beyond that load warps keep 24."""


def beside_scales(rows: int, warpgroups: int) -> int:
    """Registers of a thread for sums, a product and scales while the MMAs of a tile run."""
    return BESIDE_SCALES[rows > ATOM_ROWS * warpgroups][warpgroups - 1]


def of_sums(rows: int, columns: int, warpgroups: int) -> int:
    """Registers of a thread for sums and the product of 64 rows."""
    return (rows // warpgroups + ATOM_ROWS) * columns // WARPGROUP_THREADS


def holds_scales(rows: int, columns: int, warpgroups: int, scales: int) -> bool:
    """Whether a thread has registers for so many scales while the MMAs of a tile run."""
    held = of_sums(rows, columns, warpgroups) + scales
    return held <= beside_scales(rows, warpgroups)
