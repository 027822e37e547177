"""The sets of figures of a chip: its units and clusters, and both kinds of split K."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....dialects.record import record
from .figure import Figure
from .tensor_figures import TensorFigures

UNUSED = Figure(0, "-", "nothing estimates this chip by it", True)
ONE_BY_ONE = Figure(1, "-", "PTX ISA: no arithmetic on two f32 at once")


@record
class SplitFigures:
    """The costs of splitting K over a cluster of CTAs, each of which has operands of its own.

    `share` is the share of the time of DRAM or L2, whichever is faster, that is not hidden behind
    the other. `store` is the rate at which threads store, each a part of a tile of C; `beside` the
    rate at which they read their part of a residual, after the sums are added.
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
    """The costs of splitting K over CTAs of the grid: partial sums go through L2, and are then read
    and added.

    `write` and `read` are rates of one multiprocessor while the others do the same; `meet` is the
    time from the last write until the first sums of other CTAs can be read.
    """

    write: Figure
    read: Figure
    meet: Figure


@dataclass(frozen=True, kw_only=True)
class ChipFigures:
    """The figures of one chip; None for what it does not have or nobody measured.

    `clusters_at_once` is the number of clusters of each size that run at once; for other sizes it
    is the number that the multiprocessors allow. `gpcs` is the number of GPCs by how many
    multiprocessors of each take large clusters.
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
    gpcs: dict[int, Figure] = field(default_factory=dict)
