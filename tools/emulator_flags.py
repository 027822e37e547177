"""Flags about the emulator that several commands share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .arguments import Parser
from .output import check_place, write_text

EMULATOR = "emulator"


def add_emulator_flags(group: Any) -> None:
    """What to record of a launch on the emulator; `group` is a parser or a group of one."""
    group.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write a trace for Perfetto or Chrome: order is exact, durations are steps",
    )
    group.add_argument(
        "--report",
        action="store_true",
        help="also print bytes by memory and engine, bank conflicts, barriers, roles",
    )
    group.add_argument(
        "--report-json", type=Path, metavar="FILE", help="write the whole report as JSON"
    )


def emulator_options(parser: Parser, options: argparse.Namespace) -> dict[str, Any]:
    """The keywords of EmulatorDevice.launch that the flags stand for; refuses other devices."""
    flags = {"--trace": options.trace, "--report": options.report}
    flags |= {"--report-json": options.report_json}
    given = ", ".join(flag for flag, value in flags.items() if value)
    if given and options.device != EMULATOR:
        parser.error(f"{given} must come with --device emulator, got {options.device}")
    check_files(options)
    found = {"trace": options.trace, "profile": wants_profile(options)}
    return {name: value for name, value in found.items() if value}


def check_files(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before time is spent on their content."""
    check_place(options.trace)
    check_place(options.report_json)


def wants_profile(options: argparse.Namespace) -> bool:
    """Whether a report must say more than what is always counted."""
    return options.report or options.report_json is not None


def write_report(report: Any, path: Path | None) -> None:
    """Write the report as JSON, if a file was named."""
    if path is not None:
        write_text(json.dumps(report.as_dict(), indent=1) + "\n", path)
