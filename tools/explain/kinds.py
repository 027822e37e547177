"""`tilewright explain schedule` for the kinds of kernels with their own schedules.

Block scales, threads, narrow weights, warps, lanes: their candidates are few, and a rule takes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..command_line.output import print_json
from .scaled import accumulators, multicast, scales, sums_of

if TYPE_CHECKING:
    from ...compiler.schedule.problem import Schedule
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import Target

THREADS_RULE = (
    "lanes for a row or two of f32; else the smallest tile, or the largest one that has a CTA for"
    " every multiprocessor"
)
WARPS_RULE = "the least microseconds by estimate, then the largest tile and the deepest ring"
MEASURED_RULE = "the fastest of all kinds that were measured, of a table"
LANES_RULE = "the least microseconds by estimate"
SCALED_COLUMNS = [
    "candidate", "accumulators", "tiles a CTA", "K loop waits for", "estimate [us]"
]  # fmt: skip


class Kind(NamedTuple):
    """The schedule that was chosen, the rule, and what there is beside it.

    `facts` is what JSON says besides, `lines` what people are told below the rule.
    """

    chosen: Any
    rule: str
    facts: dict[str, Any]
    lines: dict[str, str]
    columns: list[str]
    rows: list[list[str]]


Find = Callable[["MatmulSpec", "Target"], Kind]


def explain_kind(spec: MatmulSpec, target: Target, as_json: bool) -> bool:
    """Print the choice, if the product is of such a kind."""
    for applies, find in _kinds(spec, target):
        if applies:
            found = find(spec, target)
            if as_json:
                print_json(_as_dict(found, spec, target))
            else:
                _print(found, spec, target)
            return True
    return False


def _kinds(spec: MatmulSpec, target: Target) -> tuple[tuple[bool, Find], ...]:
    """All kinds of kernels; the first that applies decides."""
    from ...compiler.schedule.kinds.lane_schedule import is_by_lanes
    from ...compiler.schedule.kinds.thread_schedule import is_by_threads
    from ...compiler.schedule.kinds.warp_schedule import is_by_warps
    from ...compiler.schedule.tuned_pipelines import tuned_pipeline

    return (
        (tuned_pipeline(spec, target) is not None, _measured),
        (spec.is_scaled, _scaled),
        (is_by_threads(spec), _threads),
        (spec.has_weights, _weights),
        (is_by_warps(target), _warps),
        (is_by_lanes(spec, target), _lanes),
    )


def _as_dict(kind: Kind, spec: MatmulSpec, target: Target) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.name,
        "schedule": asdict(kind.chosen),
        "pipeline": kind.chosen.pipeline(),
        "rule": kind.rule,
        **kind.facts,
    }


def _print(kind: Kind, spec: MatmulSpec, target: Target) -> None:
    from ..command_line.tables import print_table

    types = f"{spec.a_dtype} · {spec.b_dtype} → {spec.c_dtype}"
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {types}, {target.name}")
    print(f"schedule   {kind.chosen.label()}")
    print(f"pipeline   {kind.chosen.pipeline()}")
    for name, text in {"rule": kind.rule, **kind.lines}.items():
        print(f"{name:<10} {text}")
    print_table(kind.columns, kind.rows)


def _measured(spec: MatmulSpec, target: Target) -> Kind:
    """The fastest measured schedule of the table, of whatever kind."""
    from ...compiler.schedule.tuned_pipelines import tuned_pipeline

    found = tuned_pipeline(spec, target)
    assert found is not None  # as `_kinds` has seen
    return Kind(
        found, MEASURED_RULE, {}, {}, ["measured", "us"], [[found.passes, f"{found.us:.2f}"]]
    )


def _scaled(spec: MatmulSpec, target: Target) -> Kind:
    """MMAs take block scales."""
    from dataclasses import asdict

    from ...compiler.schedule.kinds.scaled_schedule import estimates, of_multicast, rule_of

    found, shared = estimates(spec, target), of_multicast(spec, target)
    facts = {
        "candidates": [asdict(each) | {"bound": each.bound} for each in found],
        "multicast": asdict(shared) if shared is not None else None,
    }
    lines = {}
    if target.has_tensor_memory:
        lines = {"sums": accumulators(found[0], target), "scales": scales(found[0], spec)}
    if shared is not None:
        lines["multicast"] = multicast(shared, found[0], target)
    rows = [
        [
            each.schedule.label(),
            sums_of(each),
            str(each.waves),
            each.bound,
            f"{each.total_us:.1f}",
        ]
        for each in found
    ]
    return Kind(found[0].schedule, rule_of(target), facts, lines, SCALED_COLUMNS, rows)


def _threads(spec: MatmulSpec, target: Target) -> Kind:
    """Threads multiply by themselves."""
    from ...compiler.schedule.kinds.thread_schedule import candidates, thread_schedule

    found = candidates(spec)
    facts = [
        {"tile": list(each.tile), "threads": each.threads, "ctas": ctas} for each, ctas in found
    ]
    rule = f"{THREADS_RULE}: {target.multiprocessors}"
    rows = [[each.label(), str(ctas)] for each, ctas in found]
    chosen = thread_schedule(spec, target)
    return Kind(chosen, rule, {"candidates": facts}, {}, ["candidate", "CTAs"], rows)


def _warps(spec: MatmulSpec, target: Target) -> Kind:
    """Warps multiply by themselves, by mma.sync."""
    from dataclasses import asdict

    from ...compiler.schedule.kinds.warp_schedule import candidates

    found = candidates(spec, target)
    facts = {"candidates": [{**asdict(each), "total_us": spent} for each, spent in found]}
    rows = [[each.label(), f"{spent:.2f}"] for each, spent in found]
    return Kind(found[0][0], WARPS_RULE, facts | _figures(target), {}, ["candidate", "us"], rows)


def _weights(spec: MatmulSpec, target: Target) -> Kind:
    """Threads widen the weights."""
    from dataclasses import asdict

    from ...compiler.schedule.kinds.weight_schedule import dram_bytes, estimates

    found, moved = estimates(spec, target), dram_bytes(spec)
    facts = {"dram_bytes": moved, "candidates": [asdict(each) for each in found]}
    lines = {"DRAM": f"{moved / 1e6:.1f} MB in {found[0].dram_us:.1f} us"}
    rows = [[each.schedule.label(), each.bound, f"{each.total_us:.2f}"] for each in found]
    columns = ["candidate", "bound by", "us"]
    return Kind(found[0].schedule, WARPS_RULE, facts | _figures(target), lines, columns, rows)


def _lanes(spec: MatmulSpec, target: Target) -> Kind:
    """Lanes share the elements of few rows; the other kind is the best tiles of a tensor core."""
    from dataclasses import asdict

    from ...compiler.schedule.kinds.lane_schedule import dram_us, lane_schedule, lanes_us

    chosen, total = lane_schedule(spec, target), lanes_us(spec, target)
    tiles, tiles_us = _of_tiles(spec, target)
    facts = {"total_us": total, "rejected": [{"schedule": asdict(tiles), "total_us": tiles_us}]}
    lines = {"estimate": f"{total:.2f} us, of which DRAM takes {dram_us(spec, target):.2f}"}
    rows = [[chosen.label(), f"{total:.2f}"], [tiles.label(), f"{tiles_us:.2f}"]]
    return Kind(chosen, LANES_RULE, facts | _figures(target), lines, ["candidate", "us"], rows)


def _of_tiles(spec: MatmulSpec, target: Target) -> tuple[Schedule, float]:
    """The best tiles of a tensor core, and their microseconds."""
    from ...compiler.schedule.estimates.estimate import estimate
    from ...compiler.schedule.problem import Problem
    from ...compiler.schedule.search.choice import choose_schedule

    tiles = choose_schedule(spec, target)
    return tiles, estimate(Problem.of(spec, target), tiles, target).total_us


def _figures(target: Target) -> dict[str, Any]:
    from ...compiler.schedule.chips.chip_figures import figure_table

    return {"figures": {name: each.as_dict() for name, each in figure_table(target).items()}}
