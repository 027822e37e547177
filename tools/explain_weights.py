"""`tilewright explain schedule` of a matmul whose weights threads widen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compiler.spec import MatmulSpec
    from ..dialects.target import Target

RULE = "the least microseconds by estimate, then the largest tile and the deepest ring"
HEADINGS = ["candidate", "bound by", "us"]


def as_dict(spec: MatmulSpec, target: Target) -> dict[str, Any]:
    """The choice as plain values for JSON."""
    from dataclasses import asdict

    from ..compiler.schedule.chip_figures import figure_table
    from ..compiler.schedule.weight_schedule import dram_bytes, estimates

    found = estimates(spec, target)
    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.chip,
        "schedule": asdict(found[0].schedule),
        "pipeline": found[0].schedule.pipeline(),
        "rule": RULE,
        "dram_bytes": dram_bytes(spec),
        "candidates": [asdict(each) for each in found],
        "figures": {name: each.as_dict() for name, each in figure_table(target).items()},
    }


def print_choice(spec: MatmulSpec, target: Target) -> None:
    """The choice, its rule and what each candidate takes."""
    from ..compiler.schedule.weight_schedule import dram_bytes, estimates
    from .tables import print_table

    found = estimates(spec, target)
    types = f"{spec.a_dtype} · {spec.b_dtype} → {spec.c_dtype}"
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {types}, {target.chip}")
    print(f"schedule   {found[0].schedule.label()}")
    print(f"pipeline   {found[0].schedule.pipeline()}")
    print(f"rule       {RULE}")
    print(f"DRAM       {dram_bytes(spec) / 1e6:.1f} MB in {found[0].dram_us:.1f} us")
    rows = [[each.schedule.label(), each.bound, f"{each.total_us:.2f}"] for each in found]
    print_table(HEADINGS, rows)
