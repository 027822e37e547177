"""What takes longer than a second says so on stderr; what is faster stays silent."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

DELAY_SECONDS = 1.0


class Progress:
    """A line on stderr that names the current step, shown only after `delay` seconds.

    On a terminal it is one line with a spinner that goes away; elsewhere every step that is begun
    after the delay is one line of text.
    """

    def __init__(self, step: str, delay: float = DELAY_SECONDS):
        self._step = step
        self._started = time.monotonic()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._shown = False
        self._status = None

    def __enter__(self) -> Progress:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._shown = False
            if self._status:
                self._status.stop()

    def update(self, step: str) -> None:
        """Name the step that begins now."""
        with self._lock:
            self._step = step
            if self._status:
                self._status.update(step)
            elif self._shown:
                self._print()

    def _show(self) -> None:
        with self._lock:
            self._shown = True
            if not sys.stderr.isatty():
                self._print()
                return
            from rich.console import Console

            self._status = Console(stderr=True).status(self._step)
            self._status.start()

    def _print(self) -> None:
        elapsed = time.monotonic() - self._started
        print(f"{elapsed:5.1f} s  {self._step} …", file=sys.stderr, flush=True)
