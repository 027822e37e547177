"""Tiles of f32 operands that threads split into terms, for tcgen05.mma and wgmma
(`dialects.terms`): the candidates, and their cost with tcgen05.mma; `split_wgmma` has the other.

    tensor core     nine MMAs of bf16 per product, or three of tf32
    shared memory   what those read, 18 bytes per element or 12; the f32 tiles written by TMA and
                    read by threads, and the terms that threads write
    threads         splitting an element, and adding products that lie in tensor memory

Nothing was measured for tcgen05.mma; instructions are counted in the SASS of a step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....dialects.dtypes import DTYPES
from ....dialects.legality import tile_memory
from ....dialects.mma_units import TCGEN05_ROUNDED, TCGEN05_SPLIT, WGMMA_SPLIT
from ....dialects.target import WARP_THREADS, Target
from ....dialects.terms import DEPTHS
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from ..estimates.two_level_costs import MEETING, READING
from ..extents import round_up

CHOSEN = {
    ("sm_100a", "bf16x9"): TCGEN05_SPLIT.name,
    ("sm_100a", "3xtf32"): TCGEN05_ROUNDED.name,
    ("sm_90a", "bf16x9"): WGMMA_SPLIT.name,
}
"""The chips and types for which such tiles are chosen by default, and their MMA."""
OF_TCGEN05 = (
    *((128, 256), (128, 192), (128, 128), (128, 96), (128, 64)),
    *((64, 256), (64, 128), (64, 64)),
)
TILES = {
    TCGEN05_SPLIT.name: OF_TCGEN05,
    TCGEN05_ROUNDED.name: OF_TCGEN05,
    WGMMA_SPLIT.name: ((128, 128), (128, 96), (64, 128), (128, 64), (64, 64), (64, 32)),
}
STAGES_MIN, STAGES_MAX = 2, 6
F32_BYTES = 4
STAGED_SUMS = 128  # registers of a thread, from which on ptxas spilled where TMA stores f32
THREAD_RATE = 128  # instructions a cycle (CUDA C++ Programming Guide, arithmetic throughput)
SPLITTING = {"bf16x9": 13, "3xtf32": 10}
"""Instructions per element, with a share of the addresses; a rounding to tf32 takes four of
them."""


def split_mma(spec: MatmulSpec, target: Target) -> str | None:
    """The MMA of tiles that threads split; None if a chip has none by default for a type."""
    return CHOSEN.get((target.chip, spec.a_dtype))


def split_tiles(spec: MatmulSpec, target: Target) -> Iterator[tuple[int, int, int]]:
    """The tiles of a problem that threads may split; none if the chip has none by default."""
    mma = split_mma(spec, target)
    if mma is None or spec.quantized:
        return
    used = target.using(mma)
    step = 1
    if spec.products == 2:
        step = used.mma.pair_n_step if used.adds_from_tensor_memory else 2 * used.mma_n_step(64)
    for m, n in TILES[used.mma.name]:
        for k in DEPTHS:
            fits = not tile_memory(used, (m, n, k), F32_BYTES) and n % step == 0
            if fits and used.mma_warpgroups(m, n):
                yield m, n, k


def split_warps(tile: tuple[int, int, int], used: Target) -> int:
    """The warps that split a tile and add its products."""
    warps = used.mma_warps(*tile[:2])
    assert warps is not None  # of a tile of `split_tiles`
    return warps


def stages_sums(tile: tuple[int, int, int], c_bytes: int, used: Target) -> bool:
    """Whether TMA may store a tile. With f32 ptxas spilled beside 128 registers of sums that come
    from tensor memory, since all sums of a thread go to shared memory unconverted."""
    m, n, _ = tile
    sums = m * n // (split_warps(tile, used) * WARP_THREADS)
    return not used.adds_from_tensor_memory or c_bytes < F32_BYTES or sums < STAGED_SUMS


def split_cycles(spec: MatmulSpec, tile: tuple[int, int, int], used: Target) -> dict[str, float]:
    """Cycles for which each resource is busy with one K tile of one CTA, with tcgen05.mma."""
    (m, n, k), chip, form = tile, figures(used), used.mma.splits
    assert chip.tmem_rate is not None and form is not None  # such chips have one, and split
    elements, item = (m + n) * k, form.dtype.bytes
    read, written = form.mmas * item + F32_BYTES, form.terms * item + F32_BYTES
    added = max(m * n * F32_BYTES / chip.tmem_rate, m * n / THREAD_RATE) + READING + MEETING
    rows = round_up(m, used.mma.m[-1])
    arriving = min(m, spec.m) + min(n, spec.products * spec.n)
    return {
        "tensor core": form.mmas * 2 * rows * n * k / chip.mma_rate * item / 2 + MEETING,
        "shared memory": (read + written) * elements / chip.shared_rate,
        "threads": SPLITTING[spec.a_dtype] * elements / THREAD_RATE + added,
        "L2": arriving * k * DTYPES[spec.a_dtype].bytes / chip.l2_rate,
    }
