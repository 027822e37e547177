"""Kernels for any M, batch or K, one for each of the schedules that share the numbers of rows, of
matrices, or of elements along K."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .chosen_pipeline import choose_pipeline
from .compiled import Compiled
from .driver import compile_matmul, level_and_target, read_spec
from .levels import is_kernel
from .schedule.any_size.buckets import Bucket, buckets_of
from .schedule.kinds.thread_schedule import is_by_threads
from .schedule.kinds.warp_schedule import is_by_warps
from .schedule.search.choice import target_for
from .sources import Source, loaded_source
from .spec import BATCH_HINT, ROWS_HINT, MatmulSpec, depth_hint


def compile_buckets(
    source: Source,
    *,
    target: str | None = None,
    begin: Callable[[Bucket], None] | None = None,
    **options: Any,
) -> list[Compiled]:
    """The kernels that share all M, batches or K, in the order of the fewest rows of each.

    source: a spec or linalg of any M, batch or K. begin: is called with each bucket before it is
    compiled. options: those of `compile_matmul` but a pipeline. Raises `CompileError`.
    """
    source = loaded_source(source, target)
    (_, target), kernels = level_and_target(source, target), []
    for each in buckets_for(source, target):
        if begin is not None:
            begin(each)
        spec = each.spec
        rows = (spec.least_m, spec.most_m, max(1, spec.multiple_m)) if spec.most_m else None
        own = spec if isinstance(source, MatmulSpec) else source
        made = compile_matmul(
            own, target=target, rows=rows, pipeline=each.pipeline, replaceable=True, **options
        )
        kernels.append(replace(made, chosen=True, ranges=each.ranges))
    return kernels


def has_any_size(source: Source, target: str | None) -> bool:
    """Whether only a launch of a source's kernel says M or the batch, and a schedule can be chosen
    for it."""
    level, target = level_and_target(source, target)
    if is_kernel(level):
        return False
    spec = read_spec(source, target)
    return bool(spec.open_sizes)


def buckets_for(source: Source, target: str) -> list[Bucket]:
    """Each kernel with its rows and passes; of threads and of warps one kernel does for all, and
    of groups of any K."""
    spec = read_spec(source, target)
    used = None if is_by_threads(spec) else target_for(spec, target)
    if used is None or is_by_warps(used) or (spec.dynamic_k and spec.groups):
        hints = {"m": ROWS_HINT, "batch": BATCH_HINT, "k": depth_hint(spec)}
        spec = replace(spec, **{name: hints[name] for name in spec.open_sizes})
        return [Bucket(spec, choose_pipeline(spec, target))]
    return buckets_of(spec, used)
