"""What a rung of a ladder adds to the previous one: passes, options, and the diff of the IR.

The presets of a ladder have one name before their number, as v1a to v6, and stand in its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..command_line.ir_diff import ir_diff

if TYPE_CHECKING:
    from ...compiler.pipeline import PassCall
    from ...compiler.spec import MatmulSpec

_LADDER = re.compile(r"[a-z]*")
_NUMBER = re.compile(r"(\d+)([a-z]?)$")


def ladder_of(name: str) -> str:
    """The name of the ladder that a preset is a rung of: v of v2a, kernel of kernel2."""
    return _LADDER.match(name)[0]  # type: ignore[index]


def rungs_of(ladder: str) -> list[str]:
    """The presets of a ladder, of any chip: by their numbers, else as they stand."""
    from ...compiler.pipeline import all_presets

    return sorted((each for each in all_presets() if ladder_of(each) == ladder), key=_number)


def preset_names(text: str | None, target: str) -> list[str]:
    """The presets of a target that a text names, all without a text; in the house's order."""
    from ...compiler.pipeline import all_presets, presets_of
    from ...dialects.errors import OptionError

    presets = all_presets()
    asked = list(presets_of(target)) if text is None else text.split(",")
    names = [
        rung for each in asked for rung in ([each] if each in presets else rungs_of(each) or [each])
    ]
    for name in names:
        if name not in presets:
            known = ", ".join(presets)
            raise OptionError(f"preset: unknown name {name!r}; use one of {known}")
    return names


def whole_ladders(names: list[str]) -> list[str]:
    """Every rung of the ladders that the presets are of."""
    return [rung for ladder in dict.fromkeys(map(ladder_of, names)) for rung in rungs_of(ladder)]


def rung_before(name: str) -> str | None:
    """The preset that a rung goes on from, None for the first of a ladder."""
    rungs = rungs_of(ladder_of(name))
    at = rungs.index(name)
    return rungs[at - 1] if at else None


def _number(name: str) -> tuple[int, str]:
    """1 and b of v1b; 0 and nothing without a number."""
    found = _NUMBER.search(name)
    return (int(found[1]), found[2]) if found else (0, "")


def changed_calls(name: str) -> list[PassCall]:
    """The passes that the rung before lacks or gives other options, in the rung's order."""
    calls, before = _calls(name), _calls(rung_before(name))
    return [call for call in calls.values() if before.get(call.name) != call]


def changes(name: str) -> str:
    """In words: passes that are new, options that are others, passes that are gone."""
    before = _calls(rung_before(name))
    found = [_change(call, before.get(call.name)) for call in changed_calls(name)]
    gone = [f"no {each}" for each in before if each not in _calls(name)]
    return ", ".join([*found, *gone])


def _calls(name: str | None) -> dict[str, PassCall]:
    from ...compiler.pipeline import all_presets, parse_pipeline

    if name is None:
        return {}
    return {call.name: call for call in parse_pipeline(all_presets()[name])}


def _change(call: PassCall, before: PassCall | None) -> str:
    if before is None:
        return f"+{call}" if call.options else f"+{call.name}"
    other = [f"{key}={value}" for key, value in call.options if (key, value) not in before.options]
    dropped = {key for key, _ in before.options} - {key for key, _ in call.options}
    return f"{call.name}{{{' '.join([*other, *(f'no {key}' for key in sorted(dropped))])}}}"


def diffs(name: str, spec: MatmulSpec, target: str) -> Iterator[str]:
    """What each pass that the rung adds, or gives other options, changes in its IR."""
    from ...compiler.driver import compile_matmul, imported_ir

    texts = [imported_ir(spec, target)]
    names: list[str] = []

    def observe(event) -> None:
        names.append(event.name)
        texts.append(event.ir())

    compile_matmul(spec, target=target, preset=name, observer=observe, until="mlir")
    wanted = {call.name for call in changed_calls(name)}
    for at, each in enumerate(names):
        if each in wanted:
            yield ir_diff(texts[at], texts[at + 1], f"{each}, {name}")
