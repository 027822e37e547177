"""`tilewright tune`: measures schedules on a GPU and writes the table that the compiler uses."""

from __future__ import annotations

import argparse
import functools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import DeviceError
from ..command_line.arguments import Parser, UsageError, add_json, factor, positive
from ..command_line.output import check_place, print_json, write_text
from ..command_line.progress import Progress
from ..tuning.candidates import INDEX, compile_candidates, compiled_shapes
from ..tuning.progress import timed
from ..tuning.ranking import print_ranked, ranked, summary
from ..tuning.results import Results, by_shape, read_index, read_results, results_of

if TYPE_CHECKING:
    from ...compiler.schedule.problem import Problem
    from ...compiler.schedule.tuned_pipelines import TunedPipeline
    from ...compiler.schedule.tuned_schedules import Tuned

EXAMPLES = """examples:
  tilewright tune compile build/tune --shapes 1024x1024x1024,16x4096x4096
                                           again, it goes on where it was stopped; so does measure
  tilewright tune compile build/tune --shapes 768x3072x8192:mn     the gradient of a weight
  tilewright tune measure build/tune -o build/tune.json     where the GPU is; needs no MLIR
  tilewright tune table build/tune.json -o compiler/schedule/tuned/sm_90a.json
  tilewright tune rank build/tune.json     what the estimate takes of them, and what was fastest
  tilewright tune all --shapes 1024x1024x1024 -o sm_90a.json     on one machine
"""
COUNT = 12


def add_command(commands: Any) -> None:
    """Add `tune` to the command line."""
    tune: Parser = commands.add_parser(
        "tune",
        help="measure schedules on a GPU and keep the fastest",
        description="Compiles the candidates for a schedule that are estimated best, measures them"
        " on a GPU, and writes a table of the fastest, which goes before the estimate.",
        epilog=EXAMPLES,
    )
    steps = tune.add_subparsers(title="steps", metavar="STEP")
    tune.set_defaults(command=functools.partial(_refuse_no_step, tune))
    _add_compile(steps)
    _add_measure(steps)
    _add_table(steps)
    _add_all(steps)
    _add_rank(steps)


def _add_compile(steps: Any) -> None:
    parser = steps.add_parser("compile", help="compile candidates into a folder; needs no GPU")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the bundles go")
    _add_candidates(parser)
    add_json(parser)
    parser.set_defaults(command=_compile_command)


def _add_measure(steps: Any) -> None:
    parser = steps.add_parser("measure", help="time them on this machine's GPU; needs no MLIR")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what compile has written")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="where to write it (default stdout)"
    )
    _add_clock(parser)
    parser.set_defaults(command=_measure_command)


def _add_table(steps: Any) -> None:
    parser = steps.add_parser("table", help="write the fastest into a table")
    parser.add_argument("results", type=Path, metavar="RESULTS", help="what measure has written")
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", required=True,
                        help="the table; entries for other shapes in it stay")  # fmt: skip
    add_json(parser)
    parser.set_defaults(command=_table_command)


def _add_rank(steps: Any) -> None:
    parser = steps.add_parser("rank", help="compare the estimate's choice with what was fastest")
    parser.add_argument("results", type=Path, metavar="RESULTS", help="what measure has written")
    add_json(parser)
    parser.set_defaults(command=_rank_command)


def _add_all(steps: Any) -> None:
    parser = steps.add_parser("all", help="all three, where compiler and GPU are together")
    _add_candidates(parser)
    _add_clock(parser)
    parser.add_argument("--results", type=Path, metavar="PATH",
                        help="where to write every time, as measure does")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", required=True,
                        help="the table; entries for other shapes in it stay")  # fmt: skip
    add_json(parser)
    parser.set_defaults(command=_all_command)


def _add_clock(parser: Parser) -> None:
    parser.add_argument(
        "--rounds", type=positive, default=9, help="batches a candidate (default 9)"
    )
    help_ = "idle time behind each batch, in times of the batch (default 0)"
    parser.add_argument("--rest", type=factor, default=0, metavar="FACTOR", help=help_)


