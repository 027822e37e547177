"""Which functions of a module call themselves."""

from __future__ import annotations

from collections.abc import Mapping


def find_recursive(calls: Mapping[str, set[str]]) -> str | None:
    """A function that reaches itself, None if there is none; `calls`: the callees of each one.

    Functions that call none of those left are taken away, as long as there are any. Of what stays
    each calls another one that stays, so any way through it comes back.
    """
    left = {name: len(callees) for name, callees in calls.items()}
    callers: dict[str, list[str]] = {name: [] for name in calls}
    for name, callees in calls.items():
        for callee in callees:
            callers[callee].append(name)
    leaves = [name for name, count in left.items() if not count]
    while leaves:
        for caller in callers[leaves.pop()]:
            left[caller] -= 1
            leaves += [] if left[caller] else [caller]
    cyclic = {name for name, count in left.items() if count}
    return _in_cycle(calls, cyclic) if cyclic else None


def _in_cycle(calls: Mapping[str, set[str]], cyclic: set[str]) -> str:
    seen, name = set(), min(cyclic)
    while name not in seen:
        seen.add(name)
        name = min(calls[name] & cyclic)
    return name
