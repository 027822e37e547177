"""How far strong accesses reach: two of them race like weak ones if the scope of one excludes the
other, or if one is made by the async proxy and the other is not.

They are morally strong only if the scope of each includes the other's thread and both are made by
the same proxy (PTX ISA §8.7.1): an `atom.cta` is atomic only for its own CTA, and a reduction of a
bulk or tensor copy only among such reductions.
"""

from __future__ import annotations

import numpy as np

from .clock import ELSEWHERE, OWN_CLUSTER, REACH

Home = tuple[int, int]
"""The number of a cluster and the rank of a CTA in it."""


class Reaches:
    """narrow: whether a strong access with a scope below .gpu has been made. copies: the PTX lines
    of copies that reduce; _threads: those of strong accesses by threads. _lines: by PTX line, how
    far its accesses reach, the farthest of a line. _homes: by cluster number and component, the CTA
    whose accesses it marks."""

    def __init__(self) -> None:
        self.narrow = False
        self.copies: set[int] = set()
        self._threads: set[int] = set()
        self._lines: dict[int, int] = {}
        self._homes: dict[tuple[int, int], Home] = {}

    def belongs(self, component: int, home: Home) -> None:
        """Notes that a component marks accesses of a warp in this CTA."""
        self._homes[home[0], component] = home

    def note(self, line: int, scope: str) -> None:
        """Notes that a thread makes a strong access."""
        reach = REACH[scope]
        self._threads.add(line)
        if reach < ELSEWHERE or line in self._lines:
            self.narrow = True
            self._lines[line] = max(reach, self._lines.get(line, reach))

    @property
    def count(self) -> bool:
        """Whether any two strong accesses may race."""
        return self.narrow or bool(self.copies)

    def mixes(self, lines: np.ndarray | int, asynchronous: bool) -> np.ndarray:
        """Which of the lines are of another proxy, and of no other one."""
        if asynchronous:
            return ~np.isin(lines, list(self.copies))
        return np.isin(lines, list(self.copies - self._threads))

    def weakened(
        self,
        marks: tuple[np.ndarray, np.ndarray],
        cluster: int,
        line: int,
        home: Home | None,
        asynchronous: bool,
    ) -> np.ndarray:
        """The components of the marks, negative where they are strong for a strong access at a PTX
        line by a warp in this CTA, or by an operation, which has no home. marks: the same for
        anybody, and the PTX line of each."""
        who, lines = marks
        weak = (who < 0) & self.mixes(lines, asynchronous)
        if home is None or not self.narrow:
            return np.where(weak, -who, who)
        for component in np.unique(-who[who < 0]).tolist():
            there = self._homes.get((cluster, component))
            if there is None or there == home:
                continue
            distance = OWN_CLUSTER if there[0] == home[0] else ELSEWHERE
            of_it = who == -component
            short = [
                each for each in np.unique(lines[of_it]).tolist() if self._is_short(each, distance)
            ]
            weak |= of_it if self._is_short(line, distance) else of_it & np.isin(lines, short)
        return np.where(weak, -who, who)

    def _is_short(self, line: int, distance: int) -> bool:
        return self._lines.get(line, ELSEWHERE) < distance
