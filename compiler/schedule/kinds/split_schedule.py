"""Tiles of f32 that threads split, for tcgen05.mma and wgmma (`dialects.terms`): which there are,
and what they take on the first; on the second `split_wgmma`.

    tensor core     nine MMAs for one
    shared memory   what those read, 18 bytes of each element; the f32 tiles by TMA and by threads,
                    and the terms that threads write
    threads         what splits an element, and adds the products that lie in tensor memory

Of tcgen05.mma nothing was measured; instructions are counted in the SASS of a step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....dialects.dtypes import DTYPES
from ....dialects.legality import tile_memory
from ....dialects.mma_units import TCGEN05_SPLIT, WGMMA_SPLIT
from ....dialects.target import Target
from ....dialects.terms import DEPTHS, NINE_PRODUCTS, TERM_DTYPE, TERMS
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from ..estimates.added_costs import MEETING, READING
from ..extents import round_up

CHOSEN = {"sm_100a": TCGEN05_SPLIT.name, "sm_90a": WGMMA_SPLIT.name}
"""The chips that are given such tiles by themselves, and their MMA."""
TILES = {
    TCGEN05_SPLIT.name: (
        *((128, 256), (128, 192), (128, 128), (128, 96), (128, 64)),
        *((64, 256), (64, 128), (64, 64)),
    ),
    WGMMA_SPLIT.name: ((128, 128), (128, 96), (64, 128), (128, 64), (64, 64), (64, 32)),
}
STAGES_MIN, STAGES_MAX = 2, 6
MMAS = sum(map(len, NINE_PRODUCTS))
F32_BYTES = 4
THREAD_RATE = 128  # instructions a cycle (CUDA C++ Programming Guide, arithmetic throughput)
SPLITTING = 13
"""Instructions for an element: those of `warp_schedule.SPLITTING`, and a share of addresses."""


def split_tiles(spec: MatmulSpec, target: Target) -> Iterator[tuple[int, int, int]]:
    """The tiles of a problem that threads may split, if the chip is given such."""
    if spec.a_dtype != "bf16x9" or target.chip not in CHOSEN or spec.quantized:
        return
    used = target.using(CHOSEN[target.chip])
    step = 1
    if spec.products == 2:
        step = used.mma.pair_n_step if used.adds_from_tensor_memory else 2 * used.mma_n_step(64)
    for m, n in TILES[used.mma.name]:
        for k in DEPTHS:
            fits = not tile_memory(used, (m, n, k), F32_BYTES) and n % step == 0
            if fits and used.mma_warpgroups(m, n):
                yield m, n, k


def split_warps(tile: tuple[int, int, int], target: Target) -> int:
    """Warps that split a tile and add its products."""
    warps = target.using(CHOSEN[target.chip]).mma_warps(*tile[:2])
    assert warps is not None  # of a tile of `split_tiles`
    return warps


def split_cycles(spec: MatmulSpec, tile: tuple[int, int, int], target: Target) -> dict[str, float]:
    """Cycles that each resource needs for one K tile of one CTA, of tcgen05.mma."""
    (m, n, k), chip = tile, figures(target)
    assert chip.tmem_rate is not None  # such chips have one
    elements = (m + n) * k
    read = MMAS * TERM_DTYPE.bytes + F32_BYTES
    written = len(TERMS) * TERM_DTYPE.bytes + F32_BYTES
    added = max(m * n * F32_BYTES / chip.tmem_rate, m * n / THREAD_RATE) + READING + MEETING
    rows = round_up(m, target.using(CHOSEN[target.chip]).mma.m[-1])
    arriving = min(m, spec.m) + min(n, spec.products * spec.n)
    return {
        "tensor core": MMAS * 2 * rows * n * k / chip.mma_rate + MEETING,
        "shared memory": (read + written) * elements / chip.shared_rate,
        "threads": SPLITTING * elements / THREAD_RATE + added,
        "L2": arriving * k * DTYPES[spec.a_dtype].bytes / chip.l2_rate,
    }
