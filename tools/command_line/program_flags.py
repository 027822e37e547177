"""Flags of commands that run a Python program, whose kernels the emulator runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import DEFAULT_TARGET, Parser, positive
from .emulator_flags import DEFAULT_CHECK, add_check_flag

if TYPE_CHECKING:
    from ..programs.launches import Options

DEFAULT_SMS = 4


def add_program(parser: Parser) -> None:
    """The program with its arguments, and how its launches run."""
    parser.add_argument(
        "--target", default=DEFAULT_TARGET, metavar="CHIP", help="(default sm_100a)"
    )
    parser.add_argument(
        "--seeds",
        type=positive,
        default=1,
        metavar="N",
        help="run each launch with the seeds 0 to N-1, from the same memory (default 1)",
    )
    parser.add_argument(
        "--sms",
        type=positive,
        default=DEFAULT_SMS,
        metavar="N",
        help=f"multiprocessors that the program finds (default {DEFAULT_SMS})",
    )
    add_check_flag(parser)
    parser.add_argument(
        "--save",
        type=Path,
        metavar="DIR",
        help="write each launch there, as `tilewright emulate` takes it",
    )
    parser.add_argument("program", type=Path, metavar="PROGRAM.py", help="its code runs")
    rest = parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="of the program"
    )
    rest.required = False  # Python 3.11 says so of it where the program is missing


def run_as_asked(parser: Parser, options: argparse.Namespace, run: Any) -> int:
    """Run the program as the options say; 0 when it and every launch ended well."""
    if not options.program.is_file():
        parser.error(f"PROGRAM.py must be a file, got {options.program}")
    return run(options.program, options.arguments, options_of(options), tell)


def options_of(options: argparse.Namespace) -> Options:
    """How launches run."""
    from ..programs.launches import Options

    return Options(
        options.target,
        range(options.seeds),
        options.check or DEFAULT_CHECK,
        options.sms,
        options.save,
    )


def tell(line: str) -> None:
    """Say something beside the program's output."""
    print(line, file=sys.stderr, flush=True)
