"""`tilewright explain schedule` of a matmul whose threads multiply by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compiler.spec import MatmulSpec
    from ..dialects.target import Target

RULE = (
    "lanes for a row or two of f32; else the smallest tile, or the largest one that has a CTA for"
    " every multiprocessor"
)


def as_dict(spec: MatmulSpec, target: Target) -> dict[str, Any]:
    """The choice as plain values for JSON."""
    from dataclasses import asdict

    from ..compiler.schedule.thread_schedule import candidates, thread_schedule

    chosen = thread_schedule(spec, target)
    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.chip,
        "schedule": asdict(chosen),
        "pipeline": chosen.pipeline(),
        "rule": RULE,
        "candidates": [
            {"tile": list(each.tile), "threads": each.threads, "ctas": ctas}
            for each, ctas in candidates(spec)
        ],
    }


def print_choice(spec: MatmulSpec, target: Target) -> None:
    """The choice, its rule and how many CTAs each candidate has."""
    from ..compiler.schedule.thread_schedule import candidates, thread_schedule
    from .tables import print_table

    chosen = thread_schedule(spec, target)
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}, {target.chip}")
    print(f"schedule   {chosen.label()}")
    print(f"pipeline   {chosen.pipeline()}")
    print(f"rule       {RULE}: {target.multiprocessors}")
    rows = [[each.label(), str(ctas)] for each, ctas in candidates(spec)]
    print_table(["candidate", "CTAs"], rows)
