"""cp.reduce.async.bulk: bulk copies that combine with what lies at the destination.

Source: PTX ISA §9.7.9.25.4.2. The elements are combined one by one when the copy is performed.
"""

from __future__ import annotations

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES
from .atomic import combination
from .bulk_copy import Reduction, build_from_shared, build_to_shared

_LOGIC = ("and", "or", "xor")
_SHARED = {
    **dict.fromkeys(_LOGIC, ("b32",)),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32")),
    "add": ("u32", "s32", "u64"),
}
_GLOBAL = {
    **dict.fromkeys(_LOGIC, ("b32", "b64")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "bf16")),
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
}
_NOFTZ = ("f16", "bf16")


@instruction("cp.reduce.async.bulk", section="9.7.9.25.4.2")
def build_bulk_reduce(ins: Decoded) -> Step:
    """cp.reduce.async.bulk.dst.shared::cta.completion.op.type [dst], [src], size{, [mbar]}."""
    to_global = not ins.flag("shared::cluster")
    if to_global:
        ins.required(("global",))
    ins.required(("shared::cta",))
    reduction = _take_reduction(ins, _GLOBAL if to_global else _SHARED)
    if to_global:
        return build_from_shared(ins, reduction)
    return build_to_shared(ins, "shared::cluster", from_global=False, reduction=reduction)


def _take_reduction(ins: Decoded, legal: dict[str, tuple[str, ...]]) -> Reduction:
    operation = ins.required(tuple(legal))
    name = ins.required(tuple({name: None for names in legal.values() for name in names}))
    if name not in legal[operation]:
        ins.unmodelled(f".{operation} on .{name}")
    if (operation == "add" and name in _NOFTZ) != ins.flag("noftz"):
        ins.unmodelled(".noftz, which an .add of .f16 or .bf16 must have and no other")
    return Reduction(combination(ins, operation, TYPES[name]), TYPES[name].raw)
