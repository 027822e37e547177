"""Lowers `tile` and `pipe` to a `sm.kernel`: what each thread asks the hardware for.

The one place that knows barrier words, descriptors, addresses and phases. One thread, the leader,
runs pipe ops, TMA copies and MMAs; all threads copy tiles and store the result.

The kernel keeps what a launch needs as an attribute: `launch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...dialects import legality, sm
from ...dialects.mlir import ir
from ...dialects.target import Target
from ...dialects.tile import KernelOp
from ...dialects.tile_types import integers_of
from .. import build
from ..base import PassLog, require, target_of, the_kernel
from ..plan import Plan
from ..thread_rules import program
from .frame import Frame
from .launch import launch_attribute
from .memory import read_plan
from .program import convert, erase_converted


@dataclass(frozen=True)
class SelectInstructions:
    """`tile.kernel` → `sm.kernel`: sm ops, with scf, arith, vector and llvm's loads and stores.

    Every thread waits for the grids before it before it touches global memory, and says when those
    after it may start; `lower-to-nvvm` drops both unless it is asked for them.
    """

    name: ClassVar[str] = "select-instructions"
    makes: ClassVar[tuple[str, ...]] = ("sm.kernel",)

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        _check_grid(kernel, target)
        plan = read_plan(kernel)
        _convert(kernel, plan, target)
        kernel.operation.erase()
        log.did(f"{len(plan.parameters)} parameters")


def _check_grid(kernel: KernelOp, target: Target) -> None:
    broken = legality.grid_extents(target, integers_of(kernel.grid))
    require(kernel, broken, "use a larger tile or persistence")


def _convert(kernel: KernelOp, plan: Plan, target: Target) -> None:
    """Convert the program where it stands, then make it that of a `sm.kernel`."""
    with ir.InsertionPoint(kernel), kernel.location:
        made = sm.KernelOp.of(
            sym_name=kernel.sym_name,
            threads=kernel.threads,
            cluster=kernel.cluster,
            launch=launch_attribute(kernel, plan, target.mma.name),
        )
    entry = kernel.body.blocks[0]
    views, ops = len(entry.arguments), program(entry)
    frame = Frame(kernel, target, plan, _add_parameters(entry, plan))
    with ir.InsertionPoint.at_block_begin(entry), kernel.location:
        frame.open()
    convert(frame, ops)
    erase_converted(frame)
    for _ in range(views):
        entry.erase_argument(0)
    entry.append_to(made.body)


def _add_parameters(
    entry: ir.Block, plan: Plan
) -> dict[tuple[ir.Value, ir.Value | None], ir.Value]:
    """Behind the views that a block takes, a pointer for each parameter of the kernel."""
    return {
        (parameter.argument, _map(parameter)): entry.add_argument(
            build.pointer(0 if parameter.map else build.GLOBAL), ir.Location.unknown()
        )
        for parameter in plan.parameters
    }


def _map(parameter: Any) -> ir.Value | None:
    return parameter.map.map if parameter.map is not None else None
