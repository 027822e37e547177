"""`tilewright tune compile`: the candidates of every shape as bundles, compiled on all cores."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...dialects.target import find_target
from ...runtime.bundles.bundle import read_bundle
from ...runtime.bundles.manifest import BundleError
from ...runtime.errors import DeviceError
from ..command_line.output import write_text
from ..command_line.progress import Progress
from .progress import left
from .results import by_shape, read_index

if TYPE_CHECKING:
    from ...compiler.schedule.problem import Problem, Schedule
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import Target

INDEX = "candidates.json"
SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
"""One text for each size, since files are named by it."""
USUAL = "kk"
MAJORS = ("", USUAL, "kn", "mk", "mn")
"""How A and B lie, as after a shape; without it K is contiguous."""
NEXT = 20
"""Of how many times as many that are estimated next the further candidates are drawn."""
KIND_SLOWER = 1.35
"""Of the least estimate: slower kinds are left out. The estimate errs by less than that."""
GROUPED = 2
"""Of so many schedules whose tiles are grouped other groups are tried."""

Entries = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Wanted:
    """Which candidates of a shape: how many that are estimated best, the best of how many further
    kinds, how many drawn of those estimated next, and which groups beside the usual one."""

    count: int
    kinds: int = 0
    drawn: int = 0
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """One shape to compile."""

    spec: MatmulSpec
    target: str
    wanted: Wanted
    folder: Path


def compile_candidates(options: argparse.Namespace) -> Entries:
    """Compile the candidates of every shape into `options.folder`; the index that is written."""
    *_, (index, _) = compiled_shapes(options)
    return index


def compiled_shapes(options: argparse.Namespace) -> Iterator[tuple[Entries, Entries]]:
    """Compile the candidates of every shape into `options.folder`: the index that is written, and
    those of it that are new, at first none and then a shape's whenever they are compiled.

    Shapes whose candidates are there already are left as they are: made by the sources of today,
    and bundles that can be read. Others are compiled anew.
    """
    specs = _specs(options.shapes, options.type)
    find_target(options.target)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / INDEX
    index = read_index(path) if path.exists() else {}
    _check_earlier(path, index, specs, options.target)
    of_shapes = by_shape(index)
    wanted = Wanted(options.count, options.kinds, options.drawn, tuple(options.groups))
    jobs = [
        Job(spec, options.target, wanted, options.folder)
        for spec in specs
        if not _is_whole(options.folder, index, of_shapes.get(_shape(spec), []))
    ]
    yield index, {}
    for entries in _compiled(jobs, min(options.jobs, len(jobs))):
        index = _added(path, entries)
        yield index, entries


def _is_whole(folder: Path, index: Entries, names: list[str]) -> bool:
    """Whether there are candidates of a shape, all of today's sources, and all can be read."""
    from ...compiler.own_sources import source_digest

    if not names or any(index[name].get("sources") != source_digest() for name in names):
        return False
    try:
        for name in names:
            read_bundle(folder / name)
    except BundleError:
        return False
    return True


def _added(path: Path, entries: Entries) -> Entries:
    """The index with a shape's entries in place of earlier ones; others may have added theirs."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        index = read_index(path) if path.exists() else {}
        for earlier in (
            each for shape in by_shape(entries) for each in by_shape(index).get(shape, [])
        ):
            del index[earlier]
        index |= entries
        write_text(json.dumps(index, indent=1), path)
    finally:
        os.close(folder)
    return index


def _check_earlier(path: Path, index: Entries, specs: list[MatmulSpec], target: str) -> None:
    """Refuse to go on with candidates of another chip or type under the same names."""
    wanted = {_shape(spec): json.loads(json.dumps(spec.as_dict())) for spec in specs}
    for name, entry in index.items():
        shape = name.partition(".")[0]
        same = entry["spec"] == wanted.get(shape)
        if shape in wanted and not (same and entry.get("target") == target):
            rule = f"candidates that are there must be of the same type and for {target}"
            raise DeviceError(f"{path}: {rule}, got others of {shape}; name another folder")


def _compiled(jobs: list[Job], processes: int) -> Iterator[Entries]:
    """The entries of each shape as soon as they are compiled."""
    if processes < 2:
        yield from map(compile_shape, jobs)
        return
    import multiprocessing  # which no other command needs
    from concurrent.futures import ProcessPoolExecutor, as_completed

    fresh = multiprocessing.get_context("spawn")
    started = time.monotonic()
    with Progress("compiling") as progress, ProcessPoolExecutor(processes, fresh) as pool:
        running = [pool.submit(compile_shape, job) for job in jobs]
        try:
            for done, each in enumerate(as_completed(running), 1):
                rest = left(done, len(jobs), time.monotonic() - started)
                progress.update(f"compiled {done} of {len(jobs)} shapes{rest}")
                yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)


def compile_shape(job: Job) -> Entries:
    """Compile one shape's candidates into the folder; their index entries by name."""
    from ...compiler.bundle_writer import as_bundle
    from ...compiler.driver import compile_matmul
    from ...compiler.own_sources import source_digest
    from ...compiler.schedule.search.choice import target_for
    from ...dialects.errors import CompileError

    entries: Entries = {}
    target = target_for(job.spec, job.target)
    chosen = of_every_kind(job.spec, target, job.wanted)
    for number, (passes, entry) in enumerate(chosen):
        name = f"{_shape(job.spec)}.{number:02}.zip"
        try:
            compiled = compile_matmul(job.spec, target=job.target, pipeline=passes)
        except CompileError:
            continue  # an estimate can't know every spill
        as_bundle(compiled, job.folder / name)
        entries[name] = {
            "target": job.target,
            "sources": source_digest(),
            "spec": job.spec.as_dict(),
            "pipeline": passes,
            **entry,
        }
    return entries


