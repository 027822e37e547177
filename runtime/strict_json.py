"""Strict parsing of untrusted JSON: UTF-8, unique keys, bounded depth, portable numbers."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

MOST_LEVELS = 64
LARGEST = 2**64 - 1


def parse_json(content: bytes) -> Any:
    """The value that `content` is. Raises ValueError, which says why it is none.

    NaN and the infinities, which JSON lacks, are taken: `is_finite` finds them.
    """
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError(f"more than {MOST_LEVELS} levels") from None
    for each, level in _walk(value):
        if level > MOST_LEVELS:
            raise ValueError(f"more than {MOST_LEVELS} levels")
        if isinstance(each, int) and not -LARGEST // 2 - 1 <= each <= LARGEST:
            raise ValueError("an integer of more than 64 bits")
        if isinstance(each, str):
            each.encode()  # half of a surrogate pair is a UnicodeEncodeError, a ValueError
    return value


def is_finite(value: Any) -> bool:
    """Whether no number in a value of JSON is NaN or infinite."""
    return all(math.isfinite(each) for each, _ in _walk(value) if isinstance(each, float))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:60]!r} twice")
    return found


def _walk(value: Any) -> Iterator[tuple[Any, int]]:
    """Every value and key in a value of JSON, with its level; without recursion."""
    rest = [(value, 0)]
    while rest:
        each, level = rest.pop()
        yield each, level
        if isinstance(each, dict):
            rest += [(part, level + 1) for part in (*each, *each.values())]
        elif isinstance(each, list):
            rest += [(part, level + 1) for part in each]
