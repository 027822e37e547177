"""Which schedules of products with scales of 128 spill, and which rule says so before ptxas.

    python benchmarks/scaled_registers.py [--shapes 4096x2112x7168,…] [--recipes 1x128-1x128,…]
        [--columns 128-192] [--ways REGEX] [--rejected] [--processes 2] [--csv PATH]
        [--target sm_100a]

It needs no GPU. Of each tile and each way to store and to hand out tiles one schedule is compiled
by ptxas, for `sm_90a` if no other target is named: the one that is estimated to be fastest. A
schedule that keeps all rules and spills is one that might be chosen and then given up for another:
those are printed first, and the exit status is 1 where there are any. `--ways` takes a part of
them, as "x128 staged in turn$". `--rejected` also compiles what the rules on registers reject, and
prints what of that does not spill: the estimate never sees it.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from scaled import RECIPES

SHAPES = ("4096x2112x7168", "4095x2111x7168")
RULES = ("accumulator-registers", "added-registers", "added-copies", "added-scales")
TARGETS = ("sm_90a", "sm_100a")


class Job(NamedTuple):
    """What is compiled, and the rule that rejects it, "" where none does."""

    recipe: str
    shape: str
    rule: str
    way: str
    pipeline: str
    target: str


class Found(NamedTuple):
    """What ptxas said: registers and bytes of spills of a thread, or why there is no kernel."""

    job: Job
    registers: int
    spilled: int
    refused: str


def main() -> int:
    """Compile all, print and write what was found."""
    options = _options()
    jobs = list(_jobs(options))
    print(f"{len(jobs)} schedules", flush=True)
    started, found = time.time(), []
    with get_context("fork").Pool(options.processes) as pool:
        for each in pool.imap_unordered(assembled, jobs):
            found.append(each)
            print(_line(each), flush=True)
    print(f"{time.time() - started:.0f} s")
    if options.csv:
        _write(options.csv, found)
    return _summary(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=SHAPES)
    scaled = [name for name, forms in RECIPES.items() if forms]
    parser.add_argument("--recipes", type=lambda text: text.split(","), default=scaled)
    parser.add_argument("--columns", type=_range, default=range(1, 257), metavar="LEAST-MOST")
    parser.add_argument("--ways", type=re.compile, default=re.compile(""), metavar="REGEX")
    parser.add_argument("--rejected", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0])
    return parser.parse_args()


def _range(text: str) -> range:
    least, most = map(int, text.split("-"))
    return range(least, most + 1)


def spec_of(recipe: str, shape: str) -> Any:
    """The product of e4m3 with the scales of a recipe."""
    from tilewright.compiler.spec import MatmulSpec

    a, b = RECIPES[recipe]
    return MatmulSpec(*map(int, shape.split("x")), "e4m3", "e4m3", a_scales=a, b_scales=b)


def _jobs(options: argparse.Namespace) -> Iterator[Job]:
    """One schedule of each tile and way, of a recipe and a shape."""
    from tilewright.compiler.schedule.problem import Problem
    from tilewright.compiler.schedule.search.choice import judged, target_for
    from tilewright.compiler.schedule.short_steps import passes_of

    for recipe in options.recipes:
        for shape in options.shapes:
            spec = spec_of(recipe, shape)
            target = target_for(spec, options.target)
            problem = Problem.of(spec, target)
            legal, broken = judged(problem, target)
            pairs = [("", schedule) for _, schedule in legal]
            if options.rejected:
                alone = (each for each in broken if each.schedule.cluster_size == 1)
                pairs += [(each.rule, each.schedule) for each in alone if each.rule in RULES]
            seen = set()
            for rule, schedule in pairs:
                way = _way(schedule)
                asked = schedule.tile[1] in options.columns and options.ways.search(way)
                if asked and way not in seen:
                    seen.add(way)
                    pipeline = passes_of(problem, schedule, target)
                    yield Job(recipe, shape, rule, way, pipeline, options.target)


def _way(schedule: Any) -> str:
    """What registers depend on."""
    m, n, k = schedule.tile
    said = [f"{m}x{n}x{k}", "staged" if schedule.staging else "direct"]
    said += ["in turn"] if schedule.scheduler != "none" else []
    said += ["in parts"] if schedule.split_k * schedule.split_grid > 1 else []
    said += ["cluster"] if schedule.cluster_size > 1 else []
    return " ".join(said)


def assembled(job: Job) -> Found:
    """What ptxas says of a kernel, spills allowed."""
    from tilewright.compiler.driver import compile_matmul
    from tilewright.dialects.errors import CompileError

    spec = spec_of(job.recipe, job.shape)
    how = {"target": job.target, "pipeline": job.pipeline, "allow_spills": True}
    try:
        said = compile_matmul(spec, **how).assembled
    except CompileError as error:
        return Found(job, 0, 0, str(error).splitlines()[0])
    spilled = said.spill_store_bytes + said.spill_load_bytes
    return Found(job, said.registers, spilled, "")


def _line(found: Found) -> str:
    job = found.job
    what = found.refused or f"{found.registers} registers, {found.spilled} bytes spilled"
    return f"{job.recipe:14} {job.shape:15} {job.way:34} {job.rule or 'legal':22} {what}"


def _summary(found: list[Found]) -> int:
    """Print what contradicts the rules; 1 where one lets through what spills."""
    silent = [each for each in found if not each.job.rule and (each.spilled or each.refused)]
    needless = [each for each in found if each.job.rule and not (each.spilled or each.refused)]
    for title, rows in (("legal, but spills", silent), ("rejected, but fits", needless)):
        print(f"\n{title}: {len(rows)}")
        print("\n".join(map(_line, sorted(rows))))
    return int(bool(silent))


def _write(path: Path, found: list[Found]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["recipe", "shape", "way", "rule", "registers", "spilled", "refused"])
        for each in sorted(found):
            job = each.job
            numbers = each.registers, each.spilled, each.refused
            rows.writerow([job.recipe, job.shape, job.way, job.rule, *numbers])


if __name__ == "__main__":
    sys.exit(main())
