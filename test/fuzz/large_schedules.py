"""The schedules that the compiler chooses for large products, for products small enough to run.

What is chosen for a small product has small tiles, and neither clusters nor persistent CTAs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from random_pipelines import cut

ROWS = (0, 128, 1024, 4096, 8192)
COLUMNS = (0, 512, 2048, 8192)
DEPTHS = (0, 512, 2048, 8192)
"""By how much a size is larger, which keeps by how many bytes rows are aligned."""


def large_schedule(draw: random.Random, spec: Any, target: str) -> str:
    """The pipeline that is chosen for a larger product of the same kind."""
    from tilewright.compiler.chosen_pipeline import choose_pipeline

    return choose_pipeline(_enlarged(draw, spec), target)


@contextmanager
def of_large_products(seed: int) -> Iterator[None]:
    """Let calls that name no passes take a schedule of a larger product, or its first passes; at
    some seeds not."""
    from tilewright.compiler.calls.kernels import lookup
    from tilewright.dialects.errors import CompileError

    draw = random.Random(f"large {seed}")
    chosen = lookup.choose_pipeline

    def of_larger(spec: Any, target: str) -> str:
        try:
            found = large_schedule(draw, spec, target)
        except CompileError:
            return chosen(spec, target)
        return cut(draw, found) if draw.random() < 0.3 else found

    used = of_larger if draw.random() < 0.7 else chosen
    with mock.patch.object(lookup, "choose_pipeline", used):
        yield


def _enlarged(draw: random.Random, spec: Any) -> Any:
    more = {"m": draw.choice(ROWS), "n": draw.choice(COLUMNS), "k": draw.choice(DEPTHS)}
    sizes = {axis: getattr(spec, axis) + each for axis, each in more.items()}
    if spec.group_size:
        sizes["k"] = -(-sizes["k"] // 128) * 128 if spec.group_size != spec.k else sizes["k"]
    along = {"lda": "k" if spec.a_major == "k" else "m", "ldc": "n"}
    along["ldb"] = "k" if spec.b_major == "k" else "n"
    gaps = {name: getattr(spec, name) for name in along}
    pitches = {name: each and each + more[along[name]] for name, each in gaps.items()}
    steps = dict.fromkeys(("stride_a", "stride_b", "stride_c"), 0)
    rows = {"least_m": 0, "most_m": 0}
    if spec.group_size == spec.k and spec.group_size:
        rows["group_size"] = sizes["k"]
    if spec.gathered:
        rows["gathered"] = spec.gathered + more["m"]
    return replace(spec, **sizes, **pitches, **steps, **rows)
