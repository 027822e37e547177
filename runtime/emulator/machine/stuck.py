"""The report about a launch in which nobody can go on: who waits for what, and for whom.

Plain data for JSON; `stuck_words` says the same in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import lane_text
from ..interface import Cta, Launch, Split, Warp
from ..ptx.lanes import lanes_to_int
from ..ptx.registry import Blocked
from .memory import Region
from .signals import Signal
from .spinning import Ask, Spinning
from .waits import MbarrierWait, wait_fields

Fields = dict[str, Any]

SIGNALLERS = (
    "mbarrier.arrive",
    "mbarrier.complete_tx",
    "tcgen05.commit",
    "cp.async.bulk",
    "cp.async.mbarrier",
    "st.async",
    "red.async",
    "clusterlaunchcontrol.try_cancel",
)
"""What can signal an mbarrier (PTX ISA §9.7.13.15.2: arrive-on and complete-tx)."""

WRITERS = ("st.", "atom.", "red.", "st.async", "red.async", "cp.async.bulk")
"""What can write what a loop asks for."""
MOST_ASKS = 3
"""Places that a line names of those that a loop reads."""
_NO_WAY_OUT = "runs in a loop that reads no memory and never ends"


def stuck_report(launch: Launch, spinning: Spinning | None = None) -> Fields:
    """`agents`: every lane set that is alive, with `waits_for` (null if it can run) and
    `expected_from`, who should end the wait; `operations`: what is under way. spinning: of those
    that can run it has shown that they repeat themselves."""
    return {
        "agents": [_agent(warp, split, spinning) for warp, split in _splits(launch)],
        "operations": [_operation(launch, op) for op in launch.engines.outstanding],
    }


def _splits(launch: Launch) -> Iterator[tuple[Warp, Split]]:
    for cta in launch.scheduler.ctas:
        for warp in cta.warps:
            for split in warp.splits:
                yield warp, split


def spins_at(spinning: Spinning, warp: Warp, split: Split) -> int:
    """The pc of the first instruction by which lanes that can run ask for memory, else theirs."""
    asks = [] if split.reason else spinning.asks(warp)
    return asks[0][0] if asks else warp.stands_at(split)


def _agent(warp: Warp, split: Split, spinning: Spinning | None) -> Fields:
    waits = split.reason
    if waits is None and spinning is not None:
        return _spinner(warp, split, spinning)
    return {
        **_place(warp, split, warp.stands_at(split)),
        "waits_for": wait_fields(waits) if waits else None,
        "expected_from": _expected_from(warp, split, waits) if waits else [],
        "last_signal": _last_signal(waits),
    }


def _place(warp: Warp, split: Split, pc: int) -> Fields:
    """Who it is, and the line of PTX at `pc`."""
    source = warp.program.source[pc]
    return {
        "cta": list(warp.cta.index),
        "warp": warp.index,
        "role": warp.launch.names.roles.get(warp.index),
        "lanes": lane_text(lanes_to_int(split.mask)),
        "ptx_line": source.line,
        "ptx_text": source.text,
    }


def _spinner(warp: Warp, split: Split, spinning: Spinning) -> Fields:
    """Lanes that ask memory again and again."""
    asks = spinning.asks(warp)
    return {
        **_place(warp, split, spins_at(spinning, warp, split)),
        "waits_for": _asked(asks) if asks else {"kind": "loop", "text": _NO_WAY_OUT},
        "expected_from": list(_never_run(warp.launch, WRITERS)) if asks else [],
        "last_signal": None,
    }


def _asked(asks: list[Ask]) -> Fields:
    """The memory that a loop reads, of which the fields name the first place."""
    _, region, at, size = asks[0]
    texts = [_ask_text(region, at, size) for _, region, at, size in asks[:MOST_ASKS]]
    return {
        "kind": "memory",
        "memory": region.name,
        "byte": at,
        "bytes": size,
        "value": _value(region, at, size),
        "text": f"asks again and again for {', and for '.join(dict.fromkeys(texts))}",
    }


def _ask_text(region: Region, at: int, size: int) -> str:
    place = f"0x{at:x}" if region.space == "shared" else str(at)
    where = f"{size} bytes at byte {place} of {region.name}"
    return f"{where}, which stay {_value(region, at, size)}"


def _value(region: Region, at: int, size: int) -> int:
    return int.from_bytes(region.data[at : at + min(size, 8)].tobytes(), "little")


def _operation(launch: Launch, op: Any) -> Fields:
    source = launch.program.source[op.signal.pc] if op.signal else None
    return {
        "engine": op.agent or "engine",
        "what": op.name,
        "cta": list(op.signal.cta) if op.signal else None,
        "warp": op.signal.warp if op.signal else None,
        "ptx_line": source.line if source else None,
        "waits_for_operations": op.waits_for,
    }


# -- who should have come --------------------------------------------------------------------


def _expected_from(warp: Warp, split: Split, waits: Blocked) -> list[Fields]:
    subject = waits.subject
    if waits.kind == "convergence":
        return [_lanes_elsewhere(warp, other) for other in warp.splits if other is not split]
    if subject is None:
        return []
    if isinstance(subject, MbarrierWait):
        return _signallers(warp.launch, subject)
    return [_missing_warp(other) for other in _absent(warp, subject)]


def _lanes_elsewhere(warp: Warp, split: Split) -> Fields:
    waits = "waits" if split.reason else "can run"
    return {
        **_warp_fields(warp.launch, warp.cta.index, warp.index),
        "agent": "thread",
        "times": 0,
        "lanes": lane_text(lanes_to_int(split.mask)),
        "state": f"{waits} at ptx:{warp.line_of(split)}",
    }


def _absent(warp: Warp, barrier: Any) -> list[Warp]:
    """Warps with live threads that do not stand at the barrier that `warp` stands at."""
    ctas = getattr(barrier, "ctas", (warp.cta,))
    warps = [other for cta in ctas for other in cta.warps if other.live]
    return [other for other in warps if not any(_is_at(s, barrier) for s in other.splits)]


def _is_at(split: Split, barrier: Any) -> bool:
    return split.reason is not None and split.reason.subject is barrier


def _missing_warp(warp: Warp) -> Fields:
    return {**_warp_fields(warp.launch, warp.cta.index, warp.index), "agent": "thread", "times": 0}


def _signallers(launch: Launch, wait: MbarrierWait) -> list[Fields]:
    """Who has signalled this barrier; if nobody has, who signalled the one at the same offset of
    other CTAs, or else the instructions that can and have never run."""
    found = dict(wait.barrier.signals)
    if not found:
        for cta in launch.scheduler.ctas:
            other = cta.mbarriers.get(wait.offset)
            found |= other.signals if other else {}
    if not found:
        return list(_never_run(launch))
    return [_signal(launch, signal, times) for signal, times in found.items()]


def _signal(launch: Launch, signal: Signal, times: int) -> Fields:
    source = launch.program.source[signal.pc]
    return {
        **_warp_fields(launch, signal.cta, signal.warp),
        "agent": signal.agent,
        "ptx_line": source.line,
        "ptx_text": source.text,
        "times": times,
    }


def _never_run(launch: Launch, which: tuple[str, ...] = SIGNALLERS) -> Iterator[Fields]:
    for count, source in zip(launch.executed(), launch.program.source, strict=True):
        if not count and source.opcode.startswith(which):
            yield {
                "agent": "nobody yet",
                "ptx_line": source.line,
                "ptx_text": source.text,
                "times": 0,
            }


def _warp_fields(launch: Launch, cta: tuple[int, int, int], warp: int) -> Fields:
    return {
        "cta": list(cta),
        "warp": warp,
        "role": launch.names.roles.get(warp),
        "state": _state(launch, cta, warp),
    }


def _state(launch: Launch, cta: tuple[int, int, int], warp: int) -> str:
    found: list[Cta] = [each for each in launch.scheduler.ctas if each.index == cta]
    splits = found[0].warps[warp].splits if found else []
    if not splits:
        return "has exited"
    reasons = [split.reason for split in splits if split.reason is not None]
    if len(reasons) < len(splits):
        return "can run"
    lines = {found[0].warps[warp].line_of(split) for split in splits}
    return "waits at " + ", ".join(f"ptx:{line}" for line in sorted(lines))


def _last_signal(waits: Blocked | None) -> Fields | None:
    subject = waits.subject if waits else None
    if not isinstance(subject, MbarrierWait) or subject.barrier.last_signal is None:
        return None
    last = subject.barrier.last_signal
    return _signal(subject.cta.launch, last, subject.barrier.signals[last])
