"""Turns pipes into waits and arrivals on named mbarriers, with slot and phase in the IR.

    pipe.acquire %ring        %index, %parity = sm.read_position %fill
                              sm.wait_barrier %empty[%index], %parity ^ 1
                        →     sm.arrive_expect_tx %full[%index] {bytes = 24576}
                              %slot = sm.slot %ring[%index]
    pipe.commit %ring         sm.advance_position %fill
    pipe.wait %ring           sm.wait_barrier %full[%index], %parity; sm.slot
    pipe.release %ring        sm.commit %empty[%index]; sm.advance_position %read

From here on, all communication between threads is explicit in the IR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ....dialects import sm
from ....dialects.mlir import ir, scf
from ....dialects.pipe import (
    AcquireOp,
    ClaimOp,
    CommitOp,
    DrainOp,
    ForEachClaimOp,
    ParityOp,
    ReleaseOp,
    SkipOp,
    TileOp,
    WaitOp,
)
from ....dialects.record import record
from ....dialects.tile import AwaitMmaOp
from ....dialects.tile.ahead import AwaitPieceOp, LoadPieceOp
from ....dialects.tile.edges import EdgeLoadOp, EdgeMulticastOp
from ....dialects.tile.level import LevelLoadOp
from ....dialects.tile.loads import TmaGatherOp, TmaLoadOp, TmaMulticastOp
from ....dialects.tile.scales import ALL_MMAS
from ....dialects.tile.stores import AwaitSumsOp, NextBufferOp, StagingBufferOp
from ...base import PassLog, many, one_of, operations, option, refused, target_of, the_kernel
from ...checks.barriers.barriers import has_phases
from .claims import lower_claim, lower_for_each_claim
from .first_fill import fill_first
from .operand_tiles import describe_operand
from .pipes import (
    finish_copies,
    lower_acquire,
    lower_await_piece,
    lower_commit,
    lower_drain,
    lower_edge_load,
    lower_edge_multicast,
    lower_gather,
    lower_level_load,
    lower_load,
    lower_load_piece,
    lower_multicast,
    lower_next_buffer,
    lower_parity,
    lower_release,
    lower_skip,
    lower_staging_buffer,
    lower_wait,
)
from .prologue import place_ends
from .rings import Rings
from .sums import await_sums, lower_await_mma, surround_mma


@record
class PipesToBarriers:
    """`pipe.acquire`, `commit`, `wait`, `release` → `sm` ops on the barriers of the ring.

    Every thread has a position in each ring that it uses (`sm.position`): the index of its next
    slot, and the parity of its phase there. It waits for the full or empty barrier of that slot,
    and arrives on the other one. Masks name the CTAs that receive an arrival, and regions say which
    lanes arrive. Fences are inserted where tensor memory or the async proxy needs one.

    Tiles that MMAs read by matrix descriptors become `sm.operand`: the descriptor of the first
    slot's tile (`sm.base_descriptor`: LBO, SBO, swizzle), advanced to the slot.

    Before the program, one lane initialises the barriers (`sm.prologue`), a CTA of a cluster reads
    its rank (`sm.cta_place`), the first warp allocates tensor memory, and all threads of the CTA,
    or of its cluster, synchronise. They synchronise again after the program if tensor memory is
    freed or another CTA may still write here.

    `first=auto` lets the load lane begin before all threads have synchronised, if a single CTA has
    one tile, no other thread writes before, and that lane has enough registers: it initialises the
    barriers itself and fills all slots (`sm.early`). With `first=false` all threads synchronise
    before the first load.
    """

    name: ClassVar[str] = "pipes-to-barriers"
    makes: ClassVar[tuple[str, ...]] = (sm.AwaitGridsOp.OPERATION_NAME,)
    first: str = option("auto", one_of("auto", "false"), "auto or false")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        ops = list(operations(kernel.operation))
        if has_phases(kernel):
            raise refused(kernel, "pipes-to-barriers: barriers are in use already; run it once")
        rings = Rings.of(kernel, target_of(module))
        place_ends(kernel, rings)
        lowered = _lower(rings, ops)
        first = fill_first(kernel, rings) if self.first == "auto" else 0
        begun = f", {many(first, 'step')} first" if first else ""
        log.did(f"{many(len(rings.rings), 'ring')}, {many(lowered, 'op')} lowered{begun}")


def _lower(rings: Rings, ops: list[Any]) -> int:
    """Replace each op in program order, and how many there were."""
    count = 0
    for op in ops:
        if isinstance(op, scf.ForOp):
            with ir.InsertionPoint.after(op), op.location:
                finish_copies(rings, op)
        lowering = LOWERINGS.get(type(op)) or AROUND.get(type(op))
        if lowering is None:
            continue
        with ir.InsertionPoint(op), op.location:
            lowering(rings, op)
        if type(op) in LOWERINGS:
            op.operation.erase()
            count += 1
    return count


LOWERINGS: dict[type, Callable[[Rings, Any], None]] = {
    AcquireOp: lower_acquire,
    CommitOp: lower_commit,
    WaitOp: lower_wait,
    ReleaseOp: lower_release,
    SkipOp: lower_skip,
    ParityOp: lower_parity,
    DrainOp: lower_drain,
    StagingBufferOp: lower_staging_buffer,
    NextBufferOp: lower_next_buffer,
    LoadPieceOp: lower_load_piece,
    AwaitPieceOp: lower_await_piece,
    ClaimOp: lower_claim,
    ForEachClaimOp: lower_for_each_claim,
    AwaitMmaOp: lower_await_mma,
    TmaLoadOp: lower_load,
    LevelLoadOp: lower_level_load,
    EdgeLoadOp: lower_edge_load,
    EdgeMulticastOp: lower_edge_multicast,
    TmaGatherOp: lower_gather,
    TmaMulticastOp: lower_multicast,
}
# These stay; who waits for whom stands around them.
AROUND: dict[type, Callable[[Rings, Any], None]] = {
    **dict.fromkeys(ALL_MMAS, surround_mma),
    AwaitSumsOp: await_sums,
    TileOp: describe_operand,
}
