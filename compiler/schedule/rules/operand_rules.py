"""Constraints on the tiles of A and B: their layouts, and what TMA can load."""

from __future__ import annotations

from ....dialects import legality
from ....dialects.layout import SPAN_BYTES
from ....dialects.target import Target
from ..problem import Problem, Schedule


def operand_layout(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Both operand tiles must have a layout that the MMA reads."""
    reasons = [layout.fits() for layout in problem.layouts(schedule)]
    return next((reason for reason in reasons if reason), None)


def narrow_rows(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A tile wider than the widest swizzle must not need a narrower one, whose rows would cost as
    much. Half of the widest is allowed on Hopper, where the estimate counts such rows
    (`narrow_row`)."""
    widest = max(SPAN_BYTES.values())
    least = widest if target.has_tensor_memory else widest // 2
    for name, layout in zip("ab", problem.layouts(schedule), strict=True):
        row_bytes = layout.contiguous * layout.element_bytes
        if layout.span_bytes < least and widest < row_bytes:
            return f"{row_bytes} contiguous bytes of {name} would be rows of {layout.span_bytes}"
    return None


def tma_box(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A box is at most 256 in every dimension; rank 3 needs whole chunks in a row of the tensor."""
    for name, layout in zip("ab", problem.layouts(schedule), strict=True):
        broken = legality.box_rows(target, layout.rows)
        if broken:
            return f"{name}: {broken}"
        contiguous = problem.contiguous(name)
        if schedule.box == "3d" and contiguous % layout.span:
            return (
                f"3d boxes need rows of whole {layout.span_bytes}-byte chunks, {name} has "
                f"{contiguous * problem.element_bytes} bytes"
            )
    return None


def tma_row_pitch(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Clusters share what TMA loads, so TMA must address both operands; pairs halve copies."""
    for name in "ab" if schedule.cluster_size > (2 if schedule.pair else 1) else "":
        broken = legality.row_pitch(target, *problem.pitch_bytes(name))
        broken = broken or legality.stack_pitch(target, problem.step_bytes(name))
        if broken:
            return f"{name} needs TMA for multicast: {broken}"
    return None


def multicast_slice(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """What each CTA loads of a shared tile must be whole rows of it, as many as the others load."""
    cluster_m, cluster_n = schedule.cluster
    sharers = cluster_m // 2 if schedule.pair else cluster_m
    peers_of = cluster_n, max(sharers, 1)
    for name, layout, peers in zip("AB", problem.layouts(schedule), peers_of, strict=True):
        broken = legality.multicast_rows(layout, peers) if peers > 1 else None
        if broken:
            return f"{name}: {broken}"
    return None


def mma_shape(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """The tile must be whole MMAs (PTX ISA, tcgen05.mma shapes)."""
    m, n, k = schedule.tile
    return (
        legality.tile_rows(target, m)
        or legality.tile_columns(target, m, n, problem.integers)
        or (legality.dual_tile(target, m, n, problem.integers) if problem.products == 2 else None)
        or legality.tile_depth(target, k, problem.k_per_mma, f"{problem.element_bytes}-byte types")
        or legality.added_depth(target, k)
    )
