"""A ptxas that starts while LLVM makes its PTX.

What ptxas does before it opens its input takes about 10 ms, a fifth of its time for a large tile.
Its input is therefore a named pipe at first, at which it waits to be given the PTX. It opens its
input twice, and asks for its size the second time: a file of the same text has taken the pipe's
place by then, since the pipe ends only after that. What it says goes to a file: it may say more
than a pipe takes before it has read all, and a child that another thread forks would hold a pipe
open.
"""

from __future__ import annotations

import errno
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..runtime.child import CompletedTool, start_tool
from ..runtime.scratch import scratch_folder

INPUT, SAID = "kernel.ptx", "said"
STEP_SECONDS = 0.0005
WRITTEN_BYTES = 1 << 16
"""As many as a pipe takes, at a time."""
_given: set[int] = set()
"""Pipes that are being written, whose readers wait for an end as long as anybody holds them."""


class PtxasAhead:
    """A running ptxas whose input does not exist yet."""

    def __init__(
        self, command: Sequence[str], folder: Path, process: subprocess.Popen[bytes]
    ) -> None:
        self.folder = folder
        self._command, self._process = list(command), process
        self._is_asked = False

    def finish(self, command: Sequence[str], ptx: str, seconds: float) -> CompletedTool | None:
        """What comes of the PTX; TimeoutExpired where it takes longer.

        None where it must be assembled anew: by another command, a second time, or since this
        process has failed. A ptxas that cannot read a pipe says something else of the PTX.
        """
        if self._is_asked or list(command) != self._command:
            return None
        self._is_asked = True
        end = time.monotonic() + seconds
        if not self._give(ptx.encode(), end):
            return None
        if self._ended(end) != 0:
            return None
        said = (self.folder / SAID).read_text("utf-8", "replace")
        return CompletedTool(self._command, 0, said, "")

    def _ended(self, end: float) -> int:
        """The return code, once there is one; Popen.wait would notice it late."""
        with suppress(AttributeError, OSError):  # elsewhere than on Linux, or on one of before 5.3
            process = os.pidfd_open(self._process.pid)
            try:
                _is_ready(process, select.POLLIN, end)
            finally:
                os.close(process)
        return self._process.wait(max(0, end - time.monotonic()))

    def _give(self, text: bytes, end: float) -> bool:
        """Write the PTX; False where the process has ended before it asked for it."""
        pipe = self._opened(end)
        if pipe is None:
            return False
        _given.add(pipe)
        try:
            whole = self.folder / f"{INPUT}.whole"
            whole.write_bytes(text)
            whole.replace(self.folder / INPUT)
            _write(pipe, text, end)
        finally:
            _given.discard(pipe)
            os.close(pipe)
        return True

    def _opened(self, end: float) -> int | None:
        """The pipe, once the process waits at its other end."""
        while time.monotonic() < end:
            try:
                return os.open(self.folder / INPUT, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            if self._process.poll() is not None:
                return None
            time.sleep(STEP_SECONDS)
        raise subprocess.TimeoutExpired(self._command, 0)

    def stop(self) -> None:
        """End the process if it runs; what it has started itself may go on."""
        self._process.kill()
        self._process.wait()


def _write(pipe: int, text: bytes, end: float) -> None:
    """Write all of it, or until nobody reads it any more or the time is over."""
    left = memoryview(text)
    while left:
        if not _is_ready(pipe, select.POLLOUT, end):
            return
        try:
            left = left[os.write(pipe, left[:WRITTEN_BYTES]) :]
        except BrokenPipeError:
            return


def _is_ready(file: int, event: int, end: float) -> bool:
    """Whether that comes before the time is over; select(2) takes no file after the 1,024th."""
    waiting = select.poll()
    waiting.register(file, event)
    return bool(waiting.poll(1000 * max(0, end - time.monotonic())))


def _let_go() -> None:
    """In a child that was forked while another thread gave PTX."""
    while _given:
        os.close(_given.pop())


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def started(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[PtxasAhead | None]:
    """A ptxas that runs inside the block, started by a command that reads `INPUT`.

    None where a program cannot be started cheaply, or a folder takes no pipe.
    """
    with scratch_folder() as folder:
        process = _start(command, folder, variables)
        if process is None:
            yield None
            return
        ahead = PtxasAhead(command, folder, process)
        try:
            yield ahead
        finally:
            ahead.stop()


def _start(
    command: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> subprocess.Popen[bytes] | None:
    try:
        os.mkfifo(folder / INPUT, 0o600)
        with open(folder / SAID, "wb") as said:
            return start_tool(command, folder, said, variables)
    except OSError:
        return None
