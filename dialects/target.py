"""What a chip can hold and run: limits that passes check, as data."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import OptionError


@dataclass(frozen=True)
class Target:
    """Limits of one chip.

    `shared_bytes` is the most dynamic plus static shared memory of one CTA (227 KiB: 228 KiB a
    multiprocessor less 1 KiB that the system keeps). Tensor memory has `tmem_lanes` lanes of
    `tmem_columns` 32-bit columns (PTX ISA, Tensor Memory). `mma_m` lists the M of one
    cta_group::1 MMA; its N goes from `mma_n_step[m]` to `mma_n_max` in that step (PTX ISA, shapes
    of .kind::f16; 16 for M=128 is the subset that every published kernel stays in).
    `box_max` is the largest extent of a TMA box in any dimension, in elements
    (cuTensorMapEncodeTiled). `multiprocessors` is how many a B200 has, a default that the launch
    may differ from. A cluster has up to `cluster_max` CTAs (more than 8 need the launch's leave); N
    of a cta_group::2 MMA is a multiple of `pair_n_step`, so that each half is one of 16.
    """

    chip: str
    ptx_feature: str
    shared_bytes: int = 232_448
    multiprocessor_shared_bytes: int = 233_472
    cta_reserved_shared_bytes: int = 1024
    tmem_lanes: int = 128
    tmem_columns: int = 512
    tmem_columns_min: int = 32
    mma_m: tuple[int, ...] = (64, 128)
    mma_n_max: int = 256
    box_max: int = 256
    multiprocessors: int = 148
    cluster_max: int = 16
    pair_n_step: int = 32
    box_rank_max: int = 5
    tma_alignment_bytes: int = 16
    tma_destination_alignment_bytes: int = 128
    grid_x_max: int = 2**31 - 1
    grid_y_max: int = 65_535

    def mma_rows(self, tile_m: int) -> int | None:
        """M of the MMAs that cover a tile of `tile_m` rows, or None when none divides it."""
        return max((m for m in self.mma_m if tile_m % m == 0), default=None)

    def accumulator_columns(self, tile_m: int, tile_n: int) -> int:
        """Tensor-memory columns of an f32 accumulator: N for each MMA down the tile."""
        return tile_m // (self.mma_rows(tile_m) or tile_m) * tile_n

    def shared_bytes_to_fit(self, columns: int) -> int:
        """Shared memory of a CTA that lets no more of them share a multiprocessor than can have
        `columns` of its tensor memory at once."""
        ctas = self.tmem_columns // columns + 1
        return self.multiprocessor_shared_bytes // ctas - self.cta_reserved_shared_bytes + 1

    def allocated_columns(self, columns: int) -> int:
        """Columns that tcgen05.alloc must be asked for: a power of two of at least 32."""
        allocated = self.tmem_columns_min
        while allocated < columns:
            allocated *= 2
        return allocated

    def mma_n_step(self, m: int) -> int:
        """The granularity of N of one MMA with `m` rows, in elements."""
        return 8 if m == 64 else 16


TARGETS = {chip: Target(chip=chip, ptx_feature="+ptx88") for chip in ("sm_100a",)}


def find_target(name: str) -> Target:
    """The target called `name`; `OptionError` names the known ones otherwise."""
    if name not in TARGETS:
        raise OptionError(f"target: unknown chip {name!r}; use one of {', '.join(TARGETS)}")
    return TARGETS[name]
