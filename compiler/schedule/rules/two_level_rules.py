"""Constraints on two-level accumulation.

The tensor core computes the product of one step of K, and threads add it to sums in f32, with or
without scales. So a thread holds a product in addition to its sums. Most rules here are limits of
its registers, beyond which ptxas spilled.
"""

from __future__ import annotations

import math

from ....dialects.dtypes import BLOCKWISE
from ....dialects.held_registers import (
    ATOM_ROWS,
    SUMS_MAX,
    beside_scales,
    of_sums,
    scales_one_by_one,
)
from ....dialects.target import Target
from ..problem import Problem, Schedule

COLUMNS_MIN, STAGES_MIN = 96, 4
ALONE_ROWS = 128
"""The rows of C, or of a group on average, up to which a single warpgroup per tile may be
enough."""
SCALE_BYTES, BESIDE_COPIES, COPIES_OF_GROUPS = 4, (160, 100), (140, 80)
BEHIND_SUMS = 176
"""Registers of sums and a product beside which two warpgroups of 64 rows each read scales after the
MMAs: those of 128x176."""
BESIDE_GROUPS, WIDE_BESIDE_GROUPS, OF_THREE_BESIDE_GROUPS = 180, 160, 110
"""Registers of sums, a product and scales beside what threads hold for groups of rows: those of
128x144, 256x88 and 192x88; 256x88 also beside a bias."""
GROUPS_OF_32_BITS = 180
"""Registers of sums and a product beside the same and a 32-bit C: those of 256x120."""
BESIDE_STAGES, STAGED_COLUMNS, STAGED_BYTES = 210, 16, 2
"""The registers of 256x120, and the columns and bytes of C that the threads of 256x128 have
registers to stage."""


