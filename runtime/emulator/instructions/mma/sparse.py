"""mma.sp: D = A·B + C with a structured sparse operand A (PTX ISA §9.7.14.6).

The fragment of A is that of a dense operation with half the K; B and C have those of mma.sync.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...interface import Warp
from ...machine.shared_access import count_event
from ...ptx.decode import Decoded
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.sparse_metadata import (
    ANY_CODES,
    ORDERED_CODES,
    kept_positions_of_registers,
    sparse_product,
)
from ..threads.convergence import take_aligned
from .dense import MmaForm, accumulator_numbers, result_registers, warp_rows

_SECTION = "9.7.14.6.3"
_FLOAT8, _BYTES = ("e4m3", "e5m2"), ("s8", "u8")
_FORMS = (
    (("f16",), ("m16n8k16", "m16n8k32"), ("f16", "f32"), 64),
    (("bf16",), ("m16n8k16", "m16n8k32"), ("f32",), 64),
    (("tf32",), ("m16n8k8", "m16n8k16"), ("f32",), 32),
    (_FLOAT8, ("m16n8k64",), ("f32",), 64),
    (_BYTES, ("m16n8k64",), ("s32",), 64),
)
"""Operand types, shapes and accumulator types that go together, and the K at which the registers of
all lanes hold metadata."""
_SHAPES = tuple(dict.fromkeys(shape for _, shapes, *_ in _FORMS for shape in shapes))
_ROWS, _COLUMNS = 16, 8


@dataclass(frozen=True)
class SparseForm:
    """A form as B and C see it, its operand A, and which metadata registers count."""

    whole: MmaForm
    stored: MmaForm
    selector: int
    codes: tuple[int, ...]


@instruction("mma.sp", "mma.sp::ordered_metadata", section=_SECTION)
def build_sparse_mma(ins: Decoded) -> Step:
    """mma.sp{::ordered_metadata}.sync.aligned.shape.row.col{.satfinite}.types d, a, b, c, e, f."""
    types = ins.modifiers[-4:]
    for name in types:
        ins.flag(name)
    converged = take_aligned(ins)
    form = _take_form(ins, types)
    read_a = ins.read_vector(1, form.stored.a_registers, np.uint32)
    read_b = ins.read_vector(2, form.whole.b_registers, np.uint32)
    read_c = ins.read_vector(3, form.whole.d_registers, np.uint32)
    read_metadata = ins.read(4, np.uint32)
    write = ins.write_vector(0, form.whole.d_registers, np.uint32)
    flops = 2 * _ROWS * _COLUMNS * form.whole.k

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        d = _multiply(form, read_a(warp), read_b(warp), read_c(warp), read_metadata(warp))
        write(warp, mask, d)
        count_event(warp.cta, "mma.sync flops", flops)
        return None

    return step


def _take_form(ins: Decoded, types: tuple[str, ...]) -> SparseForm:
    shape = ins.choice(_SHAPES)
    row_column = ins.flag("row") and ins.flag("col")
    saturates = ins.flag("satfinite")
    ins.finish_modifiers()
    if shape is None or len(types) < 4 or not row_column:
        ins.unmodelled("a shape, layout or number of types other than those of sparse .row.col")
    d, a, b, c = types
    whole_k = _whole_k(shape, types)
    if not whole_k or c != d or (saturates and d != "s32"):
        flag = ".satfinite" if saturates else ""
        ins.unmodelled(f"sparse shape .{shape}{flag} with types .{d}.{a}.{b}.{c}")
    ins.expect_operands(6)
    k = int(shape.rpartition("k")[2])
    codes = ORDERED_CODES if "ordered_metadata" in ins.mnemonic else ANY_CODES
    whole, stored = (MmaForm(_ROWS, size, a, b, d, saturates) for size in (k, k // 2))
    return SparseForm(whole, stored, _selector(ins, whole_k // k), codes)


def _whole_k(shape: str, types: tuple[str, ...]) -> int:
    d, a, b, _ = types
    for operands, shapes, accumulators, whole_k in _FORMS:
        if a in operands and b in operands and shape in shapes and d in accumulators:
            return whole_k
    return 0


def _selector(ins: Decoded, count: int) -> int:
    selector = ins.immediate(5)
    if not 0 <= selector < count:
        raise ins.trap("operand", f"the sparsity selector must be 0..{count - 1}, got {selector}")
    return selector


def _multiply(
    form: SparseForm,
    a: list[np.ndarray],
    b: list[np.ndarray],
    c: list[np.ndarray],
    metadata: np.ndarray,
) -> list[np.ndarray]:
    """Registers of D from registers (each uint[32]) of A, B, C and the metadata."""
    whole = form.whole
    left, right = warp_rows(a, whole.a, 2), warp_rows(b, whole.b, 1)
    kept = kept_positions_of_registers(metadata, whole.a, whole.k, form.selector, form.codes)
    with np.errstate(all="ignore"):
        total = sparse_product(left, right, kept) + accumulator_numbers(c, whole)
        return result_registers(total, whole)
