"""Uses of tcgen05.ld results before tcgen05.wait::ld: a true dependency, which PTX respects.

The instruction that uses a register waits for the load, so that what follows it in program order
is ordered behind the load's reading of tensor memory (PTX ISA §9.7.16.6.4.5). The CuTe DSL leaves
every wait to these dependencies.
"""

from __future__ import annotations

from ..ptx.pending_loads import first_uses
from ..ptx.program import Program
from ..ptx.registry import Step


def wait_at_first_uses(program: Program) -> None:
    """Let the bound instructions that use a load's result first complete the load."""
    for pc, loads in first_uses(program).items():
        lines = frozenset(program.source[load].line for load in loads)
        step, *guard = program.code[pc]
        program.lanewise.pop(pc, None)
        program.computing.pop(pc, None)
        program.lane_forms.pop(pc, None)
        program.code[pc] = (_waiting(step, lines), *guard)


def _waiting(step: Step, lines: frozenset[int]) -> Step:
    def waited(warp, mask):
        warp.launch.events.columns_waited(warp, "tcgen05.ld", lines)
        return step(warp, mask)

    return waited
