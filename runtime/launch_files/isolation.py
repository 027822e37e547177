"""A launch in a process of its own (`runtime.child`), which the system stops at its limits.

The process says on its stdout, pickled, which seed begins and how the run ended.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from typing import IO, Any

from ..child import GRACE_SECONDS, ChildError, Limits, crash_of, end, python_module, start
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
    when the time is over, a Trap of category `time-limit`; OSError where a trace can't be written.
    """
    request = Request(fspath(ptx_path), fspath(launch_path), seeds, options)
    for kind, value in _messages(request):
        if kind == "seed":
            on_seed(value)
        elif kind == "done":
            return value
        elif kind == "failed":
            raise _unpack_error(*value)
        elif kind == "unusable":
            raise value
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
    """What the process says, and at last how it ended if it could not say that itself."""
    limits = Limits(request.options.max_seconds, request.options.max_memory_bytes)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = start(python_module(MODULE), limits, **pipes)
    assert process.stdin and process.stdout
    with process.stdin, process.stdout, _deadline(process, limits.seconds) as rang:
        try:
            _ask(process.stdin, request)
            yield from _read(process.stdout)
        finally:
            end(process)
    if process.returncode != -signal.SIGALRM and not rang.is_set():
        yield "failed", pack_error(_crashed(request, process.returncode))


@contextmanager
def _deadline(process: subprocess.Popen[bytes], seconds: float | None) -> Iterator[threading.Event]:
    """Kill the process a little after its own alarm clock should have; the event says so."""
    rang = threading.Event()

    def ring() -> None:
        rang.set()
        process.kill()

    timer = threading.Timer((seconds or 0) + GRACE_SECONDS, ring)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield rang
    finally:
        timer.cancel()


def _ask(stream: IO[bytes], request: Request) -> None:
    """Send the request; the stream stays open, for the process to see when this one ends.

    Past the stream's buffer, which would be written once more when it is closed.
    """
    left = pickle.dumps(request)
    try:
        while left:
            left = left[os.write(stream.fileno(), left) :]
    except BrokenPipeError:
        pass  # it has ended already, and its status says why


def _read(stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    while True:
        try:
            yield pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):
            return


def _crashed(request: Request, status: int) -> DeviceError:
    return ChildError(
        f"{request.ptx_path}: the emulator must run it to an end, got {crash_of(status)} of its"
        " process; report it with both files"
    )


def _time_over(options: RunOptions) -> Trap:
    return Trap("time-limit", f"the launch ran longer than max_seconds={options.max_seconds:g}")
