"""`tilewright explain schedule` of a product of few rows whose elements lanes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compiler.schedule.schedule import Schedule
    from ..compiler.spec import MatmulSpec
    from ..dialects.target import Target

RULE = "the least microseconds by estimate"


def as_dict(spec: MatmulSpec, target: Target) -> dict[str, Any]:
    """The choice as plain values for JSON."""
    from dataclasses import asdict

    from ..compiler.schedule.chip_figures import figure_table
    from ..compiler.schedule.lane_schedule import lane_schedule, lanes_us

    chosen = lane_schedule(spec, target)
    tiles, tiles_us = _of_tiles(spec, target)
    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.name,
        "schedule": asdict(chosen),
        "pipeline": chosen.pipeline(),
        "rule": RULE,
        "total_us": lanes_us(spec, target),
        "rejected": [{"schedule": asdict(tiles), "total_us": tiles_us}],
        "figures": {name: each.as_dict() for name, each in figure_table(target).items()},
    }


def print_choice(spec: MatmulSpec, target: Target) -> None:
    """The choice, and the best of the other kind."""
    from ..compiler.schedule.lane_schedule import dram_us, lane_schedule, lanes_us
    from .tables import print_table

    chosen = lane_schedule(spec, target)
    tiles, tiles_us = _of_tiles(spec, target)
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}, {target.name}")
    print(f"schedule   {chosen.label()}")
    print(f"pipeline   {chosen.pipeline()}")
    total = lanes_us(spec, target)
    print(f"estimate   {total:.2f} us, of which DRAM takes {dram_us(spec, target):.2f}")
    print(f"rule       {RULE}")
    rows = [[chosen.label(), f"{total:.2f}"], [tiles.label(), f"{tiles_us:.2f}"]]
    print_table(["candidate", "us"], rows)


def _of_tiles(spec: MatmulSpec, target: Target) -> tuple[Schedule, float]:
    """The best tiles of a tensor core, and their microseconds."""
    from ..compiler.schedule.choice import choose_schedule
    from ..compiler.schedule.estimate import estimate
    from ..compiler.schedule.problem import Problem

    tiles = choose_schedule(spec, target)
    return tiles, estimate(Problem.of(spec, target), tiles, target).total_us
