"""Loads another operand of the epilogue into free slots of the operand ring.

    role "load" { for %k { … commit %ring } }      role "load" { for %k { … commit %ring }
                                                                 drain %ring {slots = 2}
                                               →                 load_ahead %map → %pieces }
    role "consumer" { load_ahead %map → %pieces    role "consumer" { for %k { … mma … }
                      for %k { … mma … }                             staged_store … }
                      staged_store … }

A CTA with a single tile fills no more slots after its last K step. The load role waits until the
next slots are empty, and loads all pieces of the operand there while the last steps are multiplied.
So the pieces need no memory besides the ring, and the store does not wait for each of them.

If each piece has its own slot already (`ahead` is the number of pieces of a tile), the load role
loads one piece in each of some K steps in the middle, which does not delay the operands.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ...dialects.mlir import ir
from ...dialects.pipe import AcquireOp, DrainOp, RingType, RoleOp
from ...dialects.record import record
from ...dialects.tile import CtaTileOp, KernelOp
from ...dialects.tile.ahead import LoadAheadOp
from ...dialects.tile_types import integer, integers_of
from ..base import PassLog, many, refused, the_kernel, walk
from ..reused_slots import agent_around, place_in, ring_bytes, steps_before
from ..ring_fills import has_copies
from ..rings import is_operand_ring
from .warp_specialization import LOAD

CURE = "leave slot-reuse out"


class Left(NamedTuple):
    """The role that loads, its ring, and how many slots of it are filled."""

    role: RoleOp
    ring: ir.Value[RingType]
    steps: int


@record
class SlotReuse:
    """Pieces of an operand of the size of C → free slots of A and B, or their own slots during the
    K loop if there is one for each.

    The pass runs after warp-specialization. It requires a CTA with one tile and no cluster, whose
    operands are loaded by TMA in a number of K steps that the kernel states.
    """

    name: ClassVar[str] = "slot-reuse"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        loads = [load for load in walk(kernel, LoadAheadOp) if not load.is_vector]
        left = _left(kernel)
        if len(loads) != 1 or agent_around(loads[0]) == left.role:
            got = "pieces in such slots already" if len(loads) == 1 else f"{len(loads)} operands"
            rule = "slot-reuse: pieces must be of one operand as large as C, ahead of the store"
            raise refused(kernel, f"{rule} (epilogue-staging{{ahead}}), got {got}; {CURE}")
        (load,) = loads
        block = left.role.body.blocks[0]
        if load.ring.type.stages == load.pieces.value:
            block.append(load.operation)
            log.did(
                f"{many(load.pieces.value, 'piece')} in slots of their own, loaded step by step"
            )
            return
        load.ring.set_type(RingType.of(load.pieces.value, load.ring.type.tiles))
        place = place_in(left.ring, left.steps, load.ring)
        if place is None:
            rule = f"slot-reuse: {ring_bytes(load.ring)} bytes of pieces must fit slots of A or B"
            got = f"{left.steps} steps of {left.ring.type}"
            raise refused(load, f"{rule} that have been read, got {got}; {CURE}")
        with ir.InsertionPoint(block), load.location:
            DrainOp(ring=left.ring, slots=integer(place.drained))
        block.append(load.operation)
        log.did(f"{many(load.pieces.value, 'piece')} in slots, {place.drained} of them left")


def _left(kernel: KernelOp) -> Left:
    """The role that fills the ring of operands of a kernel that the pass takes."""
    roles = {role.agent.value: role for role in walk(kernel, RoleOp)}
    cluster, broken = integers_of(kernel.cluster), None
    if LOAD not in roles:
        broken = "a load role, got none; run warp-specialization first"
    elif not walk(kernel, CtaTileOp):
        broken = f"one tile a CTA, got a loop over tiles; {CURE}"
    elif cluster != [1, 1, 1]:
        broken = f"a CTA without a cluster, got one of {cluster}; {CURE}"
    if broken is not None:
        raise refused(kernel, f"slot-reuse: needs {broken}")
    role = roles[LOAD]
    rings = dict.fromkeys(acquire.ring for acquire in walk(role, AcquireOp))
    operands = [ring for ring in rings if is_operand_ring(ring.owner.opview)]
    steps = steps_before(role, operands[0]) if len(operands) == 1 else None
    if steps is None or has_copies(operands[0]):
        got = "copies by threads" if steps is not None else "others"
        rule = "slot-reuse: needs one ring that TMA fills as often as the kernel says"
        raise refused(role, f"{rule}, got {got}; {CURE}")
    return Left(role, operands[0], steps)
