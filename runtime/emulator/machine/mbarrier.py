"""The mbarrier object: phase, expected and pending arrivals, transaction count.

A phase completes when ``pending == 0 and tx == 0``; at once the phase number grows by one and
``pending`` becomes ``expected``. The full phase number is kept, not only its parity, so that a
waiter which lags two phases is seen instead of getting the aliased answer.

Source: PTX ISA, section "Parallel Synchronization and Communication Instructions: mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import Trap
from .signals import Signal

MAX_COUNT = (1 << 20) - 1
"""Largest arrival count and largest magnitude of the transaction count."""

_PENDING_BITS = 20
_CATEGORY = "barrier-protocol"


def _refuse(message: str) -> Trap:
    return Trap(_CATEGORY, message)


def check_count(count: int, what: str) -> None:
    """Raise ``Trap`` unless ``count`` is a legal arrival count (1 .. 2^20 - 1)."""
    if not 1 <= count <= MAX_COUNT:
        raise _refuse(f"{what} must be 1..{MAX_COUNT}, got {count}")


def pending_count(token: int) -> int:
    """Pending arrivals recorded in an arrive's state token (``mbarrier.pending_count``)."""
    return token & MAX_COUNT


def _phase_of(token: int) -> int:
    return token >> _PENDING_BITS


@dataclass(eq=False)
class Mbarrier:
    """State of one mbarrier object in the shared memory of one CTA; ``address`` is for messages.

    ``signals`` counts who has ever signalled it, ``last_signal`` is the newest of them. An arrival
    at a phase before any wait has seen the one before is an error, or is told to ``tolerate``.
    ``maker`` is the warp that has initialised it.
    """

    address: int
    expected: int
    phase: int = 0
    pending: int = 0
    tx: int = 0
    signals: dict[Signal, int] = field(default_factory=dict)
    last_signal: Signal | None = None
    tolerate: Callable[[str], None] | None = None
    maker: object = None
    _observed: int = -1
    _waiting: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count(self.expected, "arrival count of mbarrier.init")
        self.pending = self.expected

    def is_as_made_with(self, count: int) -> bool:
        """Whether an initialisation with this count would change nothing."""
        untouched = self.phase == self.tx == 0 and not self.signals
        return untouched and count == self.pending == self.expected

    def describe(self) -> str:
        """One line for error and deadlock reports."""
        return (
            f"mbarrier 0x{self.address:x} (phase {self.phase}, parity {self.phase & 1}, "
            f"pending {self.pending} of {self.expected}, tx {self.tx})"
        )

    def token(self) -> int:
        """The opaque 64-bit state before an arrive-on operation."""
        return self.phase << _PENDING_BITS | self.pending

    def arrive(
        self, count: int = 1, *, expect: int = 0, drop: bool = False, no_complete: bool = False
    ) -> int:
        """expect_tx(``expect``), then arrive-on with ``count``; returns the state before it.

        ``drop`` also takes ``count`` from the arrivals of later phases; ``no_complete`` asserts
        that this arrival is not the last one of the phase.
        """
        check_count(count, "arrival count")
        self._check_arrival(count, no_complete)
        token = self.token()
        self._add_tx(expect)
        self.pending -= count
        if drop:
            self.expected -= count
        self._settle()
        return token

    def expect_tx(self, count: int) -> None:
        """Add ``count`` expected bytes to the current phase."""
        self._add_tx(count)
        self._settle()

    def complete_tx(self, count: int) -> None:
        """Take ``count`` delivered bytes off; may complete the phase, may run ahead of expect."""
        self._add_tx(-count)
        self._settle()

    def test(self, token: int) -> bool:
        """``test_wait``/``try_wait`` with the state of an arrive: is that phase complete?"""
        asked = _phase_of(token)
        self._check_phase(asked)
        return self._observe(asked)

    def test_parity(self, parity: int, *waiters: int) -> bool:
        """``.parity`` form: is the phase of this parity, current or preceding, complete?

        The hardware reads bit 0 of the parity; callers warn of others than 0 and 1.
        ``waiters`` are the threads that ask together: those that were told "not yet" about a
        phase and come back with the same parity mean that same phase.
        """
        asked = self._meant_phase(parity & 1, waiters[0])
        if self.tolerate is None or waiters[0] not in self._waiting:
            self._check_phase(asked)
        done = self._observe(asked)
        if not done:
            self._waiting.update(dict.fromkeys(waiters, asked))
        elif self._waiting:
            for waiter in waiters:
                self._waiting.pop(waiter, None)
        return done

    def _meant_phase(self, parity: int, waiter: int) -> int:
        asked = self._waiting.get(waiter)
        if asked is not None and asked & 1 == parity:
            return asked
        return self.phase if self.phase & 1 == parity else self.phase - 1

    def _observe(self, asked: int) -> bool:
        done = asked < self.phase
        if done:
            self._observed = max(self._observed, asked)
        return done

    def _check_phase(self, asked: int) -> None:
        if asked < self.phase - 1:
            raise _refuse(
                f"a wait may ask about the current or the preceding phase, got phase {asked} of "
                f"{self.describe()}; the waiter lags {self.phase - asked} phases"
            )
        if asked > self.phase:
            raise _refuse(f"state token names phase {asked}, which is ahead of {self.describe()}")

    def _check_arrival(self, count: int, no_complete: bool) -> None:
        if self._observed < self.phase - 1:
            self._arrived_unobserved()
        if count > self.pending:
            raise _refuse(f"arrival of {count} exceeds the pending count of {self.describe()}")
        if no_complete and count == self.pending and self.tx == 0:
            raise _refuse(f"arrive.noComplete would complete the phase of {self.describe()}")

    def _arrived_unobserved(self) -> None:
        text = (
            f"phase {self.phase - 1} of {self.describe()} was waited for by no thread before "
            f"this arrival at phase {self.phase}; PTX ISA §9.7.13.15.4 wants a test_wait or "
            "try_wait that has returned True in between"
        )
        if self.tolerate is None:
            raise _refuse(text)
        self.tolerate(text)

    def _add_tx(self, count: int) -> None:
        if abs(self.tx + count) > MAX_COUNT:
            raise _refuse(
                f"tx-count must stay within +-{MAX_COUNT}, got {self.tx + count} "
                f"for {self.describe()}"
            )
        self.tx += count

    def _settle(self) -> None:
        if self.pending:
            return
        if self.tx < 0:
            raise _refuse(
                f"all arrivals are in and {-self.tx} bytes more were delivered than expected at "
                f"{self.describe()}"
            )
        if self.tx == 0:
            self.phase += 1
            self.pending = self.expected
            if self._observed < self.phase - 2:
                raise _refuse(
                    f"phase {self.phase - 2} of {self.describe()} was waited for by no thread, "
                    "and lies two back now"
                )
