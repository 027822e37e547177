"""Python beside a long call of native code, which runs without Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable


def beside(native: Callable[[], object], python: Callable[[], None]) -> None:
    """Call both at once and wait for both; raises what Python does, else what native code does."""
    begun = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        begun.set()  # whoever waits for it gets Python's lock once native code has let go of it
        try:
            native()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    begun.wait()
    try:
        python()
    finally:
        thread.join()
    if raised:
        raise raised[0]
