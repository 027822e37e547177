"""Prints IR in a short form that MLIR can parse; used by every tool.

- Long types of our dialects are written once, as aliases at the top (`!ring = !pipe.ring<…>`), and
  so is the struct of registers that holds a thread's sums. An alias is named after the values of
  its type where one name fits all of them (`!a_map`), so a type keeps its alias from pass to pass.
- Values are named after what they are (`%ring`, `%slot`, `%a_tile`, `%k`), parameters and mbarriers
  of an `sm.kernel` after its launch (`%operands_full`).
- A region of a line or two stands on the line of its op.

A lowered kernel keeps MLIR's own names: nobody reads its thousand lines by them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from ..dialects.mlir import ir
from .value_names import SEVERAL, name_values, pipe_name

LOWERED = "gpu.module"
LEAST_CHARACTERS = 16
LINE_CHARACTERS = 200
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_TYPE = re.compile(r"!(tile|pipe|sm|llvm(?=\.struct))\.(\w+)<")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]')
_SEVERAL = re.compile(rf"%({'|'.join(SEVERAL)})((?:_\d+)?)(?::\d|#(\d))")
_RESULT = re.compile(r"^ *%(\w+?)(?:_\d+)? = .* -> (!.*>)$", re.MULTILINE)
STAGING_TILE = "staging_tile"
ALIASES = {"smem": "tile", "struct": "registers"}


def short_text(module: ir.Module) -> str:
    """The module's text, which parses back to the same module."""
    tops = [op.operation.name for op in module.body.operations]
    if LOWERED in tops:
        return str(module)
    named = name_values(module.operation)
    return shortened(named.get_asm(use_name_loc_as_prefix=True))


def shortened(text: str) -> str:
    """The text of a module, whose values have names, with aliases and short regions on a line."""
    return _joined(_with_aliases(_with_names(text)))


def _with_names(text: str) -> str:
    """Each result of a place by a name of its own, `%ij#0` as `%i`, where these names are free."""
    taken = {stem for stem, names in SEVERAL.items() if _are_taken(names, text)}

    def named(match: re.Match[str]) -> str:
        stem, number, which = match.groups()
        if stem in taken:
            return match[0]
        names = [f"%{name}{number}" for name in SEVERAL[stem]]
        return ", ".join(names) if which is None else names[int(which)]

    return _outside_strings(text, lambda part: _SEVERAL.sub(named, part))


def _are_taken(names: tuple[str, ...], text: str) -> bool:
    return re.search(rf"%({'|'.join(names)})(_\d+)?\b", text) is not None


def _joined(text: str) -> str:
    """What is computed on one element, a block without regions, on the line of its op."""
    lines, shown, at = text.splitlines(), [], 0
    while at < len(lines):
        end = _end_of_region(lines, at)
        whole = _on_one_line(lines[at : end + 1])
        if end > at and len(whole) <= LINE_CHARACTERS and "//" not in whole:
            shown.append(whole)
        else:
            end = at
            shown.append(lines[at])
        at = end + 1
    return "\n".join(shown) + "\n"


def _end_of_region(lines: list[str], at: int) -> int:
    """The line that ends the block that begins after a line; that line itself where none does."""
    if not lines[at].endswith("({") or not lines[at + 1].lstrip().startswith("^bb0("):
        return at
    for number in range(at + 2, len(lines)):
        if lines[number].lstrip().startswith("})"):
            return number
        if lines[number].endswith("{"):
            break
    return at


def _on_one_line(lines: list[str]) -> str:
    return " ".join([lines[0], *(line.strip() for line in lines[1:])])


def _with_aliases(text: str) -> str:
    """The text with an alias for each long type of ours, declared at the top."""
    aliases = _Aliases(text)
    body = aliases.replaced(text)
    return "".join(f"{alias} = {type_}\n" for type_, alias in aliases.names.items()) + body


class _Aliases:
    """The aliases of a text: `names` has them by their types, in whose text inner ones stand."""

    def __init__(self, text: str) -> None:
        self.names: dict[str, str] = {}
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        for name, type_ in _RESULT.findall(text):
            self._values[type_].add(name)
        for type_ in {text[start:end] for start, end in _outer_types(text)}:
            if type_.startswith("!pipe.") and pipe_name("tile", type_) == STAGING_TILE:
                held = type_.partition("<")[2]
                for start, end in _outer_types(held):
                    self._values[held[start:end]].add(STAGING_TILE)

    def replaced(self, text: str) -> str:
        """The text with aliases for its outermost types."""
        parts, at = [], 0
        for start, end in _outer_types(text):
            parts += [text[at:start], self._alias(text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def _alias(self, type_: str) -> str:
        kind = _TYPE.match(type_)
        assert kind is not None
        inner = type_[: kind.end()] + self.replaced(type_[kind.end() :])
        if len(inner) < LEAST_CHARACTERS:
            return inner
        if inner not in self.names:
            stem = self._stem(type_, ALIASES.get(kind[2], kind[2]))
            self.names[inner] = _fresh(f"!{stem}", set(self.names.values()))
        return self.names[inner]

    def _stem(self, type_: str, kind: str) -> str:
        """Rings and slots are called after what they hold, maps and tiles after their values if
        these have one name (`a_map`)."""
        if kind in ("ring", "slot"):
            return pipe_name(kind, type_)
        names = {name for name in self._values[type_] if name.endswith(f"_{kind}")}
        return names.pop() if len(names) == 1 else kind


def _outer_types(text: str) -> Iterator[tuple[int, int]]:
    """Where types of ours stand that are no part of another, and not in a string."""
    at = 0
    pattern = re.compile(f"{_STRING.pattern}|{_TYPE.pattern}")
    while match := pattern.search(text, at):
        at = match.end()
        if match[0].startswith("!"):
            at = _end(text, match.end())
            yield match.start(), at


def _end(text: str, at: int) -> int:
    """Where the bracket is closed that was opened just before."""
    depth = 1
    for token in _TOKEN.finditer(text, at):
        depth += {"<": 1, ">": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def _fresh(stem: str, taken: set[str]) -> str:
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}{number}"
    return name


def _outside_strings(text: str, change: Callable[[str], str]) -> str:
    parts, at = [], 0
    for match in _STRING.finditer(text):
        parts += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*parts, change(text[at:])])
