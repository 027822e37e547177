"""mma.sync: D = A·B + C on fragments in the registers of one warp (PTX ISA §9.7.14.5.14).

Below g = lane / 4 and q = lane % 4, E the elements of a register. Register w of A holds row
g + 8·(w % 2) (of m8 shapes: g) and the E elements k = 4E·(w / 2) + E·q (m8: 4E·w + E·q); register
w of B column g and k = 4E·w + E·q; element j of C row g + 8·(j / 2) and column 2q + j % 2.
Sums are formed in float32 (f64: float64; integers are exact): PTX leaves order and precision of
the accumulation open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...interface import Warp
from ...machine.shared_access import count_event
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.element_formats import BITS, INTEGERS, decode
from ..threads.convergence import take_aligned
from .quads import build_quad_pairs, is_quad_pairs

_SECTION = "9.7.14.5.14"
_FLOAT8, _BYTES, _NIBBLES = ("e4m3", "e5m2"), ("s8", "u8"), ("s4", "u4")
_FORMS = (
    (("f16",), ("m16n8k8", "m16n8k16"), ("f16", "f32")),
    (("bf16",), ("m16n8k8", "m16n8k16"), ("f32",)),
    (("tf32",), ("m16n8k4", "m16n8k8"), ("f32",)),
    (_FLOAT8, ("m16n8k16", "m16n8k32"), ("f16", "f32")),
    (_BYTES, ("m8n8k16", "m16n8k16", "m16n8k32"), ("s32",)),
    (_NIBBLES, ("m8n8k32", "m16n8k32", "m16n8k64"), ("s32",)),
    (("b1",), ("m8n8k128", "m16n8k128", "m16n8k256"), ("s32",)),
    (("f64",), ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",)),
)
"""Operand types, shapes and accumulator types that go together."""
_SHAPES = tuple(dict.fromkeys(shape for _, shapes, _ in _FORMS for shape in shapes))
_COLUMNS = 8
_WORD_BITS = {"f64": 64}
_S32_MIN, _S32_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class MmaForm:
    """Shape and types of one mma.sync; `saturates`: s32 sums are clamped; `combine`: how single
    bits are, `xor` or `and`, None for other types."""

    m: int
    k: int
    a: str
    b: str
    d: str
    saturates: bool
    combine: str | None = None

    @property
    def halves(self) -> int:
        """Groups of eight rows."""
        return self.m // 8

    @property
    def raw(self) -> type:
        """The dtype of an operand register."""
        return np.uint64 if self.a == "f64" else np.uint32

    @property
    def b_registers(self) -> int:
        return self.k * BITS[self.b] // _WORD_BITS.get(self.b, 32) // 4

    @property
    def a_registers(self) -> int:
        return self.halves * self.b_registers

    @property
    def d_registers(self) -> int:
        return self.halves if self.d == "f16" else 2 * self.halves


@instruction("mma", section=_SECTION)
def build_mma(ins: Decoded) -> Step:
    """mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype{.op.popc} d, a, b, c."""
    if any(name.startswith("sp") for name in ins.modifiers):
        ins.unmodelled("a sparse operand A, section 9.7.14.6")
    if is_quad_pairs(ins):
        return build_quad_pairs(ins)
    converged, form = _take_form(ins)
    ins.expect_operands(4)
    read_a = ins.read_vector(1, form.a_registers, form.raw)
    read_b = ins.read_vector(2, form.b_registers, form.raw)
    accumulator = np.uint64 if form.d == "f64" else np.uint32
    read_c = ins.read_vector(3, form.d_registers, accumulator)
    write = ins.write_vector(0, form.d_registers, accumulator)
    flops = 2 * form.m * _COLUMNS * form.k

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        d = multiply(form, read_a(warp), read_b(warp), read_c(warp))
        write(warp, mask, d)
        count_event(warp.cta, "mma.sync flops", flops)
        return None

    return step


def _take_form(ins: Decoded) -> tuple[Callable, MmaForm]:
    combine = ins.choice(("xor", "and")) if ins.flag("popc") else None
    end = len(ins.modifiers) - (2 if combine else 0)
    types = ins.modifiers[end - 4 : end]
    for name in types:
        ins.flag(name)
    converged = take_aligned(ins)
    shape = ins.choice(_SHAPES)
    row_column = ins.flag("row") and ins.flag("col")
    saturates = ins.flag("satfinite")
    ins.finish_modifiers()
    if shape is None or len(types) < 4 or not row_column:
        ins.unmodelled("a shape, layout or number of types other than those of dense .row.col")
    form = _checked(ins, shape, types, saturates)
    if (form.a == "b1") != (combine is not None):
        ins.unmodelled("single bits without .xor.popc or .and.popc, or these on other types")
    return converged, replace(form, combine=combine)


def _checked(ins: Decoded, shape: str, types: tuple[str, ...], saturates: bool) -> MmaForm:
    d, a, b, c = types
    legal = any(
        a in operands and b in operands and shape in shapes and d in accumulators
        for operands, shapes, accumulators in _FORMS
    )
    if not legal or c != d or (saturates and d != "s32"):
        flag = ".satfinite" if saturates else ""
        ins.unmodelled(f"shape .{shape}{flag} with types .{d}.{a}.{b}.{c}")
    return MmaForm(
        int(shape[1 : shape.index("n")]), int(shape.rpartition("k")[2]), a, b, d, saturates
    )


def multiply(
    form: MmaForm, a: list[np.ndarray], b: list[np.ndarray], c: list[np.ndarray]
) -> list[np.ndarray]:
    """Registers of D from registers (each uint[32]) of A, B and C."""
    left, right = warp_rows(a, form.a, form.halves), warp_rows(b, form.b, 1)
    with np.errstate(all="ignore"):
        if form.combine:
            product = binary_product(left, right, form.combine)
        else:
            product = left @ right.T
        return result_registers(product + accumulator_numbers(c, form), form)


def warp_rows(registers: list[np.ndarray], name: str, halves: int) -> np.ndarray:
    """Numbers [8·halves, k] of an operand of type `name` from its registers (each uint[32])."""
    values = decode(np.stack(registers), name)
    parts = values.reshape(len(registers) // halves, halves, 8, 4, -1)
    return parts.transpose(1, 2, 0, 3, 4).reshape(8 * halves, -1)


def accumulator_numbers(registers: list[np.ndarray], form: MmaForm) -> np.ndarray:
    """Numbers [m, 8] of C."""
    words = np.stack(registers)
    if form.d == "f16":
        return words.view(np.float16).astype(np.float32).reshape(form.m, _COLUMNS)
    values = words.view({"f32": np.float32, "f64": np.float64, "s32": np.int32}[form.d])
    return values.reshape(form.halves, 2, 8, 4).transpose(0, 2, 3, 1).reshape(form.m, _COLUMNS)


def result_registers(values: np.ndarray, form: MmaForm) -> list[np.ndarray]:
    """Registers (each uint[32]) of D from numbers [m, 8]."""
    if form.d == "f16":
        words = values.astype(np.float16).reshape(form.halves, -1).view(np.uint32)
        return list(words)
    parts = values.reshape(form.halves, 8, 4, 2).transpose(0, 3, 1, 2)
    return list(_stored(parts.reshape(-1, WARP_SIZE), form))


def _stored(values: np.ndarray, form: MmaForm) -> np.ndarray:
    if form.d == "f64":
        return np.ascontiguousarray(values).view(np.uint64)
    if form.a not in (*INTEGERS, "b1"):
        return values.astype(np.float32).view(np.uint32)
    return saturated(values, form.saturates)


def binary_product(a: np.ndarray, b: np.ndarray, combine: str) -> np.ndarray:
    """[m, n] numbers of ones of `combine`d rows, from 0 and 1 in [m, k] and [n, k]."""
    both = a @ b.T
    if combine == "and":
        return both
    return a.sum(axis=1)[:, None] + b.sum(axis=1)[None, :] - 2 * both


def saturated(values: np.ndarray, saturates: bool) -> np.ndarray:
    """Exact integer sums as uint32 registers: clamped to s32, or wrapped around."""
    if saturates:
        values = np.clip(values, _S32_MIN, _S32_MAX)
    return values.astype(np.int64).astype(np.uint32)
