"""`tilewright cute`: runs a program of NVIDIA's CuTe DSL, its kernels on the emulator."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from ..command_line.arguments import Parser
from ..command_line.program_flags import add_program, run_as_asked

EXAMPLES = """examples:
  tilewright cute gemm.py
  tilewright cute --target sm_90a --seeds 3 gemm.py --mnkl 256,256,128,1
  tilewright cute --save launches gemm.py

PROGRAM.py is run as Python would, by an interpreter that has nvidia-cutlass-dsl and torch.
"""


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
    add_program(parser)
    parser.set_defaults(command=functools.partial(cute_command, parser))


def cute_command(parser: Parser, options: argparse.Namespace) -> int:
    """Run as the options say; 0 when the program and every launch ended well."""
    from ..cute_dsl.running import run_program

    return run_as_asked(parser, options, run_program)
