"""st.bulk: fill shared memory with zeros (PTX ISA §9.7.9.12)."""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...interface import Warp
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from .memory import space_of

_WORD = 8
_WORD_BITS = 32


@instruction("st.bulk", section="9.7.9.12")
def build_st_bulk(ins: Decoded) -> Step:
    """st.bulk{.weak}{.shared::cta} [a], size, 0: size bytes, a multiple of 8."""
    ins.flag("weak")
    space = ins.choice(("shared::cta",))
    ins.finish_modifiers()
    ins.expect_operands(3)
    if ins.immediate(2):
        raise ins.trap("operand", f"the value of st.bulk must be 0, got {ins.immediate(2)}")
    name, of = space_of(ins, space, ins.operand(0))
    address = ins.address(0)
    size = ins.read(1, np.uint32 if _is_in_a_word(ins, 1) else np.uint64)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):
            amount = int(size(warp)[lane])
            _fill(warp, of(warp), int(lane), int(address(warp)[lane]), amount)
            warp.launch.report.memory_bytes[name, "write"] += amount

    return step


def _is_in_a_word(ins: Decoded, at: int) -> bool:
    """Whether an operand is a register of 32 bits."""
    operand = ins.operand(at)
    register = ins.scope.register(operand.name) if isinstance(operand, syntax.Symbol) else None
    return register is not None and register.bits == _WORD_BITS


def _fill(warp: Warp, space, lane: int, address: int, size: int) -> None:
    if size % _WORD:
        raise Trap("misaligned", f"the size of st.bulk must be a multiple of {_WORD}, got {size}")
    who, zero = (warp, np.arange(32) == lane), np.zeros(1, np.uint64)
    for at in range(address, address + size, _WORD):
        space.store(np.array([at], np.uint64), zero, _WORD, 1, who)
