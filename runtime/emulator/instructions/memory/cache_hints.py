"""prefetch, applypriority, discard and createpolicy: hints to caches (PTX ISA §9.7.9.15 to .18).

They have no effect on results.
"""

from __future__ import annotations

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE
from ...ptx.registry import Step, instruction

HINTED_BYTES = 128
"""Of applypriority and discard (PTX ISA §9.7.9.16, §9.7.9.17)."""
POLICIES = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
_HINTS = {
    "prefetch": (("global", "local"), ("L1", "L2", "L2::evict_last", "L2::evict_normal")),
    "prefetchu": ((), ("L1",)),
    "applypriority": (("global",), ("L2::evict_normal",)),
    "discard": (("global",), ("L2",)),
}
"""State spaces besides generic addresses, and levels of which there must be one."""


@instruction("prefetch", "prefetchu", "applypriority", "discard", section="9.7.9.15")
def build_prefetch(ins: Decoded) -> Step:
    """Cache hints about [a]: no effect on results."""
    spaces, levels = _HINTS[ins.mnemonic]
    space, level = ins.choice(spaces), ins.required(levels)
    if space == "local" and "::" in level:
        raise ins.trap("operand", f"{ins.mnemonic}.local has no .{level}")
    ins.finish_modifiers()
    _check_hinted(ins)
    return lambda warp, mask: None


def _check_hinted(ins: Decoded) -> None:
    """`[a]`, and of applypriority and discard the bytes, which must be 128."""
    sized = ins.mnemonic in ("applypriority", "discard")
    ins.expect_operands(2 if sized else 1)
    ins.address(0)
    if sized and ins.immediate(1) != HINTED_BYTES:
        raise ins.trap("operand", f"the size must be {HINTED_BYTES}, got {ins.immediate(1)}")


@instruction("createpolicy", section="9.7.9.18")
def build_createpolicy(ins: Decoded) -> Step:
    """createpolicy…b64 policy, …: an opaque cache policy without effect."""
    _check_policy(ins)
    write = ins.write(0, np.uint64)
    policy = np.full(WARP_SIZE, 0x1000_0000_0000_0000, np.uint64)
    return lambda warp, mask: write(warp, mask, policy)


def _check_policy(ins: Decoded) -> None:
    """createpolicy.{fractional,range,cvt} and their operands, which are then not needed."""
    form = ins.required(("fractional", "range", "cvt"))
    ins.take_type("b64")
    if form == "cvt":
        ins.required(("L2",))
        ins.finish_modifiers()
        ins.expect_operands(2)
        ins.read(1, np.uint64)
        return
    if form == "range":
        ins.flag("global")
    found = [name for name in POLICIES for _ in range(2) if ins.flag(name)]
    if not 1 <= len(found) <= 2:
        raise ins.trap("operand", "createpolicy needs one or two of " + ", ".join(POLICIES))
    ins.finish_modifiers()
    ins.expect_operands(*((4,) if form == "range" else (1, 2)))
    if form == "range":
        ins.address(1)
