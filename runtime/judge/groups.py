"""Expected results of a grouped product: each group's rows times its own matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..bundles.manifest import operands, output, rows_of, second_b
from .intervals import Interval

Values = Mapping[str, np.ndarray]
A_SCALES, B_SCALES = "a_scales", "b_scales"
ATOM_ROWS = 128


def group_ends(offsets: np.ndarray, rows: int) -> list[int]:
    """Where each group ends: an offset out of order or beyond the rows counts as the nearest."""
    return np.minimum(np.maximum.accumulate(np.maximum(offsets, 0)), rows).astype(int).tolist()


def rows_in_atoms(offsets: np.ndarray, rows: int) -> np.ndarray:
    """For each row that of its scales, where those of each group begin with 128 rows of their own
    (torch 2.13, scaled_grouped_mm); 0 of rows that no group has."""
    at, begin = np.zeros(rows, int), 0
    first = 0
    for end in group_ends(offsets, rows):
        at[begin:end] = first + np.arange(end - begin)
        first += -(-(end - begin) // ATOM_ROWS) * ATOM_ROWS
        begin = end
    return at


def gathered(manifest: Mapping[str, Any], values: Values) -> dict[str, np.ndarray]:
    """The values with the rows of a that their numbers say, each as the nearest that a has."""
    numbers, (a, _) = rows_of(manifest), operands(manifest)
    if numbers is None:
        return dict(values)
    others = {name: value for name, value in values.items() if name != numbers["name"]}
    whole = others[a["name"]]
    at = np.clip(values[numbers["name"]], 0, len(whole) - 1).astype(int)
    return {**others, a["name"]: whole[at]}


def grouped_result(
    manifest: Mapping[str, Any],
    epilogue: Mapping[str, Any],
    values: Values,
    offsets: np.ndarray,
    result_of: Callable[[Values], Interval],
) -> Interval:
    """The results of all groups; rows past the last one may be anything.

    result_of: that of one group, from the values that it has.
    """
    if len(output(manifest)["shape"]) == 3:
        return _of_depth(manifest, epilogue, values, offsets, result_of)
    rows, columns = output(manifest)["shape"]
    bounds = [0, *group_ends(offsets, rows)]
    parts = [_anything(rows - bounds[-1], columns)]
    for group, (begin, end) in reversed(list(enumerate(pairwise(bounds)))):
        if begin < end:
            own = _values_of(manifest, epilogue, values, group, slice(begin, end))
            shape = end - begin, columns
            part = result_of(own).reshaped(lambda each, shape=shape: np.broadcast_to(each, shape))
            parts.insert(0, part)
    return _concatenated(parts)


def parts_of_depth(offsets: np.ndarray, depth: int) -> list[slice]:
    """What each group has of K: from the offset before it to its own, both within K."""
    ends = np.clip(offsets, 0, depth).astype(int).tolist()
    return [slice(begin, max(begin, end)) for begin, end in pairwise([0, *ends])]


def _of_depth(
    manifest: Mapping[str, Any],
    epilogue: Mapping[str, Any],
    values: Values,
    offsets: np.ndarray,
    result_of: Callable[[Values], Interval],
) -> Interval:
    """The results of groups of K, one on the other: each of its own part of a and b."""
    a, b = (operand["name"] for operand in operands(manifest))
    groups, *shape = output(manifest)["shape"]
    arguments = [each for each in epilogue["arguments"] if each["tensor"] is not None]
    by_group = [each["tensor"] for each in arguments if each["axes"][:1] == ["b"]]
    parts = []
    for group, part in enumerate(parts_of_depth(offsets, values[a].shape[-1])):
        own = {name: values[name][..., part] for name in (a, b)}
        own |= {name: values[name][group] for name in by_group}
        result = result_of({**values, **own})
        parts.append(result.reshaped(lambda each: np.broadcast_to(each, shape)))
    whole = _concatenated(parts)
    return whole.reshaped(lambda each: each.reshape(groups, *shape))


def _values_of(
    manifest: Mapping[str, Any],
    epilogue: Mapping[str, Any],
    values: Values,
    group: int,
    rows: slice,
) -> Values:
    """What a group has of every input."""
    a, b = (operand["name"] for operand in operands(manifest))
    arguments = [each for each in epilogue["arguments"] if each["tensor"] is not None]
    by_row = {a} | {each["tensor"] for each in arguments if each["axes"][:1] == ["m"]}
    by_group = {b} | {each["tensor"] for each in arguments if each["axes"][:1] == ["b"]}
    by_group |= {each["name"] for each in (second_b(manifest),) if each}
    own = {name: value[rows] for name, value in values.items() if name in by_row}
    if "blockwise" in manifest:  # blocks of K by rows; those of a block-scaled MMA are a's already
        own[A_SCALES] = values[A_SCALES][:, rows]
        by_group |= {B_SCALES}
    return {**values, **own, **{name: values[name][group] for name in by_group}}


def _anything(rows: int, columns: int) -> Interval:
    end = np.full((rows, columns), np.inf)
    return Interval(-end, np.zeros_like(end), end, np.ones(end.shape, bool))


def _concatenated(parts: Sequence[Interval]) -> Interval:
    fields = ("low", "middle", "high", "nan")
    return Interval(*(np.concatenate([getattr(each, name) for each in parts]) for name in fields))
