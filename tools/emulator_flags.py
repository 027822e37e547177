"""Flags about the emulator that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .arguments import Parser
from .output import check_place

EMULATOR = "emulator"


def add_emulator_flags(group: Any) -> None:
    """What to record of a launch on the emulator; `group` is a parser or a group of one."""
    group.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write a trace for Perfetto or Chrome: order is exact, durations are steps",
    )


def emulator_options(parser: Parser, options: argparse.Namespace) -> dict[str, Any]:
    """The keywords of EmulatorDevice.launch that the flags stand for; refuses other devices."""
    given = {"trace": options.trace}
    given = {name: value for name, value in given.items() if value}
    if given and options.device != EMULATOR:
        flags = ", ".join(f"--{name}" for name in given)
        parser.error(f"{flags} must come with --device emulator, got {options.device}")
    check_place(options.trace)
    return given
