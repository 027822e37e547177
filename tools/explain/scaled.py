"""`tilewright explain schedule` for a matmul with block scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...compiler.schedule.kinds.scaled_schedule import ScaledEstimate
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import Target


def accumulators(chosen: ScaledEstimate, target: Target) -> str:
    """Why there are two or one."""
    from ...dialects.scaled_legality import SCALE_PLACES

    m, n, _ = chosen.schedule.tile
    each, scales = target.accumulator_columns(m, n), SCALE_PLACES * chosen.scale_columns
    room = f"{target.tmem_columns} columns of tensor memory"
    needed = f"2 x {each} columns and {scales} for the scales of {SCALE_PLACES} K steps"
    if chosen.schedule.parts > 1:
        return f"one accumulator of {each} columns, of a part of K; the last CTA adds up all parts"
    if chosen.accumulators > 1:
        return f"two accumulators: {needed} fit the {room}; an epilogue runs beside the next tile"
    if chosen.shared:
        shared = (
            f"two accumulators that share {chosen.shared} columns: {needed} are over the {room}"
        )
        return f"{shared}; an epilogue reads the shared ones first, then runs beside the next tile"
    return f"one accumulator: {needed} are over the {room}; each tile waits until it is read"


def sums_of(each: ScaledEstimate) -> str:
    """How many accumulators of a candidate there are, and how many columns two share."""
    return f"2, {each.shared} columns shared" if each.shared else str(each.accumulators)


def scales(chosen: ScaledEstimate, spec: MatmulSpec) -> str:
    """What those of a K step take."""
    from ...dialects.scaled_legality import SCALE_PLACES

    steps = -(-spec.k // (chosen.schedule.tile[2] * chosen.schedule.parts))
    where = "beside those of the step before" if chosen.places == SCALE_PLACES else "in front"
    copy, multiply = (round(each / steps) for each in (chosen.copy, chosen.multiply))
    loaded = f"{chosen.scale_bytes} bytes a CTA and K step from L2"
    return f"{loaded}, {copy} cycles of tcgen05.cp to {multiply} of MMAs, {where}"


def multicast(shared: ScaledEstimate, chosen: ScaledEstimate, target: Target) -> str:
    """What it would take to share B."""
    from ...compiler.schedule.chips.chip_figures import figures

    size = 4
    busy = size * int(figures(target).clusters_at_once[size])
    saved = round(100 * (1 - shared.load / chosen.load))
    return (
        f"two pairs that share B would load {saved} % less, but clusters of {size} find room for "
        f"{busy} of {target.multiprocessors} CTAs at a time: {shared.total_us:.1f} us"
    )
