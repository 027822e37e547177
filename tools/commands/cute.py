"""`tilewright cute`: runs a program of NVIDIA's CuTe DSL, its kernels on the emulator."""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from ..command_line.arguments import DEFAULT_TARGET, Parser, positive
from ..command_line.emulator_flags import DEFAULT_CHECK, add_check_flag

EXAMPLES = """examples:
  tilewright cute gemm.py
  tilewright cute --target sm_90a --seeds 3 gemm.py --mnkl 256,256,128,1
  tilewright cute --save launches gemm.py

PROGRAM.py is run as Python would, by an interpreter that has nvidia-cutlass-dsl and torch.
"""
DEFAULT_SMS = 4


def add_command(commands: Any) -> None:
    """Add `cute` to the command line."""
    parser: Parser = commands.add_parser(
        "cute",
        help="run a program of the CuTe DSL, its kernels on the emulator",
        description="Runs a Python program that compiles and launches kernels of NVIDIA's CuTe DSL,"
        " without a GPU: its CUDA tensors are the host's, and each launch runs on the emulator."
        " Exit status 1 when a kernel breaks a rule, or the program fails.",
        epilog=EXAMPLES,
    )
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
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="of the program"
    )
    parser.set_defaults(command=functools.partial(cute_command, parser))


def cute_command(parser: Parser, options: argparse.Namespace) -> int:
    """Run as the options say; 0 when the program and every launch ended well."""
    from ..cute_dsl.running import Options, run_program

    if not options.program.is_file():
        parser.error(f"PROGRAM.py must be a file, got {options.program}")
    how = Options(
        options.target,
        range(options.seeds),
        options.check or DEFAULT_CHECK,
        options.sms,
        options.save,
    )
    return run_program(options.program, options.arguments, how, _tell)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