def _add_candidates(parser: Parser) -> None:
    parser.add_argument("--shapes", required=True, metavar="MxNxK[:MAJORS],…",
                        help="B as N×K; MAJORS are of A and B, kk (the default), kn, mk or mn: "
                        "1024x768x8192:mn is a gradient of a weight")  # fmt: skip
    parser.add_argument("--type", default="bf16", help="of A and B (default bf16)")
    parser.add_argument("--target", default="sm_90a", help="chip or GPU (default sm_90a)")
    parser.add_argument("--count", type=positive, default=COUNT, metavar="N",
                        help=f"candidates a shape (default {COUNT})")  # fmt: skip
    parser.add_argument("--kinds", type=positive, default=0, metavar="N",
                        help="and the best of up to N further kinds")  # fmt: skip
    parser.add_argument("--drawn", type=positive, default=0, metavar="N",
                        help="and N of those estimated next, drawn at random")  # fmt: skip
    parser.add_argument("--groups", type=_groups, default=(), metavar="N,…",
                        help="and other groups of tiles, as 4,16")  # fmt: skip
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N",
                        help="processes that compile (default: one a core)")  # fmt: skip


def _groups(text: str) -> tuple[int, ...]:
    return tuple(positive(each) for each in text.split(","))


def _refuse_no_step(parser: Parser, options: argparse.Namespace) -> int:
    parser.error("a step must be named, got none")


# -- compile -----------------------------------------------------------------------------------


def _compile_command(options: argparse.Namespace) -> int:
    made = compile_candidates(options)
    if options.json:
        print_json({"ok": True, "bundles": len(made), "folder": str(options.folder)})
    else:
        print(f"{len(made)} bundles in {options.folder}")
    return 0


# -- measure -----------------------------------------------------------------------------------


def _measure_command(options: argparse.Namespace) -> int:
    check_place(options.output)
    index = read_index(options.folder / INDEX)
    measured = _measured(index, options)
    write_text(json.dumps(measured), options.output)
    return 0


