"""When ping-pong tiles are used whose accumulators exceed the usual number of registers."""

from __future__ import annotations

from ....dialects.mma_units import WGMMA, WGMMA_WIDE
from ....dialects.target import Target
from ..problem import Problem, Schedule

OUTPUTS_MAX = 2
INSTRUCTIONS_MAX = 7
"""The most instructions of an epilogue, those of GELU of a bias: ptxas has to find registers for it
beside 192 sums."""


def wide_tiles(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Such tiles use an eighth less shared memory bandwidth per MMA than tiles of 128x128, which
    bounds ping-pong kernels: an H200 took 0.97 of the time where tiles fill whole waves."""
    if not schedule.wide:
        return None
    return wide_refusal(problem, target)


def wide_refusal(problem: Problem, target: Target) -> str | None:
    """Why a problem has no such tiles; None if it has. They are chosen only as they were
    measured."""
    if target.mma.name not in (WGMMA.name, WGMMA_WIDE.name):
        return "wide tiles in turns are of wgmma"
    sizes = problem.dynamic_m or problem.dynamic_k or problem.dynamic_batch
    several = problem.products > 1 or problem.adds_products or problem.neighbours
    if sizes or several or problem.grouped or problem.quantized:
        return "wide tiles in turns are for one product of known sizes, with whole outputs"
    outputs = problem.c_bytes, *problem.further_bytes
    if any(each != 2 for each in (problem.element_bytes, *outputs)) or len(outputs) > OUTPUTS_MAX:
        return f"wide tiles in turns are of operands and up to {OUTPUTS_MAX} outputs of 16 bits"
    if not all(map(problem.by_tma, "abc")):
        return "wide tiles in turns are of operands of 16 bits that TMA addresses, as C is"
    if problem.swapped and (problem.beside or len(outputs) > 1):
        return "wide tiles in turns of exchanged operands have one output, and columns beside it"
    rows = problem.beside_columns if problem.swapped else problem.beside_rows
    if len(problem.beside) > 1 or any(each > 2 for each in problem.beside) or rows:
        return "beside wide tiles in turns is one operand as large as C, of 16 bits, or are columns"
    if problem.epilogue_instructions > INSTRUCTIONS_MAX:
        got = problem.epilogue_instructions
        return f"wide tiles in turns leave registers for {INSTRUCTIONS_MAX} instructions, got {got}"
    return None
