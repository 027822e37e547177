"""`tilewright explain schedule` of a matmul of operands with block scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compiler.spec import MatmulSpec
    from ..dialects.target import Target

HEADINGS = ["candidate", "accumulators", "tiles a CTA", "K loop waits for", "estimate [us]"]


def as_dict(spec: MatmulSpec, target: Target) -> dict[str, Any]:
    """The choice as plain values for JSON."""
    from dataclasses import asdict

    from ..compiler.schedule.scaled_schedule import estimates, rule_of

    found = estimates(spec, target)
    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.chip,
        "schedule": asdict(found[0].schedule),
        "pipeline": found[0].schedule.pipeline(),
        "rule": rule_of(target),
        "candidates": [asdict(each) | {"bound": each.bound} for each in found],
    }


def print_choice(spec: MatmulSpec, target: Target) -> None:
    """The choice, its rule and what each candidate is estimated to take."""
    from ..compiler.schedule.scaled_schedule import estimates, rule_of
    from .tables import print_table

    found = estimates(spec, target)
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}, {target.chip}")
    print(f"schedule   {found[0].schedule.label()}")
    print(f"pipeline   {found[0].schedule.pipeline()}")
    print(f"rule       {rule_of(target)}")
    rows = [
        [
            each.schedule.label(),
            str(each.accumulators),
            str(each.waves),
            each.bound,
            f"{each.total_us:.1f}",
        ]
        for each in found
    ]
    print_table(HEADINGS, rows)
