"""`tilewright triton`: runs a program of Triton, its kernels on the emulator."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from ..command_line.arguments import Parser
from ..command_line.program_flags import add_program, run_as_asked

EXAMPLES = """examples:
  tilewright triton softmax.py
  tilewright triton --target sm_90a --seeds 3 matmul.py
  tilewright triton --save launches matmul.py

PROGRAM.py is run as Python would, by an interpreter that has triton and torch.
"""


def add_command(commands: Any) -> None:
    """Add `triton` to the command line."""
    parser: Parser = commands.add_parser(
        "triton",
        help="run a program of Triton or Gluon, its kernels on the emulator",
        description="Runs a Python program that compiles and launches kernels of Triton or Gluon,"
        " without a GPU: its CUDA tensors are the host's, and each launch runs on the emulator."
        " Exit status 1 when a kernel breaks a rule, or the program fails.",
        epilog=EXAMPLES,
    )
    add_program(parser)
    parser.set_defaults(command=functools.partial(triton_command, parser))


def triton_command(parser: Parser, options: argparse.Namespace) -> int:
    """Run as the options say; 0 when the program and every launch ended well."""
    from ..triton_programs.running import run_program

    return run_as_asked(parser, options, run_program)
