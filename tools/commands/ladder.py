"""`tilewright ladder`: compiles, inspects and runs every preset, one line each."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import Parser, add_json, add_spec, natural, spec_of
from ..command_line.emulator_flags import DEFAULT_CHECK, add_check_flag
from ..command_line.output import check_place, print_json, write_text
from ..command_line.progress import Progress
from ..layouts.fragments import add_picture

if TYPE_CHECKING:
    from ...compiler.compiled import Compiled
    from ...compiler.control_flow import Loop
    from ...compiler.spec import MatmulSpec
    from ...runtime.emulator.observe.report import Report
    from ..ladder.bounds import Bound
    from ..ladder.speeds import Speed

EXAMPLES = """examples:
  tilewright ladder --m 512 --n 512 --k 512
  tilewright ladder --presets v1a,v2a --json
  tilewright ladder --target sm_90a
  tilewright ladder --target sm_80 --presets puzzle --m 9 --n 9 --k 9
  tilewright ladder --presets v3,v4 --print-diff       what warp specialization changes
  tilewright ladder --no-run --svg road.svg            speeds alone, as bars
"""
SIZES = {"m": 512, "n": 512, "k": 512}
WIDTH = 160
SECTOR_BYTES = 32
IN_EVERY_RUNG = ("normalize", "tiling", "lower-to-nvvm")
COLUMNS = (
    "rung",
    "passes on",
    "tile",
    "stages",
    "cluster",
    "smem [B]",
    "tmem [columns]",
    "registers",
    "spills [B]",
    "PTX loops",
    "SASS loops",
    "run [s]",
    "emulator",
)
EVIDENCE_COLUMNS = (
    "rung",
    "asked [B]",
    "moved [B]",
    "of 16 B [requests]",
    "of 32 B [requests]",
    "of 64 B [requests]",
    "of 128 B [requests]",
    "shared memory [passes]",
    "conflicts [passes]",
    "waits [late]",
    "at least [us]",
    "by",
)
EVIDENCE_LEGEND = (
    "counted by the emulator; global memory: bytes asked for, those of the sectors they lie in,"
    " requests by size; conflicts: passes beyond the least; at least: what the slowest of the"
    " counts takes at the ceilings of the chip, a bound and no estimate"
)
LEGEND = "loops: instructions of the inner loop of the TMA/MMA/epilogue role; - where there is none"


@dataclass
class Rung:
    """What one preset gave; `error` is why it failed, None when every element was right."""

    name: str
    pipeline: str
    error: str | None = None
    manifest: dict[str, Any] | None = None
    ptx_loops: dict[str, Loop | None] | None = None
    sass_loops: dict[str, Loop | None] | None = None
    seconds: float | None = None
    report: Report | None = None
    bound: Bound | None = None


def add_command(commands: Any) -> None:
    """Add `ladder` to the command line."""
    parser: Parser = commands.add_parser(
        "ladder",
        help="compile and run every preset",
        description="Compiles every preset, runs it on the emulator and compares every element"
        " with torch. Exit status 1 when a rung fails.",
        epilog=EXAMPLES,
    )
    add_spec(parser, "spec (default 512×512×512)", SIZES)
    parser.add_argument("--target", default="sm_100a", help="chip (default sm_100a)")
    parser.add_argument(
        "--presets",
        metavar="A,B",
        help="only these, or ladders, as puzzle (default: all of the chip)",
    )
    parser.add_argument("--seed", type=natural, metavar="N", help="fixes inputs and event order")
    add_check_flag(parser)
    parser.add_argument(
        "--no-run",
        action="store_true",
        help="say what changes and how fast rungs are; neither compile nor run them",
    )
    parser.add_argument(
        "--print-diff",
        action="store_true",
        help="print to stderr what the passes that are new in each rung change in its IR",
    )
    add_picture(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(ladder_command, parser))


def ladder_command(parser: Parser, options: argparse.Namespace) -> int:
    """Climb the ladder; 0 when every rung is right."""
    check_place(options.svg)
    ran = {"--check": options.check, "--seed": options.seed}
    given = [flag for flag, value in ran.items() if value is not None]
    if options.no_run and given:
        parser.error(f"{', '.join(given)} must come without --no-run, which runs nothing")
    from ..ladder.steps import preset_names, whole_ladders

    spec = spec_of(options, parser)
    names = preset_names(options.presets, options.target)
    if options.no_run and options.presets is None:
        names = whole_ladders(names)
    rungs = [] if options.no_run else _climb_all(names, spec, options)
    passed = all(rung.error is None for rung in rungs)
    if options.print_diff:
        compiled = [rung.name for rung in rungs if rung.manifest]
        _print_diffs(names if options.no_run else compiled, spec, options.target)
    _tell(options, spec, rungs, names)
    return 0 if passed else 1


def _climb_all(names: list[str], spec: MatmulSpec, options: argparse.Namespace) -> list[Rung]:
    check, rungs = options.check or DEFAULT_CHECK, []
    with Progress("loading the compiler") as progress:
        for name in names:
            progress.update(f"{name}: compiling and running")
            rungs.append(climb(name, spec, options.target, options.seed or 0, check))
    return rungs


def _print_diffs(names: list[str], spec: MatmulSpec, target: str) -> None:
    from ..ladder.steps import diffs

    for name in names:
        print(*diffs(name, spec, target), sep="", end="", file=sys.stderr)


def _tell(
    options: argparse.Namespace, spec: MatmulSpec, rungs: list[Rung], names: list[str]
) -> None:
    """Draw where that is asked for; print tables and bars, or JSON."""
    from ..ladder.plot import draw
    from ..ladder.speeds import speed_of

    speeds = [speed_of(name, spec, options.target) for name in names]
    if options.svg:
        write_text(draw(f"Speed of the presets of {options.target}", speeds), options.svg)
    if options.json:
        found = {rung.name: _as_dict(rung) for rung in rungs}
        rows = [found.get(each.name, {"name": each.name}) | each.as_dict() for each in speeds]
        passed = all(rung.error is None for rung in rungs)
        print_json({"ok": passed, "spec": spec.as_dict(), "rungs": rows})
        return
    print(f"{spec.m}×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}")
    if rungs:
        _print(rungs)
    _print_speeds(speeds)
    _print_verdicts(rungs)


def climb(name: str, spec: MatmulSpec, target: str, seed: int, check: str = DEFAULT_CHECK) -> Rung:
    """Compile, inspect and run one preset; what a kernel or compiler refuses becomes its error."""
    from ...compiler.driver import compile_matmul
    from ...compiler.pipeline import all_presets
    from ...dialects.errors import CompileError
    from ...runtime.errors import DeviceError

    rung = Rung(name, all_presets()[name])
    try:
        compiled = compile_matmul(spec, target=target, preset=name, allow_spills=True)
        rung.pipeline = compiled.pipeline
        rung.manifest = compiled.manifest
        _inspect(rung, compiled)
        _run(rung, spec, compiled, (seed, check), target)
    except (CompileError, DeviceError) as error:
        rung.error = str(error)
    return rung


def _inspect(rung: Rung, compiled: Compiled) -> None:
    from ...compiler import inspect_ptx, inspect_sass

    assert compiled.ptx is not None and compiled.assembled is not None
    entry = compiled.manifest["entry"]
    rung.ptx_loops = inspect_ptx.role_loops(compiled.ptx, entry)
    sass = inspect_sass.disassemble(compiled.assembled.cubin)
    rung.sass_loops = inspect_sass.role_loops(sass, entry) if sass else None


def _run(
    rung: Rung, spec: MatmulSpec, compiled: Compiled, how: tuple[int, str], target: str
) -> None:
    """With how: a seed, and what is checked."""
    from ...compiler.bundle_writer import as_bundle
    from ...runtime.launch.devices import open_device
    from ..ladder.bounds import bound_of
    from ..runs.references import OfSpec, compare_with
    from ..runs.report import verdict

    bundle, (seed, check) = as_bundle(compiled), how
    reference = OfSpec(spec)
    tensors = reference.tensors(bundle.manifest, seed)
    started = time.perf_counter()
    device = open_device("emulator")
    report = rung.report = device.launch(bundle, tensors, seed, check=check, profile=True)
    rung.seconds = time.perf_counter() - started
    assert report is not None and report.profile is not None
    rung.bound = bound_of(target, prod(bundle.manifest["grid"]), report.profile)
    comparison = compare_with(reference, bundle.manifest, tensors)
    if not comparison.passed:
        rung.error = verdict(comparison)
    elif spilled_bytes(rung):
        rung.error = f"registers spill {spilled_bytes(rung)} bytes a thread"


def spilled_bytes(rung: Rung) -> int:
    """Bytes of spill stores and loads of one thread."""
    assert rung.manifest is not None
    resources = rung.manifest["resources"]
    return resources["spill_store_bytes"] + resources["spill_load_bytes"]


def _print(rungs: list[Rung]) -> None:
    """What was compiled, and what the emulator counted."""
    from ..command_line.tables import print_table

    print_table(COLUMNS, [_row(rung) for rung in rungs], width=WIDTH)
    print(LEGEND)
    print_table(EVIDENCE_COLUMNS, [_evidence_row(r) for r in rungs if r.report], width=WIDTH)
    print(EVIDENCE_LEGEND)


def _print_speeds(speeds: list[Speed]) -> None:
    """What changes from rung to rung, and how fast it is predicted and was published to be."""
    from ..command_line.tables import print_table
    from ..ladder import speeds as ladder_speeds
    from ..ladder.plot import lines
    from ..ladder.published import CUBE

    rows = [ladder_speeds.speed_row(each) for each in speeds]
    print_table(ladder_speeds.COLUMNS, rows, width=WIDTH)
    print(ladder_speeds.LEGEND.format(shape="×".join(map(str, CUBE))))
    unknown = [each.name for each in speeds if each.predicted is None]
    if unknown:
        print(f"no estimate describes {', '.join(unknown)}; a run bounds them by its counts")
    print(*lines(speeds), sep="\n")


def _print_verdicts(rungs: list[Rung]) -> None:
    if not rungs:
        return
    for rung in rungs:
        if rung.error:
            print(f"{rung.name}: {rung.error}")
    right = sum(rung.error is None for rung in rungs)
    print(f"{'PASS' if right == len(rungs) else 'FAIL'}  {right} of {len(rungs)} rungs")


def _row(rung: Rung) -> list[str]:
    passes = " ".join(_passes_on(rung))
    verdict = "FAIL" if rung.error else "PASS"
    if rung.manifest is None:
        return [rung.name, passes, *["-"] * (len(COLUMNS) - 3), verdict]
    facts = _facts(rung)
    return [
        rung.name,
        passes,
        "×".join(str(extent) for extent in facts["tile"]),
        str(facts["stages"]),
        "×".join(str(extent) for extent in facts["cluster"]) + (" pair" if facts["pair"] else ""),
        str(facts["shared_bytes"]),
        str(facts["tmem_columns"]),
        str(facts["registers"]),
        str(facts["spilled_bytes"]),
        _counts(rung.ptx_loops),
        _counts(rung.sass_loops),
        "-" if rung.seconds is None else f"{rung.seconds:.1f}",
        verdict,
    ]


def _evidence(rung: Rung) -> dict[str, Any] | None:
    """What the emulator counted: requests, sectors, conflicts, waits."""
    if rung.report is None or rung.report.profile is None:
        return None
    totals = rung.report.profile.totals().as_dict()
    return totals | {"waits": rung.report.waits, "waits_suspended": rung.report.waits_suspended}


def _evidence_row(rung: Rung) -> list[str]:
    found = _evidence(rung) or {}
    moved = SECTOR_BYTES * found["sectors"]
    counts = (found["asked_bytes"], moved, *found["requests"].values(), found["passes"])
    row = [rung.name, *map(str, (*counts, found["conflicts"], found["waits_suspended"]))]
    return row if rung.bound is None else [*row, f"{rung.bound.us:.3g}", rung.bound.by]


def _passes_on(rung: Rung) -> list[str]:
    """The first word of every pass that not every rung has."""
    names = [text.partition("{")[0] for text in rung.pipeline.split(",")]
    return [name.partition("-")[0] for name in names if name not in IN_EVERY_RUNG]


def _facts(rung: Rung) -> dict[str, Any]:
    manifest = rung.manifest
    assert manifest is not None
    resources, schedule = manifest["resources"], manifest["schedule"]
    return {
        "tile": schedule["tile"],
        "stages": schedule["stages"],
        "cluster": manifest["cluster"][:2],
        "pair": "pair=true" in rung.pipeline,
        "shared_bytes": resources["static_shared_bytes"] + manifest["dynamic_shared_bytes"],
        "tmem_columns": schedule["tmem_columns"],
        "registers": resources["registers"],
        "spilled_bytes": spilled_bytes(rung),
    }


def _counts(loops: dict[str, Loop | None] | None) -> str:
    if loops is None:
        return "-"
    return "/".join(str(len(loop.instructions)) if loop else "-" for loop in loops.values())


def _as_dict(rung: Rung) -> dict[str, Any]:
    facts = _facts(rung) if rung.manifest is not None else {}
    return {
        "name": rung.name,
        "ok": rung.error is None,
        "error": rung.error,
        "pipeline": rung.pipeline,
        **facts,
        "ptx_loops": _lengths(rung.ptx_loops),
        "sass_loops": _lengths(rung.sass_loops),
        "run_seconds": rung.seconds,
        "evidence": _evidence(rung),
        "at_least_us": None if rung.bound is None else rung.bound.us,
        "at_least_by": None if rung.bound is None else rung.bound.by,
    }


def _lengths(loops: dict[str, Loop | None] | None) -> dict[str, int | None] | None:
    if loops is None:
        return None
    return {role: len(loop.instructions) if loop else None for role, loop in loops.items()}