def _measured(index: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Every shape's times; after each shape they are written to the output, which is gone on
    from."""
    kept, found = options.output, _no_times(options)
    made = {_made(entry) for entry in index.values()}
    problems = {problem for problem, _ in made}
    earlier = _rows_of_earlier(kept, found) if kept else []
    rows = [row for row in earlier if _made(row) in made or _made(row)[0] not in problems]
    found["rows"], done = rows, {_made(row) for row in rows}
    groups = {
        shape: names
        for shape, names in by_shape(index).items()
        if _made(index[names[0]]) not in done
    }
    with Progress("measuring") as progress:
        for names in timed(groups.values(), "measuring", progress):
            rows += _timed_together({name: index[name] for name in names}, options)
            if kept:
                write_text(json.dumps(found), kept)
    return found


def _no_times(options: argparse.Namespace) -> dict[str, Any]:
    """A measurement on this machine that has no rows yet."""
    from ...runtime.launch.comparison import machine

    recorded = {"clock": "apart", "rounds": options.rounds, "rest": options.rest}
    return {**machine(), **recorded, "rows": []}


def _timed_together(entries: dict[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The entries of a shape's candidates, each with its time."""
    from ...runtime.launch.comparison import measure_together

    paths = [options.folder / name for name in entries]
    times = measure_together(paths, options.rounds, options.rest)
    return [{**entry, "us": us} for entry, us in zip(entries.values(), times, strict=True)]


def _made(entry: dict[str, Any]) -> tuple[str, str | None]:
    """What a candidate multiplies, and the sources that compiled it."""
    return json.dumps(entry.get("spec")), entry.get("sources")


def _rows_of_earlier(path: Path, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a measurement that was stopped; none where there is no file.

    DeviceError where it was taken in another way or on another GPU.
    """
    if not path.exists():
        return []
    read_results(path)
    earlier = json.loads(path.read_text())
    for name in ("gpu", "clock", "rounds", "rest"):
        got = earlier.get(name, 0 if name == "rest" else None)
        if got != wanted[name]:
            rule = f"a measurement that goes on must be of {name} {wanted[name]!r}"
            raise DeviceError(f"{path}: {rule}, got {got!r}; name another file")
    return earlier["rows"]


# -- table -------------------------------------------------------------------------------------


def _table_command(options: argparse.Namespace) -> int:
    return _write_table(read_results(options.results), options)


def _write_table(results: Results, options: argparse.Namespace) -> int:
    from ...compiler.schedule.tuned_pipelines import read_pipelines
    from ...compiler.schedule.tuned_schedules import read_table, write_table

    check_place(options.output)
    fastest, passes = fastest_of(results), fastest_passes(results)
    there = options.output.exists()
    earlier = read_table(options.output) if there else ()
    others = read_pipelines(options.output) if there else ()
    unique = {(each.product, each.gpu): each for each in (*others, *passes)}
    recorded = [unique[key].as_json() for key in sorted(unique)]
    write_table(options.output, [*earlier, *fastest], recorded)
    if options.json:
        entries = len(fastest) + len(passes)
        print_json({"ok": True, "entries": entries, "table": str(options.output)})
        return 0
    for entry in fastest:
        sizes = f"{entry.problem.m}x{entry.problem.n}x{entry.problem.k}"
        print(f"{sizes:20} {entry.us:9.2f} us  {entry.schedule.label()}")
    for each in passes:
        sizes = "x".join(str(json.loads(each.product)[name]) for name in "mnk")
        print(f"{sizes:20} {each.us:9.2f} us  {each.passes}")
    return 0


def fastest_of(results: Results) -> list[Tuned]:
    """The fastest tiles of a tensor core for each problem in the results of a measurement."""
    from ...compiler.schedule.tuned_schedules import Tuned

    best: dict[Problem, Tuned] = {}
    for row in results.rows:
        if row.problem is None or row.schedule is None:
            continue
        if row.problem not in best or row.us < best[row.problem].us:
            found = Tuned(row.problem, row.schedule, row.us, results.gpu, results.date)
            best[row.problem] = found
    return [replace(each, us=round(each.us, 2)) for each in best.values()]


def fastest_passes(results: Results) -> list[TunedPipeline]:
    """The fastest passes of each product that has candidates of another kind than such tiles."""
    from ...compiler.schedule.tuned_pipelines import TunedPipeline

    products = dict.fromkeys(row.product for row in results.rows if row.schedule is None)
    found = []
    for product in products:
        of_it = [row for row in results.rows if row.product == product]
        best = min(of_it, key=lambda row: row.us)
        us = round(best.us, 2)
        found.append(TunedPipeline(product, best.pipeline, us, results.gpu, results.date))
    return found


# -- rank --------------------------------------------------------------------------------------


def _rank_command(options: argparse.Namespace) -> int:
    found = ranked(read_results(options.results).rows)
    if not found:
        rule = "rows to rank must be of tiles of a tensor core"
        raise DeviceError(f"{options.results}: {rule}, got other kinds alone; nothing to compare")
    if not options.json:
        print_ranked(found)
        return 0
    mean, least = summary(found)
    shapes = {each.shape: {"ratio": each.ratio, "rank": each.rank} for each in found}
    print_json({"ok": True, "mean": mean, "least": least, "shapes": shapes})
    return 0


def _check_two_places(options: argparse.Namespace) -> None:
    for path in (options.output, options.results):
        check_place(path)
    if options.results and os.path.realpath(options.results) == os.path.realpath(options.output):
        rule = "--results and -o must name two files"
        raise UsageError(f"error: tilewright tune all: {rule}, got {options.output} for both")


def _all_command(options: argparse.Namespace) -> int:
    """Measures each shape while later ones are compiled."""
    from ...runtime.scratch import scratch_folder

    _check_two_places(options)
    measured = _no_times(options)
    with scratch_folder() as options.folder:
        for _, entries in compiled_shapes(options):
            if not entries:
                continue
            measured["rows"] += _timed_together(entries, options)
            if options.results:
                write_text(json.dumps(measured), options.results)
    return _write_table(results_of(measured), options)
