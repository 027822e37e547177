"""Which modifiers cvt may have between two types (PTX ISA §9.7.9.21)."""

from __future__ import annotations

from ...ptx.decode import Decoded
from ...ptx.values import Type
from . import floats
from .rounding import MODES

INTEGER_MODES = ("rni", "rzi", "rmi", "rpi")
_CLAMPS = ("relu", "satfinite")
_WIDENINGS = (("f32", "f16"), ("f64", "f16"), ("f64", "f32"))
"""(target, source): exact, and so without a rounding modifier."""
_OPTIONAL = (("f32", "bf16"), ("f64", "bf16"), ("f16", "bf16"), ("bf16", "f16"))
"""(target, source) with or without one."""


def check_conversion(ins: Decoded, target: Type, source: Type) -> None:
    """Refuse modifiers that a conversion from `source` to `target` has not, or lacks."""
    names = (target.name, source.name)
    _check_rounding(ins, target, source)
    if "sat" in ins.modifiers and ("bf16" in names or _holds(target, source)):
        raise ins.trap("operand", f"cvt.{target.name}.{source.name} has no .sat")
    if "ftz" in ins.modifiers and "f32" not in names:
        raise ins.trap("operand", "cvt has .ftz only from or to .f32")
    for name in _CLAMPS:
        if name in ins.modifiers and not _has_clamps(ins, target, source):
            raise ins.trap("operand", f"cvt has .{name} only from .f32 to halves by .rn or .rz")
    clamps, others = ({*names} & {*ins.modifiers} for names in (_CLAMPS, ("ftz", "sat")))
    if clamps and others:
        raise ins.trap("operand", f"cvt.{min(clamps)} has no .{min(others)}")


def _has_clamps(ins: Decoded, target: Type, source: Type) -> bool:
    halves = target.name in ("f16", "bf16") and source.name == "f32"
    return halves and bool({"rn", "rz"} & set(ins.modifiers))


def _holds(target: Type, source: Type) -> bool:
    """Whether an integer type holds every value of another one: nothing saturates."""
    if target.kind not in "us" or source.kind not in "us":
        return False
    if target.kind == source.kind:
        return target.bits >= source.bits
    return target.signed and target.bits > source.bits


def _check_rounding(ins: Decoded, target: Type, source: Type) -> None:
    mode = next((name for name in ins.modifiers if name in (*MODES, *INTEGER_MODES)), None)
    allowed = _roundings(target, source)
    if mode not in allowed:
        takes = ", ".join(f".{name}" if name else "none" for name in allowed)
        raise ins.trap("operand", f"cvt.{target.name}.{source.name} takes the rounding modifiers"
                                  f" {takes}, got {'.' + mode if mode else 'none'}")  # fmt: skip


def _roundings(target: Type, source: Type) -> tuple[str | None, ...]:
    names, modes = (target.name, source.name), tuple(MODES)
    if target.name not in floats.ELEMENT:
        return (None,) if source.name not in floats.ELEMENT else INTEGER_MODES
    if target.name == source.name:
        return (None, *INTEGER_MODES)
    if names in _WIDENINGS:
        return (None,)
    return (None, *modes) if names in _OPTIONAL else modes
