"""Python beside a long call of native code, which runs without Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def run_concurrently(native: Callable[[], object], python: Callable[[], None]) -> None:
    """Call both at once and wait for both; raises what Python does, else what native code does.

    An interrupt comes out after native code, too, whose memory nobody may free before. Where no
    thread can begin, as when Python 3.12 ends, they come one after the other.
    """
    turn, begun, over = threading.RLock(), threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        with turn:
            begun.set()  # whoever waits for it gets Python's lock once native code let go of it
            try:
                if not over.is_set():
                    native()
            except BaseException as error:
                raised.append(error)

    try:
        _start(run)
        begun.wait()
        python()
    finally:
        over.set()
        _wait_for(turn)
    if raised:
        raise raised[0]


def _start(run: Callable[[], None]) -> None:
    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError:
        run()


def _wait_for(turn: Any) -> None:
    """Wait until no other thread has its turn; raises what interrupts this then.

    Thread.join takes a thread for ended whose wait is interrupted.
    """
    interrupts: list[BaseException] = []
    while True:
        try:
            with turn:
                break
        except BaseException as error:
            interrupts.append(error)
    if interrupts:
        raise interrupts[0]
