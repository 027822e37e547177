"""setmaxnreg and griddepcontrol (PTX ISA §9.7.19.5, §9.7.13.13).

Registers move between the warps of a CTA through a pool: a warp that asks for more waits until
others have given up as many. Without `.maxnreg` a thread starts with what its share of the
64 Ki registers allows, in steps of 8; the compiler may have given it fewer. A first `.inc` says
that it did, where its count is lower: `.inc` gives nothing up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.events import Listener
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE
from ...ptx.registry import Blocked, Step, instruction
from .convergence import take_aligned

FILE_REGISTERS = 65536
SM_THREADS = 2048
MAX_REGISTERS = 255
LEAST, MOST, UNIT = 24, 256, 8
WARPGROUP = 4


def _at_entry(cta: Cta) -> int:
    """Registers a thread starts with."""
    directives = cta.launch.program.function.directives
    if "maxnreg" in directives:
        return int(directives["maxnreg"][0])
    block = directives.get("reqntid") or directives.get("maxntid") or cta.launch.block
    threads = -(-prod(block) // WARP_SIZE) * WARP_SIZE
    together = threads * max(directives.get("minnctapersm") or (1,))
    threads = together if threads <= together <= SM_THREADS else threads
    return min(FILE_REGISTERS // threads, MAX_REGISTERS) // UNIT * UNIT


@dataclass
class RegisterPool:
    """Registers of one CTA: those given up, and what each warp has asked for in turn.

    declared: at_entry is what .maxnreg says, not the most that the compiler may have given.
    """

    at_entry: int
    declared: bool
    free: int = 0
    asked: dict[int, list[int]] = field(default_factory=dict)

    def of(self, warp: int) -> int:
        """Registers a thread of the warp has now."""
        return self.asked[warp][-1] if self.asked.get(warp) else self.at_entry

    def known(self, warp: int) -> bool:
        """Whether `of` is certain."""
        return self.declared or bool(self.asked.get(warp))

    def grows(self, warp: int, count: int) -> None:
        """Learn from a right `.inc` that no thread started with more."""
        if not self.known(warp):
            self.at_entry = min(self.at_entry, count)

    def change(self, warp: int, count: int) -> bool:
        """Give a warp `count` registers a thread; False while the pool has too few."""
        wanted = (count - self.of(warp)) * WARP_SIZE
        if wanted > self.free:
            return False
        self.free -= wanted
        self.asked.setdefault(warp, []).append(count)
        return True

    def check_groups(self, warps: int, events: Listener) -> None:
        """Tell of warps of a warpgroup that have not asked for the same, as the idle warp of
        CUTLASS's attention for sm_100a, and the producer of a tutorial of the CuTe DSL, alone."""
        for first in range(0, warps, WARPGROUP):
            group = range(first, min(first + WARPGROUP, warps))
            asked = [self.asked.get(warp, []) for warp in group]
            if all(other == asked[0] for other in asked):
                continue
            listed = ", ".join(f"warp {w}: {self.asked.get(w, [])}" for w in group)
            rule = "all warps of a warpgroup must execute the same setmaxnreg"
            text = f"{rule} (PTX ISA section 9.7.19.5), got {listed}"
            events.departed("convergence", "register-counts", text)


def _pool(cta: Cta) -> RegisterPool:
    def make() -> RegisterPool:
        declared = "maxnreg" in cta.launch.program.function.directives
        pool = RegisterPool(_at_entry(cta), declared)
        cta.at_exit(lambda: pool.check_groups(len(cta.warps), cta.launch.events))
        return pool

    return cta.state("register pool", make)


@instruction("setmaxnreg", section="9.7.19.5")
def build_setmaxnreg(ins: Decoded) -> Step:
    """setmaxnreg.{inc,dec}.sync.aligned.u32 n."""
    direction = ins.required(("inc", "dec"))
    converged = take_aligned(ins)
    ins.required(("u32",))
    ins.finish_modifiers()
    ins.expect_operands(1)
    count = ins.immediate(0)
    if not LEAST <= count <= MOST or count % UNIT:
        raise ins.trap(
            "operand", f"setmaxnreg takes {LEAST}..{MOST} in steps of {UNIT}, got {count}"
        )

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        pool = _pool(warp.cta)
        if direction == "dec" or pool.known(warp.index):
            _check_direction(direction, pool.of(warp.index), count)
        if direction == "inc":
            pool.grows(warp.index, count)
        if not pool.change(warp.index, count):
            return Blocked("registers", lambda: _wanting(pool, warp.index, count))
        if direction == "dec":
            warp.cta.notify()
        return None

    return step


def _check_direction(direction: str, now: int, count: int) -> None:
    if (count > now) if direction == "dec" else (count < now):
        raise Trap(
            "protocol", f"setmaxnreg.{direction} to {count} registers a thread, which has {now}"
        )


def _wanting(pool: RegisterPool, warp: int, count: int) -> str:
    more = (count - pool.of(warp)) * WARP_SIZE
    return f"waits for {more} registers, {pool.free} are given up by other warps of the CTA"


@instruction("griddepcontrol", section="9.7.13.13")
def build_griddepcontrol(ins: Decoded) -> Step:
    """griddepcontrol.{wait,launch_dependents}: behind wait, the arrays of prerequisite grids may be
    used. A launch has no dependents here."""
    waits = ins.required(("wait", "launch_dependents")) == "wait"
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        if waits:
            warp.launch.arrays.release()
            warp.launch.events.grids_awaited(warp)

    return step
