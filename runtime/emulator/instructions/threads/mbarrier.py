"""mbarrier.* (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

Every active lane performs its own operation, in lane order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine import mbarrier
from ...machine.barrier_operations import apply
from ...machine.mbarrier import Mbarrier
from ...machine.shared_access import OFFSET_MASK, barrier_at, check_span, locate
from ...machine.waits import MbarrierWait
from ...ptx.decode import Decoded
from ...ptx.lane_forms import address_of, note_lane_form, value_of
from ...ptx.lanes import FULL, WARP_SIZE, lanes_in
from ...ptx.registry import Step, Yield, instruction

_SECTION = "9.7.13.15"
_SPACES = ("shared::cta", "shared", "shared::cluster")
_OWN_SPACES = ("shared::cta", "shared")
_BYTES = 8
_NOBODY = np.zeros(WARP_SIZE, bool)
_NOBODY.flags.writeable = False


def take_space(ins: Decoded, spaces: tuple[str, ...] = _SPACES) -> str:
    """Consume the state space; none means a generic address, ``.shared`` is ``.shared::cta``."""
    space = ins.choice(spaces, "generic")
    return "shared::cta" if space == "shared" else space


def _finish(ins: Decoded, *semantics: str) -> tuple[bool, str]:
    """Consume the rest of the modifiers; returns whether the operation is relaxed, and its scope,
    without which it is that of the CTA."""
    order, scope = ins.choice(semantics), ins.choice(("cta", "cluster"))
    if (order is None) != (scope is None):
        raise ins.trap("operand", f"{ins.mnemonic} has a memory order and a scope, or neither")
    ins.required(("b64",))
    ins.finish_modifiers()
    return order == "relaxed", scope or "cta"


@instruction("mbarrier.init", section=_SECTION)
def build_init(ins: Decoded) -> Step:
    space = take_space(ins, _OWN_SPACES)
    ins.required(("b64",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    address, count = ins.address(0), ins.read(1, np.uint32)
    ins.bound_constant(1, 1, mbarrier.MAX_COUNT)

    def step(warp: Warp, mask: np.ndarray) -> None:
        addresses, counts = address(warp)[mask].tolist(), count(warp)[mask].tolist()
        made = dict.fromkeys(zip(addresses, counts, strict=True))
        for at, arrivals in made:
            _init(warp, at, space, arrivals)
        if len(made) < len(addresses):
            warp.launch.warn("repeated-init", _REPEATED.format("lanes"))

    return step


_REPEATED = (
    "several {} initialise the same mbarrier with the same count: the ISA leaves open what the"
    " second one does to a valid object (§9.7.13.15.9); let one thread do it"
)


def _init(warp: Warp, address: int, space: str, count: int) -> None:
    cta = warp.cta
    target, offset = _own(cta, address, space, "mbarrier.init")
    check_span(target, offset, _BYTES, _BYTES, "mbarrier.init")
    table = target.mbarriers
    live = table.get(offset)
    if live is None:
        if not table:
            target.at_exit(lambda: _check_transactions(target))
        table[offset] = Mbarrier(address, count, maker=warp)
    elif live.maker is not warp and live.is_as_made_with(count):
        warp.launch.warn("repeated-init", _REPEATED.format("warps"))
    else:
        raise Trap(
            "barrier-protocol",
            f"mbarrier.init of the live {live.describe()}; mbarrier.inval it first",
        )
    cta.launch.events.mbarrier_made(warp, target, offset, table[offset])


def _own(cta: Cta, address: int, space: str, what: str) -> tuple[Cta, int]:
    target, offset = locate(cta, address, space)
    if target is not cta:
        raise Trap("address-space", f"{what} must address the own CTA's shared memory, "
                                    f"got 0x{address:x} of cluster rank {target.rank}")  # fmt: skip
    return target, offset


def _check_transactions(cta: Cta) -> None:
    """Bytes that came unasked are an error at the exit. Those that are expected and never come keep
    a phase from its end for which nobody waits: PTX has no rule against that."""
    for barrier in cta.mbarriers.values():
        if barrier.tx > 0:
            cta.launch.warn(
                "open-bytes",
                f"a CTA exits while {barrier.describe()} expects bytes that nothing brings; whoever"
                f" waited for that phase would wait for ever",
            )
        if barrier.tx < 0:
            raise Trap(
                "barrier-protocol",
                f"the CTA exits while the transactions of {barrier.describe()} do not balance",
            )


@instruction("mbarrier.inval", section=_SECTION)
def build_inval(ins: Decoded) -> Step:
    space = take_space(ins, _OWN_SPACES)
    ins.required(("b64",))
    ins.finish_modifiers()
    ins.expect_operands(1)
    address = ins.address(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for value in address(warp)[mask].tolist():
            target, offset = _own(warp.cta, value, space, "mbarrier.inval")
            barrier = barrier_at(target, offset)
            warp.launch.events.mbarrier_ended(warp, target, offset, barrier)
            del target.mbarriers[offset]

    return step


Operation = Callable[[Mbarrier, int], int | None]


class _Performing:
    """``operation`` at the barrier and with the amount that operands name, 1 without one.

    order: what it passes on and its scope, see `apply`.
    """

    def __init__(self, ins: Decoded, space: str, at: int, operand: int | None,
                 operation: Operation, *order: str):  # fmt: skip
        self._ins, self._space, self._operation, self._order = ins, space, operation, order
        self._address = ins.lane_address(at)
        self._amount = ins.read_lane(operand, np.uint32) if operand is not None else None
        self._values = [address_of(ins, at)]
        self._values += [value_of(ins, operand, np.uint32)] if operand is not None else []

    def in_lane(self, warp: Warp, lane: int, address: int, value: int = 1) -> int:
        """Perform it for one lane; returns the result."""
        target, offset = locate(warp.cta, address, self._space)
        return apply(target, offset, lambda b: self._operation(b, value), *self._order) or 0

    def in_lanes(self, warp: Warp, mask: np.ndarray) -> np.ndarray:
        """The same in each lane, in order: uint64[32] of results."""
        results = np.zeros(WARP_SIZE, np.uint64)
        for lane in lanes_in(mask):
            value = (self._amount(warp, lane),) if self._amount is not None else ()
            results[lane] = self.in_lane(warp, lane, self._address(warp, lane), *value)
        return results

    def note_lane_form(self, call: Callable[..., int | None], target: int | None = None) -> None:
        """Say that one lane calls this."""
        note_lane_form(self._ins, call, *self._values, target=target)


@instruction("mbarrier.arrive", "mbarrier.arrive_drop", section=_SECTION)
def build_arrive(ins: Decoded) -> Step:
    space = take_space(ins)
    drop = ins.mnemonic.endswith("drop")
    expects, no_complete = ins.flag("expect_tx"), ins.flag("noComplete")
    relaxed, scope = _finish(ins, "release", "relaxed")
    ins.expect_operands(2, 3)
    if no_complete:
        _check_incomplete(ins, relaxed, scope, space)
    if space == "shared::cluster" and not ins.is_sink(0):
        ins.unmodelled("a result other than _ of an arrival on .shared::cluster")
    if expects and len(ins.operands) == 2:
        ins.unmodelled("an expect_tx without byte count")

    def operation(barrier: Mbarrier, value: int) -> int:
        count, expect = (1, value) if expects else (value, 0)
        return barrier.arrive(count, expect=expect, drop=drop, no_complete=no_complete)

    amount = 2 if len(ins.operands) == 3 else None
    if amount and not expects:
        ins.bound_constant(amount, 1, mbarrier.MAX_COUNT)
    passes_on = "relaxed" if relaxed else "released"
    performing = _Performing(ins, space, 1, amount, operation, passes_on, scope)
    write = ins.write(0, np.uint64)

    def step(warp: Warp, mask: np.ndarray) -> None:
        if not relaxed:
            warp.launch.events.released(warp)
        write(warp, mask, performing.in_lanes(warp, mask))

    def alone(warp: Warp, lane: int, *values: int) -> int:
        if not relaxed:
            warp.launch.events.released(warp)
        return performing.in_lane(warp, lane, *values)

    performing.note_lane_form(alone, ins.target(0, 64))
    return step


def _check_incomplete(ins: Decoded, relaxed: bool, scope: str, space: str) -> None:
    """mbarrier.arrive.noComplete{.release}{.cta}{.state}.b64 state, [addr], count."""
    if relaxed or scope != "cta" or space == "shared::cluster":
        raise ins.trap("operand", "an arrival with .noComplete is a .release of scope .cta at a"
                                  " barrier of the own CTA")  # fmt: skip
    if len(ins.operands) != 3:
        raise ins.trap("operand", "an arrival with .noComplete needs a count")


@instruction("mbarrier.expect_tx", "mbarrier.complete_tx", section=_SECTION)
def build_transaction(ins: Decoded) -> Step:
    space = take_space(ins)
    _finish(ins, "relaxed")
    ins.expect_operands(2)
    method = Mbarrier.expect_tx if ins.mnemonic.endswith("expect_tx") else Mbarrier.complete_tx
    performing = _Performing(ins, space, 0, 1, method, "nothing")
    performing.note_lane_form(performing.in_lane)

    def step(warp: Warp, mask: np.ndarray) -> None:
        performing.in_lanes(warp, mask)

    return step


@instruction("mbarrier.pending_count", section=_SECTION)
def build_pending_count(ins: Decoded) -> Step:
    ins.required(("b64",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    write, state = ins.write(0, np.uint32), ins.read(1, np.uint64)

    def step(warp: Warp, mask: np.ndarray) -> None:
        tokens = state(warp)
        counts = [mbarrier.pending_count(token) for token in tokens.tolist()]
        write(warp, mask, np.array(counts, np.uint32))

    return step


@instruction("mbarrier.test_wait", "mbarrier.try_wait", section=_SECTION)
def build_wait(ins: Decoded) -> Step:
    by_parity = ins.flag("parity")
    space = take_space(ins, _OWN_SPACES)
    relaxed, _ = _finish(ins, "acquire", "relaxed")
    has_hint = ins.mnemonic.endswith("try_wait")
    ins.expect_operands(*((3, 4) if has_hint else (3,)))
    write = ins.write(0, np.bool_)
    questions = _questions(ins, np.uint32 if by_parity else np.uint64)
    if by_parity:
        ins.bound_constant(2, 0, 1)
    if len(ins.operands) == 4:
        ins.read(3, np.uint32)

    def step(warp: Warp, mask: np.ndarray) -> Yield | None:
        asked = questions(warp, mask)
        if by_parity and max([value for _, _, value in asked]) > 1:
            asked = _by_bit_0(warp, asked)
        seen, refused = [], []
        for lanes, address, value in asked:
            barrier, done = _ask(warp, lanes, address, value, space, by_parity)
            seen += [(barrier, lanes)] if done else []
            refused += [] if done else [(lanes, address, value)]
        _tell_seen(warp, seen, relaxed)
        write(warp, mask, _answers(asked, refused))
        warp.launch.report.count_wait(not refused)
        if seen and not relaxed:
            warp.launch.events.acquired(warp)
        warp.launch.events.waited(asked[0][1] & OFFSET_MASK, not refused)
        return _not_yet(warp, refused[0], space, by_parity) if refused else None

    def alone(warp: Warp, lane: int, address: int, value: int) -> Yield | None:
        """The same of one lane."""
        question = (lane,), address, value
        if by_parity and value > 1:
            (question,) = _by_bit_0(warp, [question])
        barrier, done = _ask(warp, *question, space, by_parity)
        launch, events = warp.launch, warp.launch.events
        launch.report.count_wait(done)
        if done:
            events.phase_seen(warp, (lane,), barrier, relaxed)
            if not relaxed:
                events.acquired(warp)
        events.waited(address & OFFSET_MASK, done)
        return None if done else _not_yet(warp, question, space, by_parity)

    values = address_of(ins, 1), value_of(ins, 2, np.uint32 if by_parity else np.uint64)
    note_lane_form(ins, alone, *values, target=ins.target(0, 1), waits=True)
    return step


Question = tuple[Sequence[int], int, int]
"""What lanes ask together: an address, and a parity or a state."""


def _questions(ins: Decoded, dtype: type) -> Callable[[Warp, np.ndarray], list[Question]]:
    """A function (warp, mask) -> what the lanes ask, those that ask alike together."""
    addresses, values = ins.address(1), ins.read(2, dtype)
    address, value = ins.lane_address(1), ins.read_lane(2, dtype)

    def questions(warp: Warp, mask: np.ndarray) -> list[Question]:
        lanes = lanes_in(mask)
        first = lanes[0]
        if len(lanes) == 1:
            return [(lanes, address(warp, first), value(warp, first))]
        at, what = addresses(warp), values(warp)
        if _alike(at[mask]) and _alike(what[mask]):
            return [(lanes, at.item(first), what.item(first))]
        return [((lane,), at.item(lane), what.item(lane)) for lane in lanes]

    return questions


def _alike(values: np.ndarray) -> bool:
    """Whether all of them are the same."""
    return values.tobytes() == values[:1].tobytes() * len(values)


def _by_bit_0(warp: Warp, asked: list[Question]) -> list[Question]:
    """The parities as the hardware reads them; Triton passes -1 for a phase that it never had."""
    bad = next(value for _, _, value in asked if value > 1)
    signed = bad - (bad >> 31 << 32)
    warp.launch.warn(
        "parity",
        f"a wait asks for phase parity {signed}, which PTX defines"
        f" for 0 and 1 only; taken by its bit 0 as {bad & 1}, as the hardware does",
    )
    return [(lanes, address, value & 1) for lanes, address, value in asked]


def _ask(
    warp: Warp, lanes: Sequence[int], address: int, value: int, space: str, by_parity: bool
) -> tuple[Mbarrier, bool]:
    target, offset = _own(warp.cta, address, space, "a wait")
    barrier = barrier_at(target, offset)
    warp.launch.events.mbarrier_used(warp, barrier, "a wait")
    if not by_parity:
        return barrier, barrier.test(value)
    first = WARP_SIZE * warp.index
    return barrier, barrier.test_parity(value, *[first + lane for lane in lanes])


def _tell_seen(warp: Warp, seen: list[tuple[Mbarrier, Sequence[int]]], relaxed: bool) -> None:
    """Lanes have been told that a phase of each of the barriers is complete."""
    lanes_of: dict[Mbarrier, list[int]] = {}
    for barrier, lanes in seen:
        lanes_of.setdefault(barrier, []).extend(lanes)
    for barrier, lanes in lanes_of.items():
        warp.launch.events.phase_seen(warp, lanes, barrier, relaxed)


def _answers(asked: list[Question], refused: list[Question]) -> np.ndarray:
    """bool[32]: false in the lanes that were told no."""
    if not refused or len(refused) == len(asked):
        return _NOBODY if refused else FULL
    answers = np.ones(WARP_SIZE, bool)
    answers[[lane for lanes, _, _ in refused for lane in lanes]] = False
    return answers


def _not_yet(warp: Warp, question: Question, space: str, by_parity: bool) -> Yield:
    _, address, value = question
    target, offset = locate(warp.cta, address, space)
    wait = MbarrierWait(target, offset, barrier_at(target, offset), value, by_parity)
    return Yield("mbarrier", wait.describe, offset, wait)
