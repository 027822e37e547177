"""`tilewright emulate`: runs any kernel's PTX on the emulator as a launch file says."""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.launch_files import DEFAULT_MAX_STEPS
from ..command_line.arguments import Parser, add_json, natural, positive
from ..command_line.emulator_flags import (
    DEFAULT_CHECK,
    add_emulator_flags,
    check_files,
    wants_profile,
    write_report,
)
from ..command_line.isolated import add_limits
from ..command_line.output import deadlock_of, print_json, write_bytes
from ..command_line.progress import Progress

if TYPE_CHECKING:
    from ...runtime.emulator import Trap
    from ...runtime.launch_files.running import LaunchResult
    from ...runtime.launch_files.summary import Summary

EXAMPLES = """examples:
  tilewright emulate kernel.ptx --launch launch.json
  tilewright emulate kernel.ptx --launch launch.json --seeds 50
  tilewright emulate kernel.ptx --launch launch.json --seed 17 --out results --json
"""


def add_command(commands: Any) -> None:
    """Add `emulate` to the command line."""
    parser: Parser = commands.add_parser(
        "emulate",
        help="run any kernel's PTX on the emulator as a launch file says",
        description="Runs a kernel on the emulator and reports what it did. Exit status 1 when the"
        " kernel breaks a rule, deadlocks or exceeds a limit.",
        epilog=EXAMPLES,
    )
    parser.add_argument("file", type=Path, metavar="KERNEL.ptx", help="PTX text of any compiler")
    parser.add_argument(
        "--launch",
        type=Path,
        required=True,
        metavar="LAUNCH.json",
        help="grid, tensors and parameters; docs/emulate.md has the schema",
    )
    _add_seeds(parser)
    _add_limits(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the outputs as DIR/NAME.npy")
    parser.add_argument(
        "--whole",
        action="store_true",
        help="every element of every output must be written, and of every input read",
    )
    add_emulator_flags(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(emulate_command, parser))


def _add_seeds(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--seed",
        type=natural,
        default=0,
        metavar="N",
        help="fixes order of events and poison (default 0)",
    )
    which.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help="run with the seeds 0 to N-1 and stop at the first that fails",
    )


def _add_limits(parser: Parser) -> None:
    parser.add_argument(
        "--max-steps",
        type=positive,
        default=DEFAULT_MAX_STEPS,
        metavar="N",
        help=f"warp instructions a run may execute (default {DEFAULT_MAX_STEPS})",
    )
    add_limits(parser)


def emulate_command(parser: Parser, options: argparse.Namespace) -> int:
    """Run as the options say; 0 when the kernel ran to its end with every seed."""
    from ...runtime.emulator import Trap

    _check_folder(parser, options.out)
    check_files(parser, options)
    reached: list[int] = []
    try:
        result = _run(options, reached)
    except Trap as trap:
        return _report_failure(trap, reached[-1] if reached else options.seed, options)
    return _report(result, options)


def _run(options: argparse.Namespace, reached: list[int]) -> LaunchResult:
    from ...runtime.launch_files.isolation import run_seeds
    from ...runtime.launch_files.options import RunOptions

    seeds = range(options.seeds) if options.seeds else [options.seed]
    trace = None if options.trace is None else str(options.trace)
    profile = wants_profile(options)
    check = options.check or DEFAULT_CHECK
    how = RunOptions(
        options.max_steps,
        options.max_seconds,
        trace,
        profile,
        check,
        options.max_memory,
        options.workers or 1,
        options.fp8_sums or "f32",
        options.whole,
    )
    with Progress("reading the kernel") as progress:

        def on_seed(seed: int) -> None:
            reached.append(seed)
            progress.update(f"running with seed {seed}")

        return run_seeds(options.file, options.launch, seeds, how, on_seed)


def _check_folder(parser: Parser, folder: Path | None) -> None:
    """Refuse a folder that can't be made, before time is spent; it is made when there is output."""
    if folder is None:
        return
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        parser.error(f"--out must be a folder that can be made, got {folder}: File exists")
    if not os.access(there, os.W_OK):
        parser.error(f"--out must be a folder that can be made, got {folder}: Permission denied")


def _report(result: LaunchResult, options: argparse.Namespace) -> int:
    summaries = _write_outputs(result, options.out)
    write_report(result.report, options.report_json)
    if options.json:
        print_json(
            {
                "ok": True,
                "seed": result.seed,
                "seeds_run": options.seeds or 1,
                "report": result.report.as_dict(),
                "outputs": [summary.as_dict() for summary in summaries],
            }
        )
        return 0
    if options.seeds:
        print(f"seeds 0 to {result.seed}: every run ended well; this is seed {result.seed}")
    print(result.report)
    for summary in summaries:
        print(f"output {summary}")
    return 0


def _write_outputs(result: LaunchResult, folder: Path | None) -> list[Summary]:
    from ...runtime.launch_files.summary import npy_bytes, summarize

    summaries = []
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    for name, array in result.outputs.items():
        path = folder / f"{name}.npy" if folder else None
        if path:
            write_bytes(npy_bytes(array), path)
        summaries.append(summarize(name, array, str(path) if path else None))
    return summaries


def _report_failure(trap: Trap, seed: int, options: argparse.Namespace) -> int:
    text = str(trap).replace("ptx:", f"{options.file}:", 1)
    verdict, _, evidence = text.partition("\n")
    words = ["tilewright", "emulate", str(options.file), "--launch", str(options.launch)]
    words += ["--check", options.check] if options.check else []
    if options.max_steps != DEFAULT_MAX_STEPS:
        words += ["--max-steps", str(options.max_steps)]
    words += ["--fp8-sums", options.fp8_sums] if options.fp8_sums else []
    words += ["--whole"] if options.whole else []
    replay = shlex.join([*words, "--seed", str(seed)])
    lines = [verdict, *evidence.splitlines(), f"replay: {replay}"]
    print("\n".join(lines), file=sys.stderr)
    if options.json:
        found = {"error": verdict, "evidence": evidence.splitlines(), "seed": seed}
        print_json({"ok": False, **found, **_place(trap), "replay": replay, **deadlock_of(trap)})
    return 1


def _place(trap: Trap) -> dict[str, Any]:
    return {
        "category": trap.category,
        "kernel": trap.kernel,
        "cta": trap.cta,
        "warp": trap.warp,
        "ptx_line": trap.line,
        "ptx_text": trap.text,
    }
