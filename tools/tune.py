"""`tilewright tune`: measures schedules on a GPU and writes the table that the compiler uses."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import Parser, add_json, positive
from .output import check_place, print_json, write_text
from .tune_rank import print_ranked, ranked, summary
from .tune_results import Measured, Results, read_index, read_results, results_of

if TYPE_CHECKING:
    from ..compiler.schedule.problem import Problem, Schedule
    from ..compiler.schedule.tuned_schedules import Tuned
    from ..compiler.spec import MatmulSpec
    from ..dialects.target import Target

EXAMPLES = """examples:
  tilewright tune compile build/tune --shapes 1024x1024x1024,16x4096x4096
  tilewright tune measure build/tune -o build/tune.json     where the GPU is; needs no MLIR
  tilewright tune table build/tune.json -o compiler/schedule/tuned/sm_90a.json
  tilewright tune rank build/tune.json     what the estimate takes of them, and what was fastest
  tilewright tune all --shapes 1024x1024x1024 -o sm_90a.json     on one machine
"""
INDEX = "candidates.json"
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
    parser.add_argument(
        "--rounds", type=positive, default=9, help="batches a candidate (default 9)"
    )
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
    parser.add_argument(
        "--rounds", type=positive, default=9, help="batches a candidate (default 9)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", required=True,
                        help="the table; entries for other shapes in it stay")  # fmt: skip
    add_json(parser)
    parser.set_defaults(command=_all_command)


def _add_candidates(parser: Parser) -> None:
    parser.add_argument("--shapes", required=True, metavar="MxNxK,…", help="B as N×K")
    parser.add_argument("--type", default="bf16", help="of A and B (default bf16)")
    parser.add_argument("--target", default="sm_90a", help="chip (default sm_90a)")
    parser.add_argument("--count", type=positive, default=COUNT, metavar="N",
                        help=f"candidates a shape (default {COUNT})")  # fmt: skip


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


def compile_candidates(options: argparse.Namespace) -> dict[str, Any]:
    """Compile the candidates of every shape into `options.folder`; the index that is written."""
    from ..compiler.bundle_writer import as_bundle
    from ..compiler.driver import compile_matmul
    from ..dialects.errors import CompileError
    from ..dialects.target import find_target

    specs, target = _specs(options.shapes, options.type), find_target(options.target)
    options.folder.mkdir(parents=True, exist_ok=True)
    index: dict[str, Any] = {}
    for spec in specs:
        for number, (problem, schedule) in enumerate(_best(spec, target, options.count)):
            name = f"{spec.m}x{spec.n}x{spec.k}.{number:02}.zip"
            try:
                compiled = compile_matmul(spec, target=options.target, pipeline=schedule.pipeline())
            except CompileError:
                continue  # an estimate can't know every spill
            as_bundle(compiled, options.folder / name)
            index[name] = _index_entry(options.target, problem, schedule)
    write_text(json.dumps(index, indent=1), options.folder / INDEX)
    return index


def _index_entry(chip: str, problem: Problem, schedule: Schedule) -> dict[str, Any]:
    from dataclasses import asdict

    return {"target": chip, "problem": asdict(problem), "schedule": asdict(schedule)}


def _specs(shapes: str, dtype: str) -> list[MatmulSpec]:
    from ..compiler.spec import MatmulSpec
    from ..dialects.errors import OptionError

    specs = []
    for shape in shapes.split(","):
        sizes = shape.split("x")
        if len(sizes) != 3 or not all(size.isdecimal() for size in sizes):
            raise OptionError(f"shapes: must be MxNxK separated by commas, got {shape!r}")
        m, n, k = map(int, sizes)
        specs.append(MatmulSpec.of_type(m, n, k, dtype))
    return specs


def _best(spec: MatmulSpec, target: Target, count: int) -> Iterator[tuple[Problem, Schedule]]:
    """What the compiler takes today, and the candidates estimated best.

    One of those that differ in stages, staging and boxes only.
    """
    from dataclasses import replace

    from ..compiler.schedule.choice import choose_schedule, judged
    from ..compiler.schedule.problem import Problem

    problem = Problem.of(spec, target)
    seen: set[Schedule] = set()
    legal = (schedule for _, schedule in judged(problem, target)[0])
    for schedule in (choose_schedule(spec, target), *legal):
        key = replace(schedule, stages=1, staging=None, box="2d")
        if key not in seen and len(seen) < count:
            seen.add(key)
            yield problem, schedule


# -- measure -----------------------------------------------------------------------------------


def _measure_command(options: argparse.Namespace) -> int:
    check_place(options.output)
    index = read_index(options.folder / INDEX)
    write_text(json.dumps(_measured(options.folder, index, options.rounds)), options.output)
    return 0


def _measured(folder: Path, index: dict[str, Any], rounds: int) -> dict[str, Any]:
    from ..runtime.launch.comparison import machine, measure_together

    groups: dict[str, list[str]] = {}
    for name in index:
        groups.setdefault(name.partition(".")[0], []).append(name)
    rows = []
    for names in groups.values():
        times = measure_together([folder / name for name in names], rounds)
        rows += [{**index[name], "us": us} for name, us in zip(names, times, strict=True)]
    return {**machine(), "rounds": rounds, "rows": rows}


# -- table -------------------------------------------------------------------------------------


def _table_command(options: argparse.Namespace) -> int:
    return _write_table(read_results(options.results), options)


def _write_table(results: Results, options: argparse.Namespace) -> int:
    from ..compiler.schedule.tuned_schedules import read_table, write_table

    check_place(options.output)
    fastest = fastest_of(results)
    earlier = read_table(options.output) if options.output.exists() else ()
    write_table(options.output, [*earlier, *fastest])
    if options.json:
        print_json({"ok": True, "entries": len(fastest), "table": str(options.output)})
        return 0
    for entry in fastest:
        sizes = f"{entry.problem.m}x{entry.problem.n}x{entry.problem.k}"
        print(f"{sizes:20} {entry.us:9.2f} us  {entry.schedule.label()}")
    return 0


def fastest_of(results: Results) -> list[Tuned]:
    """The fastest candidate of each problem in the results of a measurement."""
    from ..compiler.schedule.tuned_schedules import Tuned

    best: dict[Problem, Measured] = {}
    for row in results.rows:
        if row.problem not in best or row.us < best[row.problem].us:
            best[row.problem] = row
    return [
        Tuned(row.problem, row.schedule, round(row.us, 2), results.gpu, results.date)
        for row in best.values()
    ]


# -- rank --------------------------------------------------------------------------------------


def _rank_command(options: argparse.Namespace) -> int:
    found = ranked(read_results(options.results).rows)
    if not options.json:
        print_ranked(found)
        return 0
    mean, least = summary(found)
    shapes = {each.shape: {"ratio": each.ratio, "rank": each.rank} for each in found}
    print_json({"ok": True, "mean": mean, "least": least, "shapes": shapes})
    return 0


def _all_command(options: argparse.Namespace) -> int:
    from ..runtime.scratch import scratch_folder

    check_place(options.output)
    with scratch_folder() as options.folder:
        index = compile_candidates(options)
        measured = _measured(options.folder, index, options.rounds)
    return _write_table(results_of(measured), options)
