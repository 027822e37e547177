"""How far strong accesses reach: two race like weak ones where one's scope leaves out the other.

They are morally strong only if each one's scope includes the other's thread (PTX ISA §8.7.1): an
`atom.cta` is atomic for its own CTA alone.
"""

from __future__ import annotations

import numpy as np

from .clock import ELSEWHERE, OWN_CLUSTER, REACH

Home = tuple[int, int]
"""A cluster's number and the rank of a CTA there."""


class Reaches:
    """narrow: whether a strong access of less than .gpu has been made. _lines: by its PTX line how
    far it reaches, the farthest of a line; _homes: by a cluster's number and a component of it the
    CTA whose accesses it marks."""

    def __init__(self) -> None:
        self.narrow = False
        self._lines: dict[int, int] = {}
        self._homes: dict[tuple[int, int], Home] = {}

    def belongs(self, component: int, home: Home) -> None:
        """A component marks accesses of a warp there."""
        self._homes[home[0], component] = home

    def note(self, line: int, scope: str) -> None:
        """A strong access is made."""
        reach = REACH[scope]
        if reach < ELSEWHERE or line in self._lines:
            self.narrow = True
            self._lines[line] = max(reach, self._lines.get(line, reach))

    def weakened(
        self, marks: tuple[np.ndarray, np.ndarray], cluster: int, line: int, home: Home
    ) -> np.ndarray:
        """The marks' components, negative if strong for a strong access at a PTX line by a warp
        there. marks: the same for anybody, and the PTX line of each."""
        who, lines = marks
        weak = np.zeros(who.shape, bool)
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
