"""Lowers `tile` and `pipe` to an `sm.kernel`, whose ops are single instructions.

The IR already says which threads run an op, where tiles and barriers are, and which slot and phase
a wait means. Here offsets become addresses, and each op becomes the instructions of the target.

The attribute `launch` of the kernel holds what a launch needs.
"""

from __future__ import annotations

from typing import ClassVar

from ...dialects import legality, sm
from ...dialects.epilogue import FAST
from ...dialects.fallback import FALLBACK
from ...dialects.mlir import ir
from ...dialects.record import record
from ...dialects.target import Target
from ...dialects.tile import KernelOp
from ...dialects.tile.parts import WorkspaceOp
from ...dialects.tile.sums import LaneMmaOp
from ...dialects.tile_types import integers_of
from .. import build
from ..base import PassLog, many, require, target_of, the_kernel, walk
from ..dynamic_rows import size_names
from ..kernel_parameters import Parameter, parameters_of
from ..plan import cluster_of
from ..team import team_op
from ..thread_rules import program
from .epilogue.fast_functions import FastFunctions
from .epilogue.late import hides_functions, in_turns, make_numbers_late, shares_tiles
from .launch.epilogue import all_stores, describe_math, policy_of
from .launch.launch import launch_attribute
from .program import convert_kernel
from .scope.scope import Scope, lowered_as
from .tiles.tiles import lower_workspace
from .wgmma.first_step import take_first_steps
from .wgmma.step_loop import put_steps_in_loops, steps_of_turns
from .wgmma.unswitch import unswitch


@record
class SelectInstructions:
    """`tile.kernel` → `sm.kernel`: sm ops, with scf, arith, vector and llvm's loads and stores.

    Every thread waits for preceding grids before it accesses global memory, and signals when later
    ones may start (programmatic dependent launch); what `lower-to-nvvm` keeps of both is its `pdl`.
    """

    name: ClassVar[str] = "select-instructions"
    makes: ClassVar[tuple[str, ...]] = ("sm.kernel",)

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        _check_grid(kernel, target)
        parameters = parameters_of(kernel)
        _convert(kernel, target, parameters)
        kernel.operation.erase()
        log.did(f"{many(len(parameters), 'parameter')}")


def _check_grid(kernel: KernelOp, target: Target) -> None:
    broken = legality.grid_extents(target, integers_of(kernel.grid))
    require(kernel, broken, "use a larger tile or persistence")


def _convert(kernel: KernelOp, target: Target, parameters: list[Parameter]) -> None:
    """Convert the program where it stands, then make it that of a `sm.kernel`.

    Workspaces come after the tensors. A number of rows or of matrices that a launch says is the
    last parameter.
    """
    unswitch(kernel)
    policy = policy_of(kernel)
    with ir.InsertionPoint(kernel), kernel.location:
        made = sm.KernelOp.of(
            sym_name=kernel.sym_name,
            threads=kernel.threads,
            cluster=kernel.cluster,
            launch=launch_attribute(kernel, target.mma.name),
        )
    if FALLBACK in kernel.operation.attributes:
        made.operation.attributes[FALLBACK] = kernel.operation.attributes[FALLBACK]
    computes = bool(describe_math(kernel))
    if policy == FAST:
        by_rcp = not target.packs_f32 and hides_functions(kernel)
        by_powers = target.awaits_mmas and shares_tiles(kernel, target)
        for store in all_stores(kernel):
            FastFunctions(store.epilogue.blocks[0], by_rcp, by_powers).rewrite()
    if target.issuers_store and computes:
        make_numbers_late(kernel)
    if not computes or not in_turns(kernel):
        take_first_steps(kernel, target)
    steps = 0 if computes else steps_of_turns(kernel, target)
    entry = kernel.body.blocks[0]
    views, ops, sizes = len(entry.arguments), program(entry), size_names(kernel)
    scope = Scope(kernel, target, cluster_of(kernel), sizes, {})
    with ir.InsertionPoint.after(team_op(kernel)), kernel.location:
        for parameter in parameters:
            _lower_parameter(entry, parameter)
        for workspace in walk(kernel, WorkspaceOp):
            pointer = entry.add_argument(build.pointer(build.GLOBAL), ir.Location.unknown())
            workspace.memory.replace_all_uses_with(lower_workspace(scope, workspace, pointer))
        if walk(kernel, LaneMmaOp):  # all loads of a step are to be under way together
            sm.ResidentOp.of(ctas=1)
        for _ in sizes:  # the rows of C, its matrices, after the pointers
            entry.add_argument(build.i32(), ir.Location.unknown())
    convert_kernel(scope, ops)
    for _ in range(views):
        entry.erase_argument(0)
    entry.append_to(made.body)
    if steps:
        put_steps_in_loops(made, steps)


def _lower_parameter(entry: ir.Block, parameter: Parameter) -> None:
    """A pointer after the views that the block takes, in the place of a map or of a view."""
    map_ = parameter.map
    pointer = entry.add_argument(build.pointer(0 if map_ else build.GLOBAL), ir.Location.unknown())
    value = map_.map if map_ else parameter.argument
    value.replace_all_uses_with(lowered_as(pointer, value.type))
