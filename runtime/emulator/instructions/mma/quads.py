"""mma.sync.m8n8k4 of f16: four products, one a quad pair (PTX ISA §9.7.14.5.1).

Lanes 4j … 4j+3 and 16+4j … 16+4j+3 form quad pair j. Below q = lane % 4, h = lane / 16, i the
element of a fragment. Sums are formed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...interface import Warp
from ...machine.shared_access import count_event
from ...ptx.decode import Decoded
from ...ptx.lanes import LANE_IDS
from ...ptx.registry import Blocked, Step
from ..threads.convergence import take_aligned

_SIZE, _K, _PAIRS = 8, 4, 4
_FLOPS = 2 * _PAIRS * _SIZE * _SIZE * _K
_LANE = LANE_IDS.astype(np.int64)[:, None]
_Q, _HALF, _PAIR = _LANE % 4, _LANE // 16, _LANE // 4 % 4
Places = tuple[np.ndarray, np.ndarray]
"""Row and column of every lane's elements, int64[32, elements]."""


def _four(swapped: bool) -> Places:
    """A fragment of four: along the second axis at q + 4h, or, swapped, along the first."""
    i = np.arange(4)[None, :]
    line, along = _Q + 4 * _HALF, i
    return (along + 0 * line, line + 0 * along) if swapped else (line + 0 * along, along + 0 * line)


def _a_places(layout: str) -> Places:
    """A[m, k]: row-major lanes hold a row; column-major ones a column of four rows."""
    i = np.arange(4)[None, :]
    return _four(False) if layout == "row" else (i + 4 * _HALF, _Q + 0 * i)


def _b_places(layout: str) -> Places:
    """B[k, n]: column-major lanes hold a column; row-major ones four columns of a row."""
    i = np.arange(4)[None, :]
    return _four(True) if layout == "col" else (_Q + 0 * i, i + 4 * _HALF)


def _c_places(type_: str) -> Places:
    i = np.arange(8)[None, :]
    if type_ == "f16":
        return _Q + 4 * _HALF + 0 * i, i + 0 * _Q
    return (_LANE & 1) + (i & 2) + 4 * _HALF, (i & 4) + (_LANE & 2) + (i & 1)


@dataclass(frozen=True)
class QuadForm:
    """Where the elements of the four matrices lie, and the types of C and D."""

    a: Places
    b: Places
    c_type: str
    d_type: str

    def multiply(self, a: list, b: list, c: list) -> list[np.ndarray]:
        """Registers of D from those of A, B and C."""
        left = _matrices(_halves(a), self.a, (_SIZE, _K))
        right = _matrices(_halves(b), self.b, (_K, _SIZE))
        numbers = _halves(c) if self.c_type == "f16" else np.stack(c, axis=1).view(np.float32)
        total = left @ right + _matrices(numbers, _c_places(self.c_type), (_SIZE, _SIZE))
        found = total[_PAIR, *_c_places(self.d_type)]
        if self.d_type == "f32":
            return list(np.ascontiguousarray(found.T).view(np.uint32))
        return list(np.ascontiguousarray(found.astype(np.float16).view(np.uint32).T))


def _halves(registers: list[np.ndarray]) -> np.ndarray:
    """float32[32, elements] of registers that hold pairs of f16."""
    return np.stack(registers, axis=1).view(np.float16).astype(np.float32)


def _matrices(numbers: np.ndarray, places: Places, shape: tuple[int, int]) -> np.ndarray:
    """float32[quad pairs, rows, columns]."""
    matrices = np.zeros((_PAIRS, *shape), np.float32)
    matrices[_PAIR, *places] = numbers
    return matrices


def is_quad_pairs(ins: Decoded) -> bool:
    """Is it the m8n8k4 of f16 (that of f64 is laid out as the larger shapes)?"""
    return "m8n8k4" in ins.modifiers and "f64" not in ins.modifiers


def build_quad_pairs(ins: Decoded) -> Step:
    """mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype d, a, b, c."""
    converged, form = _take_form(ins)
    ins.expect_operands(4)
    read_a, read_b = ins.read_vector(1, 2, np.uint32), ins.read_vector(2, 2, np.uint32)
    read_c = ins.read_vector(3, _registers(form.c_type), np.uint32)
    write = ins.write_vector(0, _registers(form.d_type), np.uint32)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        with np.errstate(all="ignore"):
            d = form.multiply(read_a(warp), read_b(warp), read_c(warp))
        write(warp, mask, d)
        count_event(warp.cta, "mma.sync flops", _FLOPS)
        return None

    return step


def _registers(type_: str) -> int:
    return 4 if type_ == "f16" else 8


def _take_form(ins: Decoded) -> tuple[Callable, QuadForm]:
    types, layouts = ins.modifiers[-4:], [m for m in ins.modifiers if m in ("row", "col")]
    for name in (*types, *layouts, "m8n8k4"):
        ins.flag(name)
    converged = take_aligned(ins)
    ins.finish_modifiers()
    d, a, b, c = types
    legal = (a, b) == ("f16", "f16") and {c, d} <= {"f16", "f32"} and (c, d) != ("f32", "f16")
    if not legal or len(layouts) != 2:
        ins.unmodelled(f"shape .m8n8k4 with types .{d}.{a}.{b}.{c}")
    return converged, QuadForm(_a_places(layouts[0]), _b_places(layouts[1]), c, d)
