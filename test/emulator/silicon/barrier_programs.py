"""Random legal programs on one mbarrier (PTX ISA §9.7.13.15), each answer of which is recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from silicon_case import RESULT, Case, generator, kernel

PROGRAMS, ANSWERS, LANES = 96, 40, 32
SCOPES = ("", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster")
MOST_BYTES = 100_000
CHANCES = {
    "arrive": 0.12, "count": 0.12, "partial": 0.08, "drop": 0.05, "expect": 0.1,
    "arrive_expect": 0.1, "drop_expect": 0.04, "complete": 0.15, "parity": 0.1, "state": 0.08,
    "pending": 0.04, "anew": 0.02,
}  # fmt: skip


def barrier_programs() -> Iterator[Case]:
    """One thread's programs, of which each phase that ends is asked for at once."""
    for number in range(PROGRAMS):
        title = f"mbarrier program #{number}"
        drawn = _Program(generator(title))
        drawn.draw()
        zeros = "".join(f"mov.b32 %r{RESULT + i}, 0;\n" for i in range(drawn.answers))
        body = f".shared .align 8 .b64 bar;\n{zeros}setp.eq.u32 %on, %t, 0; @!%on bra END;\n"
        body += "\n".join(drawn.lines) + "\nEND: bar.warp.sync -1;\n"
        text, words = kernel(body, 1, drawn.answers), np.zeros((LANES, 1), np.uint32)
        yield Case(title, text, np.zeros(4, np.uint8), words, drawn.answers)


class _Program:
    """lines of PTX; answers: how many words it keeps. It knows what the object holds by the ISA, so
    that it draws legal operations alone."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.lines: list[str] = []
        self.answers = 0
        self._begin(int(rng.integers(2, 9)))

    def _begin(self, count: int) -> None:
        self.lines.append(f"mbarrier.init.shared::cta.b64 [bar], {count};")
        self.expected = self.pending = count
        self.bytes = self.phase = 0
        self.tokens: list[tuple[str, int]] = []

    def draw(self) -> None:
        """Operations until all answers are in, and what balances the bytes."""
        while self.answers < ANSWERS:
            kind = str(self.rng.choice(list(CHANCES), p=list(CHANCES.values())))
            self.arrivals = int(self.rng.integers(1, 4))
            self.size = 8 * int(self.rng.integers(1, 200))
            if self.bytes < 0 and self.pending <= self.arrivals:
                self._balance()  # no phase may lack but bytes that came too early
            self.scope = str(self.rng.choice(SCOPES))
            phase = self.phase
            getattr(self, f"_{kind}")()
            if self.phase > phase:
                self._ask("test_wait.parity", (self.phase - 1) & 1, "")
        if self.bytes:
            self._balance()

    def _balance(self) -> None:
        way = "complete_tx" if self.bytes > 0 else "expect_tx"
        self.lines.append(f"mbarrier.{way}.relaxed.cta.shared::cta.b64 [bar], {abs(self.bytes)};")
        self.bytes = 0

    def _change(self, arrivals: int = 0, bytes_: int = 0) -> None:
        self.pending -= arrivals
        self.bytes += bytes_
        if not self.pending and not self.bytes:
            self.phase += 1
            self.pending = self.expected

    def _tell(self, text: str) -> None:
        self.lines.append(text.replace("ANSWER", f"%r{RESULT + self.answers}"))
        self.answers += 1

    def _ask(self, way: str, what: object, hint: str) -> None:
        ask = f"mbarrier.{way}.shared::cta.b64 %q, [bar], {what}{hint};"
        self._tell(f"{ask} selp.u32 ANSWER, 1, 0, %q;")

    def _arrives(self, how: str, operand: str = "", arrivals: int = 1, bytes_: int = 0) -> None:
        token = f"%w{len(self.tokens) % 40}"
        self.lines.append(f"mbarrier.{how}.shared::cta.b64 {token}, [bar]{operand};")
        self.tokens.append((token, self.phase))
        self._change(arrivals, bytes_)

    def _arrive(self) -> None:
        if self.pending:
            self._arrives(f"arrive{self.scope}")

    def _count(self) -> None:
        if self.pending >= self.arrivals:
            self._arrives(f"arrive{self.scope}", f", {self.arrivals}", self.arrivals)

    def _partial(self) -> None:
        if self.pending > self.arrivals:
            self._arrives("arrive.noComplete.release.cta", f", {self.arrivals}", self.arrivals)

    def _drop(self) -> None:
        if self.pending and self.expected > 1:
            self.expected -= 1
            self._arrives(f"arrive_drop{self.scope}")

    def _expect(self) -> None:
        if self.pending and self.bytes < MOST_BYTES:
            self.lines.append(f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {self.size};")
            self._change(0, self.size)

    def _arrive_expect(self) -> None:
        if self.pending:
            self._arrives(f"arrive.expect_tx{self.scope}", f", {self.size}", 1, self.size)

    def _drop_expect(self) -> None:
        if self.pending and self.expected > 1:
            self.expected -= 1
            self._arrives(f"arrive_drop.expect_tx{self.scope}", f", {self.size}", 1, self.size)

    def _complete(self) -> None:
        if not (self.bytes or (self.pending and self.rng.random() < 0.3)):
            return
        size = self.bytes if self.bytes > 0 and self.rng.random() < 0.6 else self.size
        if self.pending or size <= self.bytes:
            self.lines.append(f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {size};")
            self._change(0, -size)

    def _parity(self) -> None:
        way = str(self.rng.choice(["test_wait", "try_wait"]))
        parity = int(self.rng.integers(0, 2))
        self._ask(f"{way}.parity", parity, ", 20" if way == "try_wait" else "")

    def _state(self) -> None:
        usable = [each for each in self.tokens[-30:] if each[1] >= self.phase - 1]
        if usable:
            token = usable[int(self.rng.integers(len(usable)))][0]
            way = str(self.rng.choice(["test_wait", "try_wait"]))
            self._ask(way, token, ", 20" if way == "try_wait" else "")

    def _pending(self) -> None:
        if self.tokens:
            self._tell(f"mbarrier.pending_count.b64 ANSWER, {self.tokens[-1][0]};")

    def _anew(self) -> None:
        if self.phase and not self.bytes:
            self.lines.append("mbarrier.inval.shared::cta.b64 [bar];")
            self._begin(int(self.rng.integers(2, 9)))
