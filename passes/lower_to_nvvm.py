"""Lowers `tile` and `pipe` to a gpu.module of llvm and nvvm ops only.

The one place that knows barrier words, descriptors, addresses and phases. One thread, the leader,
runs pipe ops, TMA copies and MMAs; all threads copy tiles and store the result. After the source
ops are emitted with scf and arith, upstream passes take those to the llvm dialect.

The module keeps what a launch needs as attributes of the kernel: `tile.launch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..dialects.entry_names import SHARED_MEMORY
from ..dialects.layout import SLOT_ALIGNMENT
from ..dialects.mlir import gpu, ir, llvm, nvvm, passmanager
from ..dialects.pipe import SetRegistersOp
from ..dialects.target import Target
from ..dialects.tile import KernelOp
from ..dialects.tile_types import integers_of
from .base import PassLog, one_of, option, refused, target_of, the_kernel, walk
from .lowering import build as b
from .lowering.frame import Frame
from .lowering.launch import launch_attribute
from .lowering.plan import Plan, make_plan
from .lowering.program import emit_program
from .lowering.tiles import declare_curve

TENSOR_MAP_BYTES = 128
PDL = ("auto", "true", "false", "early")
UPSTREAM = (
    "builtin.module(convert-vector-to-llvm,convert-scf-to-cf,convert-cf-to-llvm,"
    "convert-arith-to-llvm,convert-math-to-llvm,convert-nvvm-to-llvm,"
    "gpu.module(llvm.func(reconcile-unrealized-casts,canonicalize,cse)))"
)


@dataclass(frozen=True)
class LowerToNvvm:
    """`tile.kernel` → `llvm.func` in a `gpu.module`, llvm and nvvm ops only.

    `pdl` is for programmatic dependent launch: every thread waits for the grids before it before it
    touches global memory, so that the kernel may be started while their last CTAs run. The grids
    after it may start when its CTAs end or, with `early`, once their loads are issued. `auto` is
    true where an H200 was never slower for it (sm_90a), else false.
    """

    name: ClassVar[str] = "lower-to-nvvm"
    makes: ClassVar[tuple[str, ...]] = ("gpu.module",)
    pdl: str = option("auto", one_of(*PDL), "auto, true, false or early")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        _check_grid(kernel, target)
        plan = make_plan(kernel, target)
        _emit(module, kernel, plan, target, self._pdl(target))
        kernel.operation.erase()
        passmanager.PassManager.parse(UPSTREAM).run(module.operation)
        columns = f", {plan.tmem_columns} tensor-memory columns" if plan.tmem_columns else ""
        memory = f"{plan.shared_bytes} bytes of shared memory{columns}"
        log.did(f"{len(plan.parameters)} parameters, {memory}")

    def _pdl(self, target: Target) -> str:
        if self.pdl != "auto":
            return self.pdl
        return "true" if target.dependent_launch else "false"


def _check_grid(kernel: KernelOp, target: Target) -> None:
    limits = (target.grid_x_max, target.grid_y_max)
    for axis, extent, limit in zip("MN", integers_of(kernel.grid), limits, strict=False):
        if extent > limit:
            raise refused(
                kernel,
                f"a grid can have {limit} CTAs along {axis}, got {extent}; use a larger tile or "
                "persistence",
            )


def _emit(module: ir.Module, kernel: KernelOp, plan: Plan, target: Target, pdl: str) -> None:
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    waits = pdl != "false"
    with ir.InsertionPoint(kernel), kernel.location:
        chip = ir.Attribute.parse(f'#nvvm.target<chip = "{target.chip}">')
        gpu_module = gpu.GPUModuleOp("kernels", targets=ir.ArrayAttr.get([chip]))
    body = gpu_module.bodyRegion.blocks.append()
    with ir.InsertionPoint(body), kernel.location:
        _declare_shared()
        declare_curve(kernel, plan.cluster)
        function = _declare_function(kernel, plan, waits)
    entry = function.body.blocks[0]
    keys = [(parameter.argument, _map(parameter)) for parameter in plan.parameters]
    parameters = dict(zip(keys, entry.arguments, strict=True))
    frame = Frame(kernel, target, plan, parameters, lets_start=pdl == "early")
    with ir.InsertionPoint(entry), kernel.location:
        frame.open()
        if waits:
            nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
        emit_program(frame, kernel.body.blocks[0])
        frame.close()
        llvm.return_()


def _map(parameter: Any) -> ir.Value | None:
    return parameter.map.map if parameter.map is not None else None


def _declare_shared() -> None:
    llvm.GlobalOp(
        ir.Type.parse("!llvm.array<0 x i8>"),
        SHARED_MEMORY,
        ir.Attribute.parse("#llvm.linkage<external>"),
        alignment=SLOT_ALIGNMENT,
        addr_space=b.SHARED,
    )


def _declare_function(kernel: KernelOp, plan: Plan, pdl: bool) -> llvm.LLVMFuncOp:
    types = [b.pointer(0 if parameter.map else b.GLOBAL) for parameter in plan.parameters]
    signature = ", ".join(str(type_) for type_ in types)
    function = llvm.LLVMFuncOp(
        kernel.sym_name,
        ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<void ({signature})>")),
        arg_attrs=ir.ArrayAttr.get([_parameter_attributes(item) for item in plan.parameters]),
    )
    attributes = function.operation.attributes
    for flag in ("gpu.kernel", "nvvm.kernel"):
        attributes[flag] = ir.UnitAttr.get()
    attributes["nvvm.reqntid"] = ir.DenseI32ArrayAttr.get([kernel.threads.value, 1, 1])
    if walk(kernel, SetRegistersOp):  # ptxas needs to know how many registers a thread starts with
        attributes["nvvm.minctasm"] = ir.IntegerAttr.get(b.i32(), 1)
    cluster = integers_of(kernel.cluster)
    if plan.cluster.size > 1:
        attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get(cluster)
    attributes["tile.launch"] = launch_attribute(kernel, plan, pdl)
    function.body.blocks.append(*types)
    return function


def _parameter_attributes(parameter: Any) -> ir.DictAttr:
    if parameter.map is None:
        return ir.DictAttr.get({})
    return ir.DictAttr(
        ir.Attribute.parse(
            f"{{llvm.byval = !llvm.array<{TENSOR_MAP_BYTES} x i8>, nvvm.grid_constant, "
            "llvm.align = 64 : i64}"
        )
    )
