"""`tilewright explain schedule --m dynamic`: which kernels share all M, and their schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .output import print_json

if TYPE_CHECKING:
    from ..compiler.spec import MatmulSpec

WIDTH = 170


def explain_rows(spec: MatmulSpec, target: str, as_json: bool) -> int:
    """Print the rows that each kernel is for, and its passes."""
    from ..compiler.buckets import bucket_specs
    from ..compiler.driver import choose_pipeline

    found = [(each, choose_pipeline(each, target)) for each in bucket_specs(spec, target)]
    if as_json:
        kernels: list[dict[str, Any]] = [
            {"least": each.least_m or 1, "most": each.most_m or None, "pipeline": pipeline}
            for each, pipeline in found
        ]
        print_json({"ok": True, "spec": spec.as_dict(), "target": target, "kernels": kernels})
        return 0
    from ..compiler.spec import ROWS_MOST
    from .tables import print_table

    rows = [
        [f"{each.least_m or 1} {_end(each.most_m, ROWS_MOST)}", str(each.m), pipeline]
        for each, pipeline in found
    ]
    sizes = f"any M×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}, {target}"
    print(f"matmul     {sizes}")
    print_table(["rows", "chosen for", "pipeline"], rows, width=WIDTH)
    return 0


def _end(most: int, limit: int) -> str:
    return "or more" if most in (0, limit) else f"to {most}"
