"""Straight integer code that one lane executes often, as one Python function.

The lane's registers become local variables. A register that nothing outside the run names is not
written back: no instruction can ever read what it holds there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .mentions import outside
from .program import Program
from .scalar import expression

Run = Callable[[list, int], None]
"""Executes the run: takes a warp's registers and the lane; Trap if a register is under way, before
anything is changed."""


def is_known(program: Program, pcs: range) -> bool:
    """Whether every instruction has an expression."""
    return all(_text(program, pc) is not None for pc in pcs)


def _text(program: Program, pc: int) -> str | None:
    reads, writes = program.computing[pc]
    width = 8 * program.slot_dtype(writes[0]).itemsize
    return expression(program.source[pc].opcode, len(reads), len(writes), width)


def compile_run(program: Program, pcs: range) -> Run:
    """The function of the instructions in a row, which nothing jumps between."""
    loads, body, local = [], [], {}
    for pc in pcs:
        reads, (target,) = program.computing[pc]
        for slot in reads:
            if slot not in local:
                local[slot] = _constant(program, slot) or f"r{slot}"
                if local[slot] == f"r{slot}":
                    loads.append(f"r{slot} = regs[{slot}].item(lane)")
        text = _text(program, pc)
        assert text is not None  # as `is_known` says
        value = text.format(*(local[slot] for slot in reads))
        local[target] = f"r{target}"
        body.append(f"r{target} = {value}")
    left = sorted(outside(program, pcs))
    copies = [f"a{slot} = regs[{slot}].copy()" for slot in left]
    writes = [f"a{slot}[lane] = r{slot}; regs[{slot}] = a{slot}" for slot in left]
    return _function([*loads, *copies, *body, *writes])


def _function(lines: list[str]) -> Run:
    found: dict[str, Any] = {}
    exec("\n    ".join(["def run(regs, lane):", *lines]), found)
    return found["run"]


def _constant(program: Program, slot: int) -> str | None:
    """The number that a slot holds in every lane of every warp."""
    array = program.constants.get(slot)
    alike = array is not None and array.ndim == 1 and bool((array == array[0]).all())
    return repr(array[0].item()) if alike and array is not None else None
