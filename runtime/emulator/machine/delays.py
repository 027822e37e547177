"""Warps that are held up where CTAs find each other in global memory.

A GPU may leave a thread alone for long between any two instructions, while others go through all of
a protocol. Quanta are too short for that. So a seed picks some of the kernel's strong accesses to
global memory and of its fences that reach other CTAs, and behind these a warp may be held.
"""

from __future__ import annotations

from random import Random
from typing import Any

from ..interface import Launch, Warp
from ..ptx.program import Program
from ..ptx.registry import SWITCH, Step

CHANCES = (0.0, 0.5, 1.0)
"""Chance that warps are held behind one of these instructions; one a seed."""
HELD = 0.5
"""Chance that a warp is, when it has executed one of them."""
LENGTHS = (10, 14)
"""Logarithms to base 2 of the least and the most instructions that others execute meanwhile."""
_STRONG = {"acquire", "relaxed", "release", "acq_rel", "volatile"}
_FAR = {"gpu", "sys", "gl"}
_ELSEWHERE = ("shared", "param", "local", "const")


class Delays:
    """The delays of one launch. held: the warps that are held, and until which step of the
    scheduler; asked: those that are to be, once they have stopped; resume_at: the first of those
    steps."""

    def __init__(self, launch: Launch, chosen: list[int], rng: Random):
        self._rng = rng
        self.held: dict[Warp, float] = {}
        self._asked: set[Warp] = set()
        self.resume_at = float("inf")
        for pc in chosen:
            step, *guard = launch.code[pc]
            launch.code[pc] = (self._delaying(step), *guard)

    @classmethod
    def of(cls, launch: Launch) -> Delays | None:
        """The delays of a launch, or None. They draw their own random numbers, so other kernels,
        and other seeds, keep their order of events."""
        rng = Random(f"delays {launch.seed}")
        chance = rng.choice(CHANCES)
        chosen = [pc for pc in meeting_points(launch.program) if rng.random() < chance]
        return cls(launch, chosen, rng) if chosen else None

    def _delaying(self, step: Step) -> Step:
        """The same step, behind which its warp may be held."""

        decided: set[Warp] = set()

        def delaying(warp: Any, mask: Any) -> Any:
            signal = step(warp, mask)
            if signal is not None or warp in decided:
                return signal
            decided.add(warp)
            if self._rng.random() >= HELD:
                return signal
            self._asked.add(warp)
            return SWITCH

        return delaying

    def hold(self, warp: Warp, now: int) -> bool:
        """Whether a warp that has just run is held from this step on."""
        if warp not in self._asked:
            return False
        self._asked.remove(warp)
        self.held[warp] = now + 2 ** self._rng.uniform(*LENGTHS)
        self.resume_at = min(self.held.values())
        return True

    def resumed(self) -> Warp:
        """The warp whose time is the first to come, which is held no longer."""
        warp = min(self.held, key=self.held.__getitem__)
        del self.held[warp]
        self.resume_at = min(self.held.values(), default=float("inf"))
        return warp


def meeting_points(program: Program) -> list[int]:
    """The pcs of strong accesses to global memory, and of fences, that reach other CTAs."""
    return [pc for pc, source in enumerate(program.source) if _meets(source.opcode.split("."))]


def _meets(pieces: list[str]) -> bool:
    name, *modifiers = pieces
    if name in ("fence", "membar"):
        return not _FAR.isdisjoint(modifiers) and "proxy" not in modifiers
    near = {"cta", "cluster"}.intersection(modifiers)
    if near or any(each.startswith(_ELSEWHERE) for each in modifiers):
        return False
    return name in ("atom", "red") or (name in ("ld", "st") and not _STRONG.isdisjoint(modifiers))
