"""Runs commands that read untrusted files in a child process, with limits.

The child runs the whole command and writes where this process would; nothing that it says is read
here but how it ended. What native code prints to stderr as it dies is kept back, for its reason.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ...runtime.child import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_SECONDS,
    GRACE_SECONDS,
    LEAST_MEMORY_BYTES,
    ChildError,
    Limits,
    crash_of,
    end,
    has_ended,
    python_module,
    says_out_of_memory,
    start,
    too_much_memory,
    wait_for,
)
from .own_process import BROKEN_PIPE, INTERRUPTED

MODULE = __name__.removesuffix("command_line.isolated") + "isolated_child"
KEPT_BYTES = 2**16
STATUSES = (0, 1, 2, INTERRUPTED, BROKEN_PIPE)
"""With which a command ends by itself."""
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?)?", re.IGNORECASE)


def add_limits(parser: Any) -> None:
    """What the process may use that reads a file; parser may be a group of one."""
    parser.add_argument(
        "--max-seconds",
        type=seconds,
        default=DEFAULT_SECONDS,
        metavar="S",
        help=f"wall seconds all of it may take (default {DEFAULT_SECONDS:g})",
    )
    parser.add_argument(
        "--max-memory",
        type=memory,
        default=DEFAULT_MEMORY_BYTES,
        metavar="SIZE",
        help=f"memory its process may map, as 4G (default {DEFAULT_MEMORY_BYTES >> 30}G)",
    )


def reads_in_child(parser: argparse.ArgumentParser) -> None:
    """Run a command in a child where it is given a FILE or the text of a pipeline."""
    group = parser.add_argument_group(
        "limits", "for the child process that reads FILE or a pipeline"
    )
    add_limits(group)
    parser.set_defaults(reads_in_child=_names_strangers)


def _names_strangers(options: argparse.Namespace) -> bool:
    return options.file is not None or getattr(options, "pipeline", None) is not None


def wants_child(options: argparse.Namespace) -> bool:
    """Whether a command line names something that strangers wrote."""
    asks: Callable[[argparse.Namespace], bool] | None = getattr(options, "reads_in_child", None)
    return asks is not None and asks(options)


def run_in_child(words: Sequence[str], options: argparse.Namespace) -> int:
    """Run the command line in a child and return its exit status; ChildError when it has none."""
    on_gpu = str(getattr(options, "device", "")).startswith("cuda")
    # A GPU's driver reserves more addresses than any limit; what it holds is on the GPU.
    limits = Limits(options.max_seconds, None if on_gpu else options.max_memory)
    where = str(options.file or "pipeline")
    with ExitStack() as stack:
        process = _start(words, limits, stack)
        try:
            said, over = _listen(process, options.max_seconds)
        finally:
            status = end(process)
    if over or status == -signal.SIGALRM:
        rule = f"must be done within {options.max_seconds:g} s, got no end"
        raise ChildError(f"{where}: {rule}; simplify it or raise --max-seconds")
    if status not in STATUSES or b"Traceback (most recent call last)" in said:
        raise _crashed(where, status, said.decode(errors="replace"), limits)
    sys.stderr.write(said.decode(errors="replace"))
    return status


def _start(words: Sequence[str], limits: Limits, stack: ExitStack) -> subprocess.Popen[bytes]:
    messages, (watched, held) = os.dup(2), os.pipe()
    for descriptor in (messages, watched, held):
        stack.callback(os.close, descriptor)
    command = python_module(MODULE, str(messages), str(watched), *words)
    shared = (messages, watched)
    process = start(command, limits, stderr=subprocess.PIPE, pass_fds=shared)
    assert process.stderr
    stack.enter_context(process.stderr)
    return process


def _listen(process: subprocess.Popen[bytes], limit_s: float) -> tuple[bytes, bool]:
    """The first of what the child prints past its messages, and whether its time is over."""
    assert process.stderr
    pipe, kept = process.stderr.fileno(), b""
    last = time.monotonic() + limit_s + GRACE_SECONDS
    while (left := last - time.monotonic()) > 0:
        if select.select([pipe], [], [], min(left, 0.2))[0]:
            chunk = os.read(pipe, KEPT_BYTES)
            kept = (kept + chunk)[:KEPT_BYTES]
            if not chunk:
                break
        elif has_ended(process):  # and something that it started holds the pipe
            break
    return kept, not wait_for(process, max(0.0, last - time.monotonic()))


def _crashed(where: str, status: int, said: str, limits: Limits) -> ChildError:
    if says_out_of_memory(said):
        return too_much_memory(where, limits.memory_bytes)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reason = f": {lines[0][:160]}" if lines and status == -signal.SIGABRT else ""
    return ChildError(
        f"{where}: the compiler must read it to an end, got {crash_of(status)}{reason};"
        " simplify it, or report it with the file"
    )


def seconds(text: str) -> float:
    """An argument type: seconds of wall time."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"must be seconds above 0 and up to 1e6, got '{text}'")
    return value


def memory(text: str) -> int:
    """An argument type: bytes, as 17179869184, 16G, 16GiB or 1.5T."""
    match = _SIZE.fullmatch(text.strip()[:40])
    size = float(match[1]) * UNITS[(match[2] or "").upper()] if match else 0
    if not LEAST_MEMORY_BYTES <= size < 2**63:
        rule = "must be a size from 1G below 8388608T, as 512G or a number of bytes"
        raise argparse.ArgumentTypeError(f"{rule}, got '{text[:40]}'")
    return int(size)
