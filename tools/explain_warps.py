"""`tilewright explain schedule` for a chip whose warps multiply by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compiler.spec import MatmulSpec
    from ..dialects.target import Target

RULE = "the least microseconds by estimate, then the largest tile and the deepest ring"


def as_dict(spec: MatmulSpec, target: Target) -> dict[str, Any]:
    """The choice as plain values for JSON."""
    from dataclasses import asdict

    from ..compiler.schedule.chip_figures import figure_table
    from ..compiler.schedule.warp_schedule import candidates

    found = candidates(spec, target)
    chosen, _ = found[0]
    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.chip,
        "schedule": asdict(chosen),
        "pipeline": chosen.pipeline(),
        "rule": RULE,
        "candidates": [{**asdict(each), "total_us": spent} for each, spent in found],
        "figures": {name: each.as_dict() for name, each in figure_table(target).items()},
    }


def print_choice(spec: MatmulSpec, target: Target) -> None:
    """The choice, its rule and what each candidate takes."""
    from ..compiler.schedule.warp_schedule import candidates
    from .tables import print_table

    found = candidates(spec, target)
    chosen, _ = found[0]
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}, {target.chip}")
    print(f"schedule   {chosen.label()}")
    print(f"pipeline   {chosen.pipeline()}")
    print(f"rule       {RULE}")
    rows = [[each.label(), f"{spent:.2f}"] for each, spent in found]
    print_table(["candidate", "us"], rows)
