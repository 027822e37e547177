"""Kernels for any M, one for each range of rows that has a schedule of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .driver import (
    Compiled,
    Source,
    compile_matmul,
    level_and_target,
    loaded_source,
    read_spec,
)
from .levels import is_kernel
from .schedule.buckets import buckets_of
from .schedule.choice import target_for
from .schedule.thread_schedule import is_by_threads
from .schedule.warp_schedule import is_by_warps
from .spec import ROWS_HINT, MatmulSpec


def compile_buckets(
    source: Source,
    *,
    target: str | None = None,
    begin: Callable[[MatmulSpec], None] | None = None,
    **options: Any,
) -> list[Compiled]:
    """The kernels that share all M, from the fewest rows on; each has the schedule that is chosen.

    source: a spec or linalg of any M. begin: is called with the spec of each before it is compiled.
    options: those of `compile_matmul` but a pipeline. Raises `CompileError`.
    """
    source = loaded_source(source, target)
    (_, target), kernels = level_and_target(source, target), []
    for each in bucket_specs(source, target):
        if begin is not None:
            begin(each)
        rows = (each.least_m, each.most_m) if each.most_m else None
        own = each if isinstance(source, MatmulSpec) else source
        kernels.append(compile_matmul(own, target=target, rows=rows, **options))
    return kernels


def has_any_m(source: Source, target: str | None) -> bool:
    """Whether only a launch of a source's kernel says M, and a schedule can be chosen for it."""
    level, target = level_and_target(source, target)
    return not is_kernel(level) and read_spec(source, target).dynamic_m


def bucket_specs(source: Source, target: str) -> list[MatmulSpec]:
    """The spec of each kernel; of threads and of warps one kernel does for all M."""
    spec = read_spec(source, target)
    used = None if is_by_threads(spec) else target_for(spec, target)
    if used is None or is_by_warps(used):
        return [replace(spec, m=ROWS_HINT)]
    return buckets_of(spec, used)
