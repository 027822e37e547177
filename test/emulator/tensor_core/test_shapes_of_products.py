"""Every shape and type of tcgen05.mma against tables of the PTX ISA, written down anew.

Table 39 of §9.7.16.2.1 (shapes) and Tables 42 to 44 of §9.7.16.4.2 (instruction descriptors), for
sm_100a: K = 96 is left out.
"""

from __future__ import annotations

import itertools

import pytest

from tilewright.runtime.emulator import Trap
from tilewright.runtime.emulator.tensor.block_scale import decode_scaled
from tilewright.runtime.emulator.tensor.descriptor import decode_instruction

PLAIN = {
    "f16": (1 << 4, 1, 1),
    "tf32": (1 << 4, 2, 2),
    "f8f6f4": (1 << 4, 0, 1),
    "i8": (2 << 4, 1, 0),
}
"""D and the codes of A and B with which shapes are tried."""
SCALED = {"mxf8f6f4": ("1X", 0, 1), "mxf4": ("2X", 1, 1), "mxf4nvf4": ("4X", 1, 1)}
K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
ROWS, COLUMNS = range(0, 512, 16), range(0, 512, 8)
UNMODELLED = {(1, False, 64), (2, False, 128), (1, True, 32), (1, True, 64)}
"""CTAs, .ws and M of sparse products whose metadata PTX has as figures alone."""


def columns(kind: str, group: int, stationary: bool, sparse: bool) -> set[int]:
    if stationary:
        return {64, 128} if sparse else {64, 128, 256}
    if kind == "i8":
        return set(range(32, 257, 32)) if group == 2 else {8, 16, 24, 32, *range(48, 257, 16)}
    return set(range(8 * group, 257, 8 * group))


def shapes(kind: str, group: int, stationary: bool, sparse: bool) -> set[tuple[int, int]]:
    """Table 39."""
    if stationary:
        rows = {32, 64, 128}
    elif kind in SCALED:
        rows = {128} if group == 1 else {256} if sparse else {128, 256}
    else:
        rows = {64 * group, 128 * group}
    return set(itertools.product(rows, columns(kind, group, stationary, sparse)))


def said(word: int, kind: str, group: int, stationary: bool, sparse: bool) -> str | None:
    """The category of the refusal of a descriptor."""
    try:
        if kind in SCALED:
            made, _ = decode_scaled(word, kind, SCALED[kind][0], group, sparse)
        else:
            made = decode_instruction(word, kind, group, stationary, sparse)
    except Trap as trap:
        assert trap.category in ("descriptor", "unmodelled"), trap
        return trap.category
    assert made.k == K[kind] * (2 if sparse else 1)
    return None


FORMS = [
    (kind, group, stationary, sparse)
    for kind in (*PLAIN, *SCALED)
    for group, stationary in ((1, False), (2, False), (1, True))
    for sparse in (False, True)
    if not (stationary and kind in SCALED)
]


def word_of(kind: str, m: int, n: int, sparse: bool) -> int:
    if kind in SCALED:
        _, a, b = SCALED[kind]
        return sparse << 2 | a << 7 | b << 10 | n >> 3 << 17 | 1 << 23 | m >> 7 << 27
    d, a, b = PLAIN[kind]
    return sparse << 2 | d | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_product_has_the_shapes_of_the_table_and_no_others(form):
    kind, group, stationary, sparse = form
    legal, tried = shapes(*form), itertools.product(ROWS, COLUMNS)
    for m, n in tried:
        if kind in SCALED and m % 128:
            continue  # the field has no such values
        found = said(word_of(kind, m, n, sparse), *form)
        expected = None if (m, n) in legal else "descriptor"
        figure = sparse and kind not in SCALED and (group, stationary, m) in UNMODELLED
        if figure and found == "unmodelled":
            continue
        assert found == expected, (m, n)


TYPES = {
    "f16": {(0, 0, 0)} | {(1, a, b) for a in (0, 1) for b in (0, 1)},
    "tf32": {(1, 2, 2)},
    "f8f6f4": set(itertools.product((0, 1), (0, 1, 3, 4, 5), (0, 1, 3, 4, 5))),
    "i8": set(itertools.product((2,), (0, 1), (0, 1))),
}
"""Codes of D, A and B (Table 42): f16 sums need f16 operands."""


@pytest.mark.parametrize("kind", TYPES)
def test_a_product_has_the_types_of_the_table_and_no_others(kind):
    for d, a, b in itertools.product(range(4), range(8), range(8)):
        word = d << 4 | a << 7 | b << 10 | 64 >> 3 << 17 | 128 >> 4 << 24
        expected = None if (d, a, b) in TYPES[kind] else "descriptor"
        assert said(word, kind, 1, False, False) == expected, (d, a, b)


SMALL = set(itertools.product((0, 1, 3, 4, 5), repeat=2))
SCALES = {
    ("mxf8f6f4", "1X"): (SMALL, {1}, {0, 1, 2, 3}),
    ("mxf4", "2X"): ({(1, 1)}, {1}, {0, 2}),
    ("mxf4nvf4", "2X"): ({(1, 1)}, {1}, {0, 2}),
    ("mxf4nvf4", "4X"): ({(1, 1)}, {0, 1}, {0}),
}
"""By kind and vector size the codes of (A, B), scale types (1: UE8M0) and ids (§9.7.16.10.7)."""


@pytest.mark.parametrize(("kind", "vector"), SCALES)
def test_a_scaled_product_has_the_types_and_scales_of_the_tables_and_no_others(kind, vector):
    types, scales, ids = SCALES[kind, vector]
    codes = 8 if kind == "mxf8f6f4" else 4
    for a, b, scale, of_a, of_b in itertools.product(
        range(8), range(codes), (0, 1), range(4), range(4)
    ):
        word = of_b << 4 | a << 7 | b << 10 | 64 >> 3 << 17 | scale << 23 | 1 << 27 | of_a << 29
        legal = (a, b) in types and scale in scales and of_a in ids and of_b in ids
        try:
            decode_scaled(word, kind, vector, 1)
        except Trap as trap:
            assert (trap.category, legal) == ("descriptor", False), (a, b, scale, of_a, of_b)
        else:
            assert legal, (a, b, scale, of_a, of_b)


@pytest.mark.parametrize("kind", [*PLAIN, *SCALED])
def test_bits_that_no_field_has_must_be_zero(kind):
    """§9.7.16.4.2: reserved fields, those of other kinds, sizes of other chips"""
    allowed = {13, 14, 15, 16} if kind != "i8" else {3, 15, 16}
    allowed |= {24, 25, 26, 27, 28} if kind in PLAIN else {27, 28}  # M
    allowed |= {*range(7, 13), *range(17, 23), 4, 5}  # types, N, D or the scale id of B
    if kind in SCALED:
        allowed |= {23, 29, 30}
    if kind in ("mxf4", "mxf4nvf4"):
        allowed -= {15, 16}
    base = word_of(kind, 128, 64, False)
    for bit in set(range(32)) - allowed:
        assert said(base ^ 1 << bit, kind, 1, False, False) == "descriptor", bit
    for bit in allowed & {13, 14, 15, 16}:
        assert said(base ^ 1 << bit, kind, 1, False, False) is None, bit
