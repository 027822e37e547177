"""The invariants of a kernel on which every pass and the lowering rely.

    ops         a kernel holds ops of `tile` and `pipe`, loops, and arithmetic on their counters
    attributes  no op has an attribute that nobody reads
    handles     rings, maps, accumulators and places are made outside of loops
    loops       carry no values, have constant bounds, a positive step and an iteration
    roles       stand side by side, with nothing that acts beside them; their warps are the
                kernel's; those that hold or read sums are whole warpgroups
    tiles       every CTA computes its own tile, or all roles walk the same tiles; all of C is
                covered by whole clusters
    cluster     CTAs that share an operand need the same tile of it, and wait for it at a pipe
    views       are a, b, what the epilogue reads, c, in global memory, the contiguous axis without
                gaps; a tensor map says what its view is
    indices     are sums and products of counters and places, in reach of 32 bits
    shapes      an MMA of the target takes the tiles, and sums in its own type
    stacks      each tile is of one matrix, and so is all that it reads and writes (check_stacks)
    sums        the first MMA of a tile starts them; one store of each output per agent ends them
    epilogue    holds only ops on one element, computed from its own values
    source      says which arguments of the source's function the inputs are (check_launch)
    registers   that agents ask for are there (check_launch)

The pass manager runs them on what comes in and on what each pass leaves, before the protocol of
pipes; what a rule needs to look at the operands of an op is in `check_operands`, and the rules of
tiles, of the epilogue and of what is loaded ahead of it are in `check_tiles`, `check_epilogue` and
`check_ahead`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from ...dialects.fallback import FALLBACK
from ...dialects.mlir import ir, scf
from ...dialects.mma_units import WARP
from ...dialects.pipe import (
    ClaimOp,
    CreateOp,
    ForEachClaimOp,
    ForEachTurnOp,
    Pipe,
    RoleOp,
    SetRegistersOp,
)
from ...dialects.shared_columns import SHARED
from ...dialects.sm.memory import ColumnsOp
from ...dialects.sm.ring_memory import MEMORY_OPS
from ...dialects.sm.threads import ConvergeOp, RunOp, TeamOp, WarpsOp
from ...dialects.target import WARP_THREADS, WARPGROUP_WARPS, Target
from ...dialects.tile import (
    MMAS,
    STORES,
    CopyOp,
    CtaTileOp,
    ElementOp,
    ForEachTileOp,
    KernelOp,
    LoadOp,
    MatmulOp,
    RotatedStepOp,
    SplitStartOp,
    TmaGatherOp,
    TmaLoadOp,
    TmaMulticastOp,
    YieldOp,
)
from ...dialects.tile.ahead import HeldElementOp, LoadAheadOp, ReadAheadOp, StagedElementOp
from ...dialects.tile.batches import BatchOp, CountedBatchOp, MatrixOp, OrderedBatchOp, TransposedOp
from ...dialects.tile.grouped_products import GroupAtomsOp, GroupScalesOp
from ...dialects.tile.groups import (
    GatheredRowsOp,
    GroupColumnsOp,
    GroupDepthOp,
    GroupOp,
    GroupRowsOp,
    GroupStartsOp,
    GroupStepsOp,
)
from ...dialects.tile.marks import MarkOp
from ...dialects.tile.sums import ViewMmaOp
from ...dialects.tile_types import Tile
from ..base import (
    COUNTS,
    SOURCE_ATTRIBUTE,
    SWAPPED_ATTRIBUTE,
    refuse_unread,
    refused,
    target_of,
    walk,
)
from ..clone import constant_of, iterations_of
from ..dynamic_rows import is_said_depth
from ..groups import LEVEL_ATTRIBUTE
from ..indices import first_value
from ..mma_uses import is_synchronous
from ..outputs import outputs_of, outputs_of_store
from ..thread_rules import FREE, REGIONS, members
from ..tile_order import ORDER_ATTRIBUTE, check_order
from ..warp_grids import WARP_GRID_ATTRIBUTE, warps_of
from .groups.stacks import check_stacks
from .launch.launch import check_registers, check_source
from .launch.marks import check_mark
from .launch.roles import check_names, check_place, check_threads
from .launch.tiles import check_tiles
from .products.blockwise import check_steps
from .products.edges import check_edges
from .products.level import check_level
from .products.mma import check_mma
from .products.operands import check_load, check_views
from .products.rotation import check_rotation
from .products.shares import check_shares, check_view_mma
from .products.swapped import check_swapped
from .stores.ahead import check_ahead, check_load_ahead, check_read_ahead
from .stores.epilogue import check_epilogue
from .stores.stores import check_store

MEMORY = get_args(MEMORY_OPS)
HANDLES = (CtaTileOp, *FREE)
ROLES = (RoleOp, WarpsOp)
TILE_LOOPS = (ForEachTileOp, ForEachClaimOp, ForEachTurnOp)
LOADS = (LoadOp, TmaLoadOp, TmaGatherOp, TmaMulticastOp, CopyOp)
PARTS = (
    BatchOp, CountedBatchOp, OrderedBatchOp, MatrixOp, TransposedOp, GroupOp, GroupRowsOp,
    GatheredRowsOp, GroupStartsOp,
    GroupDepthOp, GroupColumnsOp, GroupStepsOp, GroupAtomsOp, GroupScalesOp, SplitStartOp,
    RotatedStepOp,
)  # fmt: skip
ELEMENTS = (ElementOp, StagedElementOp, HeldElementOp)
NO_PART_OF_A_KERNEL = (MatmulOp, KernelOp, *ELEMENTS, YieldOp)
KNOWN = {
    op: frozenset(field.name for field in op._fields if type(field).__name__ == "AttributeDef")
    | (COUNTS if op._ODS_OPERAND_SEGMENTS else frozenset())
    | (frozenset({SHARED}) if op in (CreateOp, ColumnsOp) else frozenset())
    for op in (*Tile.operations, *Pipe.operations, WarpsOp, RunOp, ConvergeOp, TeamOp, *MEMORY)
    if op not in NO_PART_OF_A_KERNEL
}
OURS = KNOWN.keys() - set(PARTS)
BY_ITSELF: tuple[tuple[Any, Callable[[KernelOp, Any, Target], None]], ...] = (
    (LOADS, check_load),
    (LoadAheadOp, lambda _, op, __: check_load_ahead(op)),
    (ReadAheadOp, check_read_ahead),
    (MarkOp, lambda kernel, op, _: check_mark(kernel, op)),
)
"""What is checked of an op wherever it stands."""
BESIDE_ROLES = (*HANDLES, *PARTS, MarkOp)
DIM = "memref.dim"
ARITHMETIC = {
    DIM: frozenset(),
    "arith.constant": frozenset({"value"}),
    "arith.cmpi": frozenset({"predicate"}),
    **{f"arith.{name}i": frozenset({"overflowFlags"}) for name in ("add", "sub", "mul")},
}
OF_KERNEL = frozenset(
    {
        *(SOURCE_ATTRIBUTE, SWAPPED_ATTRIBUTE, LEVEL_ATTRIBUTE),
        *(WARP_GRID_ATTRIBUTE, ORDER_ATTRIBUTE, FALLBACK),
        *(field.name for field in KernelOp._fields),
    }
)


def check_kernels(module: ir.Module) -> None:
    """Refuse, at the op, a kernel of the module that breaks a rule."""
    for kernel in module.body.operations:
        if isinstance(kernel, KernelOp):
            Check(kernel, target_of(module)).run()


class Check:
    """A walk over one kernel.

    Of the agent at hand, `sums` are the accumulators that MMAs have summed into so far, `held` the
    shapes of those that its warps hold or read, `moves` whether it takes or gives registers.
    """

    def __init__(self, kernel: KernelOp, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.ops = list(members(kernel.body.blocks[0]))
        self.roles = [op for op in self.ops if isinstance(op, ROLES)]
        self.places = [op for op in self.ops if isinstance(op, CtaTileOp)]
        self.tile_loops: list[Any] = []
        self.sums: set[ir.Value] = set()
        self.held: list[tuple[int, int]] = []
        self.ended: set[ir.Value] = set()
        self.synchronous: bool | None = None
        self.moves = False
        self.stored: list[ir.Value] = []
        self.mmas = 0

    def run(self) -> None:
        """Check all rules."""
        refuse_unread(self.kernel, OF_KERNEL)
        check_source(self.kernel)
        check_views(self.kernel)
        check_swapped(self.kernel)
        check_level(self.kernel, self.target)
        check_order(self.kernel)
        for region in walk(self.kernel, REGIONS):
            refuse_unread(region, KNOWN[type(region)])
        warps = self._agents()
        self._results()
        check_stacks(self.kernel)
        check_steps(self.kernel)
        check_rotation(self.kernel)
        check_edges(self.kernel)
        if self.roles:
            self._beside_roles()
            check_names(self.roles)
            check_threads(self.kernel, warps)
        check_registers(self.kernel, self.roles, self.target)
        check_tiles(self.kernel, self.places, self.tile_loops)

    def _agents(self) -> int:
        """Each role, or the kernel that has none; how many warps the roles have."""
        if not self.roles:
            self._agent(self.kernel, self.ops, 0, self.kernel.threads.value // WARP_THREADS)
        first = 0
        for number, role in enumerate(self.roles, 1):
            refuse_unread(role, KNOWN[type(role)])
            if isinstance(role, WarpsOp):
                check_place(role, first, number)
            self._agent(role, list(members(role.body.blocks[0])), first, role.warps.value)
            first += role.warps.value
        return first

    def _results(self) -> None:
        if not self.mmas or not self.stored:
            raise refused(
                self.kernel,
                f"sums: a kernel must multiply and store, got {self.mmas} MMAs and "
                f"{len(self.stored)} stores; give it both",
            )
        missing = [view for view in outputs_of(self.kernel) if view not in self.stored]
        if missing:
            raise refused(
                self.kernel,
                f"sums: each output must be stored, got {len(missing)} that are not; store them",
            )

    def _agent(self, agent: Any, ops: list[Any], first: int, warps: int) -> None:
        before, self.stored = self.stored, []
        self.sums, self.ended = set(), set()
        self.held, self.moves = [], False
        self._block(ops, loops=(), top=True)
        self._stores_once(agent)
        self.stored += before
        if self.held or self.moves:
            self._warpgroups(agent, first, warps)

    def _stores_once(self, agent: Any) -> None:
        """An agent that stores must store each output once, or all of them together."""
        if self.sums and self.held and not self.stored:  # nobody else reads its registers
            raise refused(agent, "sums: an agent must store the sums that it holds, got no store")
        outputs = outputs_of(self.kernel)
        most = max((self.stored.count(view) for view in outputs), default=0)
        if most > 1 or len(self.stored) not in (0, len(outputs)):
            got = len(self.stored)
            rule = "sums: one store must end the sums of a tile"
            if len(outputs) > 1:
                rule = f"sums: one store of each of {len(outputs)} outputs must end a tile's sums"
            raise refused(agent, f"{rule}, got {got}; drop all but one")

    def _block(self, ops: list[Any], loops: tuple[Any, ...], top: bool) -> None:
        for op in ops:
            self._op(op, loops, top)

    def _op(self, op: Any, loops: tuple[Any, ...], top: bool) -> None:
        kind = type(op)
        if kind in KNOWN:
            refuse_unread(op, KNOWN[kind])
        if kind in OURS:
            self._ours(op, loops, top)
        elif kind is scf.ForOp:
            _check_loop(op)
            self._block(list(members(op.body)), (*loops, op), top=False)
        elif self._computes(op):
            refuse_unread(op, ARITHMETIC[op.operation.name])
        elif kind not in PARTS:
            raise refused(
                op,
                "ops: a kernel holds ops of tile and pipe, scf.for, and arith.constant, addi, "
                "subi, muli and cmpi, got another; take it out of the kernel",
            )

    def _computes(self, op: Any) -> bool:
        """Whether an op is arithmetic, or asks for the K that a launch says."""
        name = op.operation.name
        return name in ARITHMETIC and (name != DIM or is_said_depth(self.kernel, op.result))

    def _ours(self, op: Any, loops: tuple[Any, ...], top: bool) -> None:
        self._check_place(op, nested=bool(loops) or not top, top=top)
        if isinstance(op, TILE_LOOPS):
            self.tile_loops.append(op)
            self._block(list(members(op.body.blocks[0])), (), top=False)
        elif isinstance(op, SetRegistersOp):
            self.moves = True
        elif isinstance(op, (*MMAS, ViewMmaOp)):
            self._mma(op, loops)
        elif isinstance(op, STORES):
            self._store(op, loops)
        for kinds, check in BY_ITSELF:
            if isinstance(op, kinds):
                check(self.kernel, op, self.target)

    def _check_place(self, op: Any, nested: bool, top: bool) -> None:
        """Refuse in a loop, or in another op, what must stand in the kernel or its agent."""
        if isinstance(op, HANDLES) and nested:
            raise refused(op, "handles: must stand outside of loops, got one in a loop; move it up")
        if isinstance(op, ROLES) and (not top or op not in self.roles):
            raise refused(op, "roles: must stand in the kernel, got one inside another op; move it")
        if isinstance(op, (*TILE_LOOPS, ClaimOp, SetRegistersOp)) and nested:
            raise refused(op, "tiles: must stand outside of loops, got one in a loop; move it up")

    def _mma(self, op: Any, loops: tuple[Any, ...]) -> None:
        self.mmas += 1
        check = check_view_mma if isinstance(op, ViewMmaOp) else check_mma
        check(self.kernel, op, self.target)
        if not self.target.has_tensor_memory:
            self.held.append(op.acc.type.shape)
        synchronous = isinstance(op, ViewMmaOp) or is_synchronous(op)
        if self.synchronous not in (None, synchronous):
            raise refused(
                op,
                "sums: all MMAs must read slots, or all tiles that threads load, got both; take "
                "one way",
            )
        self.synchronous = synchronous
        if op.acc in self.ended:
            raise refused(op, "sums: must stand before the store, got an MMA after it; move it")
        if op.acc in self.sums:
            return
        self.sums.add(op.acc)
        first = first_value(op.accumulate, loops)
        if first != 0:
            got = "one that is not known" if first is None else "one that adds to what is not there"
            raise refused(
                op,
                f"sums: the first MMA of a tile must have accumulate false, got {got}; compare the "
                "loop's counter with its lower bound",
            )

    def _store(self, op: Any, loops: tuple[Any, ...]) -> None:
        self.stored += outputs_of_store(op)
        self.held.append(op.acc.type.shape)
        if loops:
            raise refused(op, "sums: must stand after the loop over K, got a store in it; move it")
        through_ring = getattr(op.acc.owner, "name", "") == "pipe.tile"
        if not through_ring and op.acc not in self.sums:
            raise refused(
                op, "sums: must follow the MMAs that it stores, got none before it; move it"
            )
        self.ended.add(op.acc)
        check_store(self.kernel, op, self.target)
        check_ahead(op)
        check_epilogue(op, self.kernel)

    def _beside_roles(self) -> None:
        for op in self.ops:
            if isinstance(op, ROLES):
                continue
            if not isinstance(op, BESIDE_ROLES) and not self._computes(op):
                raise refused(
                    op, "roles: nothing may act beside roles, got this op; move it into one"
                )
            self._op(op, (), top=True)

    def _warpgroups(self, agent: Any, first: int, warps: int) -> None:
        """Sums are read, and in registers made, by warpgroups; so are registers moved."""
        if self.target.threads_multiply:
            check_shares(agent, self.held, warps, self.target)
            return
        wanted, unit = warps, WARPGROUP_WARPS
        for shape in self.held:
            wanted = warps_of(self.kernel, shape, self.target)
        if self.target.mma.issuer == WARP and not self.moves:
            unit = 1
        if warps != wanted or warps % unit or first % unit:
            needed = f"{wanted} warps" if self.held else "whole warpgroups"
            raise refused(
                agent,
                f"roles: must have {needed} from a multiple of {WARPGROUP_WARPS} on, got {warps} "
                f"from warp {first} on; change its warps or its place",
            )


def _check_loop(loop: scf.ForOp) -> None:
    if len(loop.inner_iter_args):
        count = len(loop.inner_iter_args)
        raise refused(
            loop, f"loops: must not carry values, got {count}; keep sums in a tile.accumulator"
        )
    refuse_unread(loop, frozenset())
    steps = iterations_of(loop)
    if not steps:
        bounds = [constant_of(each) for each in (loop.lowerBound, loop.upperBound, loop.step)]
        got = " to {} step {}".format(*("?" if each is None else each for each in bounds[1:]))
        raise refused(
            loop,
            "loops: must have constant bounds, a positive step and an iteration, got "
            f"{'?' if bounds[0] is None else bounds[0]}{got}; make them constants",
        )
