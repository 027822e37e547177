"""The kinds of figures of a chip: its units, clusters, and split-K over the grid."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....dialects.record import record
from .figure import Figure
from .tensor_figures import TensorFigures

UNUSED = Figure(0, "-", "nothing estimates this chip by it", True)
ONE_BY_ONE = Figure(1, "-", "PTX ISA: no arithmetic on two f32 at once")


@record
class SplitFigures:
    """What it costs that a cluster of CTAs splits K, each with operands of its own.

    `share` is of what DRAM or L2 takes, whichever is faster, that comes beside the other; `store`
    of threads, each a part of a tile of C; `beside` their reading of a part of a residual, after
    the sums of all.
    """

    first_rate: Figure
    l2_rate: Figure
    share: Figure
    multicast: Figure
    latency: Figure
    rate: Figure
    store: Figure
    beside: Figure
    start: Figure


@record
class PartFigures:
    """What it costs that CTAs of the grid split K: their sums go through L2, the last one reads
    those of all.

    `write` and `read` are of one multiprocessor while the others do so too, `meet` is from the last
    write until the first sums of others are there.
    """

    write: Figure
    read: Figure
    meet: Figure


@dataclass(frozen=True, kw_only=True)
class ChipFigures:
    """What one chip takes for what; None is for what it does not have or nobody measured.

    `clusters_at_once` is how many clusters of so many CTAs find room; of other sizes as many as
    there are multiprocessors for.
    """

    clock: Figure
    mma_rate: Figure
    shared_rate: Figure
    l2_rate: Figure
    copy_rate: Figure
    shift_rate: Figure
    l2_total_rate: Figure
    unaligned_line: Figure = UNUSED
    narrow_row: Figure = UNUSED
    second_line: Figure = UNUSED
    outside_share: Figure = UNUSED
    shared_twice: Figure = UNUSED
    shared_row: Figure = UNUSED
    copy_step: Figure = UNUSED
    asked_again: Figure = UNUSED
    answered_together: Figure = UNUSED
    answered_apart: Figure = UNUSED
    few_columns: Figure = UNUSED
    l2_size: Figure
    written: Figure = UNUSED
    dram_rate: Figure
    tma_latency: Figure
    cta_start: Figure
    cluster_start: Figure
    cluster_doubled: Figure = UNUSED
    direct_store_rate: Figure
    tma_store_rate: Figure
    epilogue_rate: Figure
    packed: Figure = ONE_BY_ONE
    second_sum: Figure = UNUSED
    code_bytes: Figure = UNUSED
    code_rate: Figure = UNUSED
    beside_rate: Figure = UNUSED
    piece_latency: Figure = UNUSED
    vector_latency: Figure = UNUSED
    staged_piece: Figure = UNUSED
    store_request: Figure = UNUSED
    step_least: Figure = UNUSED
    next_tile: Figure = UNUSED
    together_share: Figure = UNUSED
    turns_share: Figure = UNUSED
    computed_share: Figure = ONE_BY_ONE
    group_walk: Figure = UNUSED
    group_turns: Figure = UNUSED
    second_share: Figure = UNUSED
    first_wave: Figure = UNUSED
    dram_share: Figure = UNUSED
    multicast: Figure = UNUSED
    tmem_rate: Figure | None = None
    clc_query: Figure | None = None
    tensor: TensorFigures | None = None
    split: SplitFigures | None = None
    parts: PartFigures | None = None
    clusters_at_once: dict[int, Figure] = field(default_factory=dict)
