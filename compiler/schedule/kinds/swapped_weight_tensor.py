"""The estimate of narrow weights converted into tensor memory, for tcgen05.mma; not measured.

    step     the longest of what the tensor core multiplies, what threads widen, store and hand
             over, and what L2 brings: MMAs of one step run while threads widen the next one's
    groups   threads add the product of each group, which they wait for and read
    round    the steps of a CTA, its first loads, its last MMAs and the store of its tile

The chip's figures are others' measurements of a B200, with their sources (`tensor_figures`). The
instructions per pair of weights are counted in SASS of ptxas 13.5, from the load to the store.
"""

from __future__ import annotations

import math

from ....dialects.dtypes import DTYPES
from ....dialects.target import WARP_THREADS, Target
from ...spec import MatmulSpec
from ..chips.chip_figures import figures, tensor_figures
from ..chips.figure import Figure
from ..chips.figure_sets import ChipFigures
from ..chips.tensor_figures import MICRO, SEMI

PAIR_INSTRUCTIONS = {
    ("s4", "bf16"): 4.7, ("s4", "f16"): 4.7, ("u4", "bf16"): 4.7, ("u4", "f16"): 4.7,
    ("s8", "bf16"): 5.8, ("s8", "f16"): 3.5,
    ("e4m3", "bf16"): 4.5, ("e4m3", "f16"): 1.5, ("e5m2", "bf16"): 4.5, ("e5m2", "f16"): 1.5,
}  # fmt: skip
"""By the types of the weights and of the other operand."""
ISSUE_RATE = 4  # warp instructions a cycle of a multiprocessor
WIDENED = Figure(1.2, "-", "of what its instructions take: fitted to an H200's wgmma", True)
MMA_LEAST = Figure(32, "cycles", f"{SEMI}: an MMA with A in tensor memory and N of 64")
STORED = Figure(50, "cycles", f"{MICRO}: tcgen05.st of 64 columns until it is there")
MET = Figure(21, "cycles", f"{MICRO}: a named barrier of 128 threads")
SEEN = Figure(89, "cycles", f"{MICRO}: from an mbarrier's arrival until a wait has ended")
READ = Figure(200, "cycles", "SIGLIP: tcgen05.ld until its words are there")
SCATTERED = Figure(0.25, "cycles", "an element that threads store by itself: as an H200", True)
MMA_K, STAGED_BYTES, WIDE_BYTES = 16, 2, 2


def tensor_cycles(
    spec: MatmulSpec, tile: tuple[int, int, int], parts: int, stages: int, target: Target
) -> float:
    """Cycles of all K steps of a tile of N×M×K elements if `parts` CTAs share K, from the start of
    the CTA until it may store."""
    (_, n, k), chip, tensor = tile, figures(target), tensor_figures(target)
    steps = math.ceil(math.ceil(spec.k / k) / parts)
    mma = k / MMA_K * max(n / 2, MMA_LEAST) + tensor.mma_batch
    busy = max(mma, _threads(spec, tile, chip), _moved(spec, tile, chip))
    awaited = (chip.tma_latency + mma + tensor.mma_latency) / stages
    end = mma + tensor.mma_latency + READ
    return steps * max(busy, awaited) + tensor.cold_fill + chip.cta_start + end


def stored_cycles(tile: tuple[int, int, int], staged: bool, target: Target) -> float:
    """Cycles in which a tile is converted and stored."""
    rows, n, _ = tile
    if not staged:
        return rows * n * SCATTERED
    moved = STAGED_BYTES / figures(target).tma_store_rate
    return rows * n * (moved + 1 / tensor_figures(target).read_rate)


def _threads(spec: MatmulSpec, tile: tuple[int, int, int], chip: ChipFigures) -> float:
    """What threads do in a step, one after another: wait, widen, store, meet, and add groups."""
    rows, n, k = tile
    pairs = rows * k / 2 / WARP_THREADS
    widen = pairs * PAIR_INSTRUCTIONS[spec.b_dtype, spec.a_dtype] / ISSUE_RATE * WIDENED
    grouped = spec.group_size not in (0, spec.k)
    products = k // math.gcd(k, spec.group_size) if grouped else 1
    handed = products * (STORED + MET + SEEN) + SEEN
    if not grouped:
        return widen + handed
    assert chip.tmem_rate is not None  # of a chip with tensor memory
    read = READ + rows * n * DTYPES["f32"].bytes / chip.tmem_rate
    return widen + handed + products * (read + rows * n / WARP_THREADS / ISSUE_RATE)


def _moved(spec: MatmulSpec, tile: tuple[int, int, int], chip: ChipFigures) -> float:
    rows, n, k = tile
    read = n * k * WIDE_BYTES + rows * k * DTYPES[spec.b_dtype].bits / 8
    return read / chip.l2_rate
