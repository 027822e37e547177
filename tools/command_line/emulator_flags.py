"""Flags about the emulator that several commands share."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from ...runtime.atomic import is_stream
from .arguments import Parser, positive
from .output import check_place, write_text

EMULATOR = "emulator"
DEFAULT_CHECK = "full"


FP8_SUMS = ("f32", "hopper")
FP8_WGMMA = re.compile(r"wgmma\.mma_async\S*\.f32\.e[45]m[23]\.e[45]m[23]")
CHECKS = {
    "off": "nothing about order or initialisation",
    "fast": "all but races",
    "shipped": "all, but only warn of violations found in released libraries",
    "full": "all",
}


def add_check_flag(group: Any) -> None:
    """How much of the kernel's behaviour to check; `group` is a parser or a group of one."""
    words = ", ".join(f"{level}: {meaning}" for level, meaning in CHECKS.items())
    group.add_argument(
        "--check",
        type=_level,
        metavar="LEVEL",
        help=f"what the emulator checks; {words} (default {DEFAULT_CHECK})",
    )


def _level(text: str) -> str:
    if text not in CHECKS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(CHECKS)}, got '{text}'")
    return text


def add_emulator_flags(group: Any) -> None:
    """How to check a launch on the emulator and what to record of it; `group` as above."""
    add_check_flag(group)
    group.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="processes among which the clusters are divided (default 1)",
    )
    group.add_argument(
        "--fp8-sums",
        choices=FP8_SUMS,
        help="how wgmma accumulates 8-bit floats: hopper with 14 bits, as an H100 (default f32)",
    )
    group.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write a trace for Perfetto or Chrome: order is exact, durations are steps",
    )
    group.add_argument(
        "--report",
        action="store_true",
        help="also print bytes by memory and engine, bank conflicts, requests, barriers, roles",
    )
    group.add_argument(
        "--report-json", type=Path, metavar="FILE", help="write the whole report as JSON"
    )


def emulator_options(parser: Parser, options: argparse.Namespace) -> dict[str, Any]:
    """The keywords of EmulatorDevice.launch that the flags stand for; refuses other devices."""
    flags = {"--check": options.check, "--trace": options.trace, "--report": options.report}
    flags |= {"--report-json": options.report_json, "--workers": options.workers}
    flags |= {"--fp8-sums": options.fp8_sums}
    given = ", ".join(flag for flag, value in flags.items() if value)
    if given and options.device != EMULATOR:
        parser.error(f"{given} must come with --device emulator, got {options.device}")
    check_files(parser, options)
    found = {"check": options.check, "trace": options.trace, "profile": wants_profile(options)}
    found |= {"workers": options.workers, "fp8_sums": options.fp8_sums}
    return {name: value for name, value in found.items() if value}


def check_files(parser: Parser, options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, or are read, and one for two things, before time is
    spent on them."""
    read = {"FILE": "file", "--launch": "launch", "--reference": "reference"}
    given = {flag: getattr(options, name, None) for flag, name in read.items()}
    places = {os.path.realpath(path): flag for flag, path in given.items() if path is not None}
    flags = {"--trace": options.trace, "--report-json": options.report_json}
    if "output" in options:
        flags["-o"] = options.output
    for flag, path in flags.items():
        if path is None or is_stream(path):
            continue
        before = places.setdefault(os.path.realpath(path), flag)
        if before != flag:
            parser.error(f"{before} and {flag} must name two files, got {path} for both")
    check_place(options.trace)
    check_place(options.report_json)


def check_sums(parser: Parser, options: argparse.Namespace, ptx: str) -> None:
    """Refuse --fp8-sums for a kernel with no sums that it is about."""
    if options.fp8_sums and not FP8_WGMMA.search(ptx):
        rule = "--fp8-sums must come with a kernel that multiplies 8-bit floats by wgmma"
        parser.error(f"{rule}, got another")


def wants_profile(options: argparse.Namespace) -> bool:
    """Whether a report must say more than what is always counted."""
    return options.report or options.report_json is not None


def write_report(report: Any, path: Path | None) -> None:
    """Write the report as JSON, if a file was named."""
    if path is not None:
        write_text(json.dumps(report.as_dict(), indent=1) + "\n", path)
