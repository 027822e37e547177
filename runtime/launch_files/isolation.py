"""A launch in a process of its own, which the operating system stops at its limits.

The process says on its stdout, pickled, which seed begins and how the run ended. Its alarm clock
kills it when the time is over, whatever it does then.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import IO, Any

from ..emulator import Trap
from ..errors import DeviceError
from .options import RunOptions
from .running import LaunchResult

MODULE = f"{__package__}.worker"
PLAIN = (type(None), bool, int, float, str, tuple, list, dict)
"""The types of an error's fields that travel between processes."""


@dataclass(frozen=True)
class Request:
    """What the process is asked for: each seed in turn, up to the first that fails."""

    ptx_path: str
    launch_path: str
    seeds: Sequence[int]
    options: RunOptions


def run_seeds(
    ptx_path: str | PathLike[str],
    launch_path: str | PathLike[str],
    seeds: Sequence[int],
    options: RunOptions,
    on_seed: Callable[[int], None] = lambda seed: None,
) -> LaunchResult:
    """Run each seed in turn in one process and return what the last one did.

    on_seed is called with each seed before it runs. Raises what the first run that fails raises;
    when the time is over, a Trap of category `time-limit`.
    """
    request = Request(fspath(ptx_path), fspath(launch_path), seeds, options)
    for kind, value in _messages(request):
        if kind == "seed":
            on_seed(value)
        elif kind == "done":
            return value
        elif kind == "failed":
            raise _unpack_error(*value)
        else:
            raise RuntimeError(value)
    raise _time_over(options)


def pack_error(error: DeviceError) -> tuple[type[DeviceError], tuple, dict[str, Any]]:
    """The class, arguments and plain fields of an error."""
    fields = {name: value for name, value in vars(error).items() if isinstance(value, PLAIN)}
    return type(error), error.args, fields


def _unpack_error(kind: type[DeviceError], arguments: tuple, fields: dict[str, Any]) -> DeviceError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(fields)
    return error


def _messages(request: Request) -> Iterator[tuple[str, Any]]:
    command = [sys.executable, "-P", "-m", MODULE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin and process.stdout
            pickle.dump(request, process.stdin)
            process.stdin.close()
            yield from _read(process.stdout)
        finally:
            process.kill()
    if process.returncode != -signal.SIGALRM:
        yield "internal", f"the emulator's process ended with status {process.returncode}"


def _read(stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    while True:
        try:
            yield pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):
            return


def _time_over(options: RunOptions) -> Trap:
    return Trap("time-limit", f"the launch ran longer than max_seconds={options.max_seconds:g}")