def _shape(spec: MatmulSpec) -> str:
    """What names a shape's files: its sizes, and the majors of A and B where one is not K."""
    majors = spec.a_major + spec.b_major
    return f"{spec.m}x{spec.n}x{spec.k}" + (f"-{majors}" if majors != USUAL else "")


def _specs(shapes: str, dtype: str) -> list[MatmulSpec]:
    from ...compiler.spec import MatmulSpec
    from ...dialects.errors import OptionError

    specs = []
    for shape in dict.fromkeys(shapes.split(",")):
        text, _, majors = shape.partition(":")
        sizes = text.split("x")
        if len(sizes) != 3 or not all(map(SIZE.fullmatch, sizes)):
            raise OptionError(f"shapes: must be MxNxK separated by commas, got {shape!r}")
        if majors not in MAJORS or shape.endswith(":"):
            rule = f"majors of A and B must be one of {', '.join(MAJORS[1:])}"
            raise OptionError(
                f"shapes: {rule}, got {shape!r}; leave them out where K is contiguous"
            )
        m, n, k = map(int, sizes)
        a_major, b_major = majors or USUAL
        plain = MatmulSpec.of_type(m, n, k, dtype)
        specs.append(replace(plain, a_major=a_major, b_major=b_major))
    return list(dict.fromkeys(specs))


def of_every_kind(
    spec: MatmulSpec, target: Target, wanted: Wanted
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The passes of each candidate of every kind that the compiler may choose, and what is known of
    those that are tiles of a tensor core: the problem, and the schedule.

    Of tiles, and where warps multiply, those `wanted`; of threads and lanes all there are.
    """
    from ...compiler.schedule.kinds import thread_schedule, warp_schedule
    from ...compiler.schedule.kinds.lane_schedule import lane_candidates
    from ...compiler.schedule.short_steps import passes_of

    if thread_schedule.is_by_threads(spec):
        others: list[Any] = [each for each, _ in thread_schedule.candidates(spec)]
    elif warp_schedule.is_by_warps(target):
        found = [each for each, _ in warp_schedule.candidates(spec, target)]
        count = wanted.count
        others = [*found[:count], *_drawn(spec, found[count:], wanted.drawn)]
    else:
        others = []
        for problem, schedule in candidates_of(spec, target, wanted):
            entry = {"problem": asdict(problem), "schedule": asdict(schedule)}
            yield passes_of(problem, schedule, target), entry
    for other in [*others, *lane_candidates(spec, target)]:
        yield other.pipeline(), {}


def candidates_of(
    spec: MatmulSpec, target: Target, wanted: Wanted
) -> Iterator[tuple[Problem, Schedule]]:
    """The tiles of a tensor core that the compiler takes today, the candidates estimated best,
    those of further kinds, some of the next, and those of other groups.

    One of those that differ in stages, staging and boxes only. The same for the same shape.
    """
    from ...compiler.schedule.problem import Problem
    from ...compiler.schedule.rules.rules import broken_rule
    from ...compiler.schedule.schedule import GROUPED as BY_GROUPS
    from ...compiler.schedule.search.choice import choose_schedule, judged

    problem = Problem.of(spec, target)
    seen: dict[Schedule, Schedule] = {}
    legal = judged(problem, target)[0]
    for schedule in (choose_schedule(spec, target), *(schedule for _, schedule in legal)):
        seen.setdefault(replace(schedule, stages=1, staging=None, box="2d"), schedule)
    best, others = list(seen.values())[: wanted.count], list(seen.values())[wanted.count :]
    near = KIND_SLOWER * legal[0][0].total_us
    further = _of_further_kinds(best, [each for found, each in legal if found.total_us <= near])
    best += further[: wanted.kinds]
    best += _drawn(spec, [each for each in others if each not in best], wanted.drawn)
    grouped = [each for each in best if each.order == BY_GROUPS][:GROUPED]
    regrouped = [replace(each, group=group) for each in grouped for group in wanted.groups]
    best += [each for each in regrouped if broken_rule(problem, each, target) is None]
    for schedule in dict.fromkeys(best):
        yield problem, schedule


def _of_further_kinds(taken: list[Schedule], legal: list[Schedule]) -> list[Schedule]:
    """The first of each kind that none of those `taken` is of."""
    first: dict[tuple[Any, ...], Schedule] = {}
    for schedule in (*taken, *legal):
        first.setdefault(_kind(schedule), schedule)
    return [each for each in first.values() if each not in taken]


def _kind(schedule: Schedule) -> tuple[Any, ...]:
    """What tells ways to multiply apart: clusters, parts of K, exchanged operands, consumers."""
    over_grid, stays = schedule.split_grid > 1, schedule.scheduler != "none"
    parts = schedule.split_k, over_grid
    return schedule.cluster, *parts, schedule.swap, stays, schedule.ping_pong


def _drawn(spec: MatmulSpec, others: list[Any], count: int) -> list[Any]:
    """Draw `count` of the candidates estimated next, always the same for one shape."""
    near = others[: NEXT * count]
    return random.Random(_shape(spec)).sample(near, min(count, len(near)))
