"""`tilewright explain schedule --m dynamic`: which kernels share all M, and their schedules; with
`--batch dynamic` those that share all batches, with both those that share all
rows of any number of matrices, with `--k dynamic` those that share all K."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...runtime.bundles.several import ROWS_MOST
from ..command_line.output import print_json

if TYPE_CHECKING:
    from ...compiler.spec import MatmulSpec

WIDTH = 170


def explain_rows(spec: MatmulSpec, target: str, as_json: bool) -> int:
    """Print the rows, the matrices or the K that each kernel is for, and its passes."""
    from ...compiler.buckets import buckets_for

    found = buckets_for(spec, target)
    if as_json:
        kernels: list[dict[str, Any]] = [
            {
                "ranges": [list(each) for each in bucket.ranges],
                "multiple": max(1, bucket.spec.multiple_m),
                "pipeline": bucket.pipeline,
            }
            for bucket in found
        ]
        print_json({"ok": True, "spec": spec.as_dict(), "target": target, "kernels": kernels})
        return 0
    from ..command_line.tables import print_table

    rows = [[said_ranges(bucket.ranges, "\n"), bucket.pipeline] for bucket in found]
    multiples = [said_multiple(bucket.spec) for bucket in found]
    if any(multiples):
        rows = [[row[0], of or "others", row[1]] for row, of in zip(rows, multiples, strict=True)]
    what = shared_size(spec) + (" of matrices" if len(spec.open_sizes) > 1 else "")
    m = "any M" if spec.dynamic_m else str(spec.m)
    m = f"any batch of {m}" if spec.dynamic_batch else m
    k = "any K" if spec.dynamic_k else spec.k
    sizes = f"{m}×{spec.n}×{k}, {spec.a_dtype} → {spec.c_dtype}, {target}"
    print(f"matmul     {sizes}")
    print_table([what, *(["of them"] if any(multiples) else []), "pipeline"], rows, width=WIDTH)
    return 0


def shared_size(spec: MatmulSpec) -> str:
    """What kernels of any size share: numbers of rows, of matrices, or K."""
    if spec.dynamic_k:
        return "K"
    return "rows" if spec.dynamic_m else "matrices"


def said_multiple(spec: MatmulSpec) -> str:
    """Which rows of its ranges a kernel is for, where it is not for all that no other is for."""
    return f"multiples of {spec.multiple_m}" if spec.multiple_m > 1 else ""


def said_ranges(ranges: Iterable[tuple[int, ...]], between: str = ", ") -> str:
    """Rows in words: `17 to 64, 129 to 192, 4097 or more`; in bands of matrices a band after
    another, as `17 to 64 of 1, 17 to 32, 65 or more of 2 to 3`."""
    found = []
    for matrices, own in groupby(ranges, key=lambda each: each[2:]):
        rows = [_said(least, most) for least, most, *_ in own]
        found += [f"{', '.join(rows)} of {_said(*matrices)}"] if matrices else rows
    return between.join(found)


def _said(least: int, most: int) -> str:
    if least == most:
        return str(least)
    return f"{least} or more" if most == ROWS_MOST else f"{least} to {most}"
