"""Times of the stages of a compilation."""

from __future__ import annotations

import time


class timed:
    """Context manager that appends (stage, wall seconds) to a list."""

    def __init__(self, stages: list[tuple[str, float]], stage: str):
        self.stages, self.stage = stages, stage

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.stages.append((self.stage, time.perf_counter() - self.start))