def added_columns(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Where threads add products, wide MMAs leave shared memory to loads and scales."""
    m, n, _ = schedule.tile
    if target.adds_from_tensor_memory:
        return None  # which MMAs of 128 rows read less often
    wide = n >= min(COLUMNS_MIN, problem.n) or (target.mma_warpgroups(m, n) or 1) == 1
    if not problem.adds_products or wide:
        return None
    return f"MMAs of {n} columns read shared memory all the time, those of {COLUMNS_MIN} don't"


def added_alone(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A single warpgroup either multiplies or adds. With scales of single columns, an H200 took 1.2
    to 1.6 times as long with tiles of 64x128 as with tiles of two warpgroups, where there are tiles
    for all of its multiprocessors."""
    m, n, _ = schedule.tile
    if not (problem.adds_products and problem.column_scales) or target.adds_from_tensor_memory:
        return None
    several = math.prod(problem.grid(schedule)) > 2 * target.multiprocessors
    alone = (target.mma_warpgroups(m, n) or 1) == 1
    if not alone or problem.m <= ALONE_ROWS or not several:
        return None
    return f"one warpgroup of {m}x{n} multiplies or adds, two do both at once"


def added_cluster(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Where threads add products, clusters that share operands were 1 to 7 % slower on an H200."""
    whole = schedule.split_k * schedule.split_grid == 1
    if not (problem.adds_products and whole and schedule.cluster_size > 1):
        return None
    return "CTAs whose threads add products were slower in clusters on an H200"


def added_ring(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Threads that add products hold slots for long: 256x128 took 17 % longer with three stages."""
    several = (target.mma_warpgroups(*schedule.tile[:2]) or 1) > 1
    short = schedule.stages < min(STAGES_MIN, problem.k_tiles(schedule))
    if not (problem.adds_products and several and short):
        return None
    return f"{schedule.stages} stages were slower than {STAGES_MIN} where threads add products"


def added_registers(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """More than 192 registers of sums and products take all others. Without scales, 128x224 was up
    to 5 % faster with them on an H200; with scales ptxas spilled, and 256x144 was slower than
    256x128. Tiles of 256x128 spilled where rows are in groups and C has 32 bits."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n) or 1
    held, most = of_sums(m, n, warpgroups), SUMS_MAX
    if problem.grouped and problem.c_bytes > STAGED_BYTES and m > warpgroups * ATOM_ROWS:
        most = GROUPS_OF_32_BITS
    if not problem.adds_products or target.adds_from_tensor_memory or held <= most:
        return None
    scaled = problem.row_scales or problem.column_scales
    if m == warpgroups * ATOM_ROWS and not scaled:
        return None
    return f"{held} registers of sums and products leave a thread too few, {most} don't"


def added_copies(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Threads that copy what TMA cannot address keep registers that the adding threads would need:
    ptxas spilled from 168 registers for sums, products and scales of columns on in two warpgroups,
    from 120 in three, and from 160 for groups of rows."""
    m, n, k = schedule.tile
    warpgroups = target.mma_warpgroups(m, n) or 1
    if not problem.adds_products or warpgroups == 1 or not _copies(problem, target):
        return None
    held = of_sums(m, n, warpgroups) + (_of_scales(n, k) if problem.column_scales else 0)
    most = (COPIES_OF_GROUPS if problem.grouped else BESIDE_COPIES)[warpgroups - 2]
    if held <= most:
        return None
    return (
        f"{held} registers of sums, products and scales leave a thread of {warpgroups} warpgroups "
        f"too few beside threads that copy, {most} don't"
    )


def _copies(problem: Problem, target: Target) -> bool:
    """Whether threads copy operands or scales while others hold sums in registers."""
    return not target.adds_from_tensor_memory and are_copied(problem, target)


def are_copied(problem: Problem, target: Target) -> bool:
    """Whether threads copy operands or scales."""
    sides = (problem.row_scales, problem.m), (problem.column_scales, problem.n)
    scales = any(has and size * SCALE_BYTES % target.tma_alignment_bytes for has, size in sides)
    return scales or not (problem.by_tma("a") and problem.by_tma("b"))


def _of_scales(columns: int, depth: int) -> int:
    """Registers for scales of columns, for one or two steps."""
    return columns // 4 if depth == BLOCKWISE else columns // 2


def scaled_registers(
    problem: Problem, schedule: Schedule, target: Target, warpgroups: int
) -> str | None:
    """A thread holds sums, a product of 64 rows, and scales of its columns.

    Where it has too few registers for these, it reads scales that TMA brings after the MMAs. Then
    ptxas spills from 216 registers for sums and a product on, which `added_registers` refuses. On
    an H200, 128x176 was the fastest such tile, and 128x192 up to 4 % slower than the best other
    one. Tiles of 256x128 spilled where a scale belongs to 128 rows, and 256x96 beside a bias. With
    groups, 256x96 spilled, and so did 192x96 and 128x160 and wider ones. With groups 256x112 did
    not spill, but was 6 to 12 % slower than 128x128 on an H200.
    """
    m, n, k = schedule.tile
    sums, vectors = of_sums(m, n, warpgroups), k == BLOCKWISE and not _copies(problem, target)
    held = sums + _of_scales(n, k)
    most = beside_scales(m, warpgroups, vectors)
    behind = held > most
    wide = m > warpgroups * ATOM_ROWS
    apart = vectors and scales_one_by_one(m, n, warpgroups)
    if problem.grouped and not behind:
        most = min(most, _beside_groups(wide, warpgroups))
    elif problem.beside_columns and wide and not apart:
        most = min(most, WIDE_BESIDE_GROUPS)
    if wide and not problem.row_scales:
        most = min(most, BESIDE_STAGES)
    if held <= most:
        return None
    if behind and vectors and (m, warpgroups) == (2 * ATOM_ROWS, 2) and sums <= BEHIND_SUMS:
        return None
    return (
        f"{held} registers of sums, products and scales of columns leave a thread of {warpgroups} "
        f"warpgroups too few, {most} don't"
    )


def _beside_groups(wide: bool, warpgroups: int) -> int:
    if warpgroups > 2:
        return OF_THREE_BESIDE_GROUPS
    return WIDE_BESIDE_GROUPS if wide else BESIDE_GROUPS


def added_staging(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Beside the sums, product and scales of 256x128, ptxas spilled if C has 32 bits or is staged
    in pieces of 32 columns; 256x120 did not spill."""
    m, n, k = schedule.tile
    adds = problem.adds_products and problem.column_scales and not target.adds_from_tensor_memory
    if not adds or schedule.staging is None:
        return None
    held = of_sums(m, n, target.mma_warpgroups(m, n) or 1) + _of_scales(n, k)
    columns, _ = schedule.staging
    fits = columns <= STAGED_COLUMNS and problem.c_bytes <= STAGED_BYTES
    if held <= BESIDE_STAGES or fits or m <= 2 * ATOM_ROWS:
        return None
    return (
        f"{held} registers of sums, products and scales of columns leave too few to stage "
        f"{columns} columns of {problem.c_bytes} bytes, {STAGED_COLUMNS} of {STAGED_BYTES} fit"
    )
