"""The report of `stuck` in words: one line that names who waits and for whom, then all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .shared_access import OFFSET_MASK
from .stuck import Fields

BARRIERS = ("mbarrier", "barrier", "cluster barrier")
MEMORY = "memory"
SPINS = (MEMORY, "loop")
REPORT_LINES = 48
"""Lines of each part of the report; the data has all of them."""
NOTHING_UNDER_WAY = "no asynchronous operation is outstanding"
_EXITED = "has exited"
_ADDRESS = re.compile(r"0x[0-9a-f]{1,8}\b")
_CTA = re.compile(r"cta \((\d+),(\d+),(\d+)\)")


def first_waiter(report: Fields) -> int:
    """The number of the agent that explains the report best: the first that spins, else
    the first of those whose signaller has exited or has never come, else the first that waits at a
    barrier, else 0."""
    agents = list(enumerate(report["agents"]))
    waiting = [n for n, agent in agents if _at_barrier(agent)]
    lost = [n for n in waiting if _is_lost(_signaller(report["agents"][n]))]
    spins = [n for n, agent in agents if _spins(agent)]
    return next(iter(spins or lost or waiting), 0)


def headline(report: Fields) -> str:
    """Who waits for which barrier, what is missing, and who should have come."""
    agents = report["agents"]
    agent = agents[first_waiter(report)] if agents else None
    if agent is not None and _spins(agent):
        return f"{_who(agent)} {agent['waits_for']['text']}; "
    if agent is None or not _at_barrier(agent):
        return ""
    waits = agent["waits_for"]
    return (
        f"{_who(agent)} waits for {_barrier_title(waits)}, where {_missing(waits)},"
        f" {_from_whom(_signaller(agent))}; "
    )


def _at_barrier(agent: Fields) -> bool:
    return bool(agent["waits_for"]) and agent["waits_for"]["kind"] in BARRIERS


def _spins(agent: Fields) -> bool:
    return bool(agent["waits_for"]) and agent["waits_for"]["kind"] in SPINS


def _signaller(agent: Fields) -> Fields | None:
    """An agent other than the waiter that should end the wait and cannot come any more."""
    me = agent["cta"], agent["warp"]
    others = [each for each in agent["expected_from"] if (each.get("cta"), each.get("warp")) != me]
    lost = [each for each in others if _is_lost(each)]
    return next(iter(lost or others or agent["expected_from"]), None)


def _is_lost(signaller: Fields | None) -> bool:
    return signaller is None or signaller.get("state", _EXITED) == _EXITED


def _from_whom(signaller: Fields | None) -> str:
    if signaller is None:
        return "and nobody is there to end the wait"
    if "warp" not in signaller:
        return f"which nobody has signalled: ptx:{signaller['ptx_line']} has never run"
    at = f" (ptx:{signaller['ptx_line']})" if "ptx_line" in signaller else ""
    return f"expected from {_who(signaller)}{at}, which {signaller['state']}"


def stuck_lines(report: Fields) -> list[str]:
    """One line an agent, then what is known of each barrier they wait for, then operations."""
    agents = _counted([_agent_line(agent)] for agent in report["agents"])
    operations = [
        f"{op['engine']}: {op['what']} (issued at ptx:{op['ptx_line']})"
        for op in report["operations"]
    ]
    barriers = _counted(_barrier_lines(report))
    parts = (agents, barriers, operations or [NOTHING_UNDER_WAY])
    return [f"  {line}" for part in parts for line in _shortened(part)]


def _counted(parts: Iterable[list[str]]) -> list[str]:
    """The lines of each part; parts that tell the same of other CTAs are counted behind it."""
    found: dict[str, list[list[str]]] = {}
    for lines in parts:
        found.setdefault(_as_one_cta(lines), []).append(lines)
    return [line for same in found.values() for line in _with_count(same)]


def _as_one_cta(lines: list[str]) -> str:
    """The lines with CTAs numbered in the order in which they are named, and shared addresses
    without the rank."""
    names: dict[str, str] = {}
    text = _CTA.sub(lambda found: names.setdefault(found[0], f"cta {len(names)}"), "\n".join(lines))
    return _ADDRESS.sub(lambda found: hex(int(found[0], 16) & OFFSET_MASK), text)


def _with_count(same: list[list[str]]) -> list[str]:
    first, *rest = same[0]
    others = len(same) - 1
    return [f"{first} (and {others} more alike)" if others else first, *rest]


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= REPORT_LINES:
        return lines
    return [*lines[:REPORT_LINES], f"and {len(lines) - REPORT_LINES} more"]


def _agent_line(agent: Fields) -> str:
    waits = agent["waits_for"] or {"text": "can run"}
    name = f"{waits['name']}: " if waits.get("name") else ""
    return (
        f"{_who(agent)} lanes {agent['lanes']} at ptx:{agent['ptx_line']}"
        f" `{agent['ptx_text']}`: {name}{waits['text']}"
    )


def _who(fields: Fields) -> str:
    x, y, z = fields["cta"]
    role = f" ({fields['role']})" if fields.get("role") else ""
    return f"cta ({x},{y},{z}) warp {fields['warp']}{role}"


def _barrier_lines(report: Fields) -> Iterator[list[str]]:
    seen = set()
    for agent in report["agents"]:
        waits = agent["waits_for"]
        if not waits or waits["kind"] not in (*BARRIERS, MEMORY) or not agent["expected_from"]:
            continue
        place = waits.get("address"), waits.get("number"), waits.get("byte")
        key = waits["kind"], *place, *agent["cta"]
        if key not in seen:
            seen.add(key)
            yield list(_about_barrier(waits, agent))


def _about_barrier(waits: Fields, agent: Fields) -> Iterator[str]:
    if waits["kind"] == MEMORY:
        yield f"byte {waits['byte']} of {waits['memory']}:"
    else:
        yield f"{_barrier_title(waits)}: {_missing(waits)}"
    if agent["last_signal"]:
        yield f"  its last signal was by {_signal_text(agent['last_signal'])}"
    for one in _shortened([_signal_text(each) for each in agent["expected_from"]]):
        yield f"  expected: {one}"


def _barrier_title(waits: Fields) -> str:
    if waits["kind"] != "mbarrier":
        return f"barrier {waits['number']}" if "number" in waits else waits["kind"]
    name = f" {waits['name']}" if waits["name"] else ""
    return f"mbarrier{name} at {waits['address']} of cta ({','.join(map(str, waits['cta']))})"


def _missing(waits: Fields) -> str:
    if waits["kind"] != "mbarrier":
        return f"{waits['threads_missing']} of {waits['threads_expected']} threads are missing"
    return (
        f"{waits['arrivals_missing']} of {waits['arrivals_expected']} arrivals and"
        f" {waits['bytes_missing']} bytes are missing"
    )


def _signal_text(fields: Fields) -> str:
    at = f" ptx:{fields['ptx_line']} `{fields['ptx_text']}`" if "ptx_line" in fields else ""
    if "warp" not in fields:
        return f"perhaps the instruction at{at}, which has never run"
    by = "" if fields["agent"] == "thread" else f"{fields['agent']}, issued by "
    times = f" ({fields['times']} so far)" if fields["times"] else ""
    return f"{by}{_who(fields)}{at}{times}, which {fields['state']}"
