"""Forms of wgmma.mma_async: which types and shapes go together (PTX ISA §9.7.15.5.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...ptx.decode import Decoded
from ...tensor.element_formats import BITS
from ..threads.convergence import take_aligned

K_BYTES = 32
"""Of one row of A, and of B if A is dense, in every type (PTX ISA §9.7.15.2: shapes)."""
FLOAT8, _BYTES = ("e4m3", "e5m2"), ("s8", "u8")
_FORMS = (
    (("f16",), 16, ("f16", "f32")),
    (("bf16",), 16, ("f32",)),
    (("tf32",), 8, ("f32",)),
    (FLOAT8, 32, ("f16", "f32")),
    (_BYTES, 32, ("s32",)),
)
"""Operand types, K and accumulator types that go together."""


@dataclass(frozen=True)
class WgmmaForm:
    """Types and shape m64nNkK; scales ±1 of A and B; transposed: MN-major in shared memory."""

    n: int
    k: int
    a: str
    b: str
    d: str
    saturates: bool
    scales: tuple[int, int] = (1, 1)
    transposed: tuple[bool, bool] = (False, False)
    sparse: bool = False

    @property
    def depths(self) -> tuple[int, int]:
        """Elements along K that rows of A and of B hold in memory."""
        return (self.k // 2 if self.sparse else self.k), self.k

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of B."""
        return 2 * K_BYTES if self.sparse else K_BYTES

    @property
    def d_registers(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)

    @property
    def accumulator(self) -> tuple[int, str]:
        """Operations that share it are ordered among each other."""
        return self.n, self.d


def take_form(ins: Decoded) -> tuple[Callable, WgmmaForm]:
    if "popc" in ins.modifiers:
        ins.unmodelled("a product of single bits")
    saturates = ins.flag("satfinite")  # behind the shape in the ISA, behind the types in CUTLASS
    types = [name for name in ins.modifiers if name != "satfinite"][-3:]
    for name in types:
        ins.flag(name)
    converged = take_aligned(ins)
    shape = next((name for name in ins.modifiers if name.startswith("m64n")), "")
    ins.flag(shape)
    ins.finish_modifiers()
    n, _, k = shape.removeprefix("m64n").partition("k")
    if not n.isdigit() or not k.isdigit() or len(types) < 3:
        ins.unmodelled("an opcode without shape .m64nNkK and three types")
    d, a, b = types
    form = WgmmaForm(int(n), int(k), a, b, d, saturates, sparse=ins.mnemonic.endswith(".sp"))
    _check_form(ins, form, shape)
    return converged, form


def _check_form(ins: Decoded, form: WgmmaForm, shape: str) -> None:
    legal = any(
        form.a in operands and form.b in operands and form.depths[0] == k and form.d in accumulators
        for operands, k, accumulators in _FORMS
    )
    integer = form.d == "s32"
    step = 16 if integer and form.n > 32 else 8
    if not legal or form.n % step or not 8 <= form.n <= 256 or (form.saturates and not integer):
        flag = ".satfinite" if form.saturates else ""
        ins.unmodelled(f"shape .{shape}{flag} with types .{form.d}.{form.a}.{form.b}")


def with_immediates(ins: Decoded, form: WgmmaForm, from_registers: bool) -> WgmmaForm:
    """The form with imm-scale-a, imm-scale-b, imm-trans-a and imm-trans-b of the operands."""
    scales = 0 if form.d == "s32" else 2
    transposes = (1 if from_registers else 2) if BITS[form.a] == 16 else 0
    ins.expect_operands(4 + scales + transposes)
    values = [ins.immediate(4 + number) for number in range(scales + transposes)]
    for value in values[:scales]:
        _check_immediate(ins, value, (-1, 1), "imm-scale")
    for value in values[scales:]:
        _check_immediate(ins, value, (0, 1), "imm-trans")
    flags = [bool(value) for value in values[scales:]]
    a_transposed, b_transposed = [False, False, *flags][-2:]
    signs = (values[0], values[1]) if scales else (1, 1)
    return replace(form, scales=signs, transposed=(a_transposed, b_transposed))


def _check_immediate(ins: Decoded, value: int, legal: tuple[int, int], name: str) -> None:
    if value not in legal:
        raise ins.trap("operand", f"{name} must be {legal[0]} or {legal[1]}, got {value}")
