"""The process of the command line: signals, and streams that fail.

SIGINT: one line and status 130. SIGTERM and SIGHUP: what the program has begun is undone (children,
temporary files), then it ends by that signal. A reader of stdout that has gone: quiet, 141, as of
a program that SIGPIPE ends. A stdout that can't be written: one line and status 1.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader
from types import FrameType
from typing import Any

from .streams import drop_output, own_streams

BROKEN_PIPE = 128 + signal.SIGPIPE
INTERRUPTED = 128 + signal.SIGINT
COLLECTIONS = (300_000, 20, 20)
"""Thresholds of Python's collector. Its own, 700 objects, spend a tenth of a short program. The
first is above what the compiler and a compilation make: to visit those takes 0.06 s."""


RETRY_SECONDS = 0.05
"""When a signal is sent again that came while native code was being loaded."""
_asked: list[int] = []
"""The signals that asked this program to end, of which the first one counts."""


class Ended(BaseException):
    """A signal asks the program to end; no `except Exception` may keep it."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def as_process(run: Callable[[], int | None], messages: int = 2) -> int:
    """Run the program with streams and signals of its own and return its exit status.

    messages: the descriptor of stderr.
    """
    own_streams(messages)
    try:
        with _few_collections(), _signals():
            status = _status_of(run)
            sys.stdout.flush()
            if status != INTERRUPTED:  # which is said
                end_if_asked()
            return status
    except KeyboardInterrupt:
        return _say("error: interrupted", INTERRUPTED)
    except Ended as ended:
        return _end_by(ended.number)
    except BrokenPipeError:
        drop_output()
        return BROKEN_PIPE
    except OSError as error:
        drop_output()
        return _say(unusable(error), 1)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Collect what circles leave seldom, and at the end no more: the process gives all back.

    Python would visit every object of MLIR and torch several times before it ends, for a tenth of
    a second.
    """
    gc.set_threshold(*COLLECTIONS)
    try:
        yield
    finally:
        gc.freeze()


def _status_of(run: Callable[[], int | None]) -> int:
    try:
        return run() or 0
    except SystemExit as left:  # argparse's, of --help
        return left.code if isinstance(left.code, int) else int(left.code is not None)


def print_document(text: str) -> None:
    """Print text that is a file's content: in UTF-8, whatever the terminal's encoding is."""
    sys.stdout.buffer.write(text.encode())


def unusable(error: OSError) -> str:
    """One line about a file or stream that can't be used."""
    where, reason = error.filename or "file", error.strerror or error
    if where == "stdout":
        return f"error: stdout: must be writable, got {reason}; send it elsewhere"
    return f"error: {where}: must be usable, got {reason}; use another path"


def _say(message: str, status: int) -> int:
    print(message, file=sys.stderr)
    return status


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into `Ended`, SIGINT into KeyboardInterrupt; one that is ignored
    (nohup) stays so.

    At the end all three are ignored: what is done can't be interrupted any more.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _ask)
    sys.unraisablehook = _unraisable
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _ask(number: int, frame: Any) -> None:
    if _loads_native(frame):  # which makes another exception of ours, or ends the process
        again = threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    _asked.append(number)
    end_if_asked()


def _loads_native(frame: FrameType | None) -> bool:
    """Whether the code that was interrupted is called by a library that is being loaded."""
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def end_if_asked() -> None:
    """Raise what a signal has asked for. A library that is being loaded may have made another
    exception of it, or none."""
    for number in _asked:
        raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


def _unraisable(found: Any) -> None:
    """An interruption where no exception can leave (a destructor, a callback) ends at once."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        os._exit(_say("error: interrupted", INTERRUPTED))
    if isinstance(found.exc_value, Ended):
        _end_by(found.exc_value.number)
    sys.__unraisablehook__(found)


def _end_by(number: int) -> int:
    drop_output()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
