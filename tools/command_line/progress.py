"""Progress messages on stderr for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any

DELAY_SECONDS = 1.0
REPEAT_SECONDS = 10.0
"""A step that takes as long says again that it is under way."""


class Progress:
    """A line on stderr that names the current step, shown only after `delay` seconds.

    On a terminal it is one line with a spinner and the seconds, which goes away. Elsewhere every
    step that is begun after the delay is one line of text, and one more each `repeat` seconds.
    """

    def __init__(self, step: str, delay: float = DELAY_SECONDS, repeat: float = REPEAT_SECONDS):
        self._step = step
        self._started = time.monotonic()
        self._delay, self._repeat = delay, repeat
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._shown = False
        self._status: Any = None

    def __enter__(self) -> Progress:
        threading.Thread(target=self._follow, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._ended.set()
            if self._status:
                self._status.stop()

    def update(self, step: str) -> None:
        """Name the step that begins now."""
        with self._lock:
            self._step = step
            if self._shown:
                self._tell()

    def _follow(self) -> None:
        """Show the step when it is time, and that it goes on."""
        wait = self._delay
        while not self._ended.wait(wait):
            with self._lock:
                if not self._ended.is_set():
                    self._show()
            wait = 1.0 if self._status else self._repeat

    def _show(self) -> None:
        if not self._shown and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(self._step)
            self._status.start()
        self._shown = True
        self._tell()

    def _tell(self) -> None:
        elapsed = time.monotonic() - self._started
        if self._status:
            self._status.update(f"{self._step}, {elapsed:.0f} s")
        else:
            print(f"{elapsed:5.1f} s  {self._step} …", file=sys.stderr, flush=True)
