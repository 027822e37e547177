"""Lowers an `sm.kernel` to a gpu.module with only llvm and nvvm ops, one pattern per op.

First, ops that compute the same become one, and so do two roles that run the same program, such as
ping-pong consumers. At the end, upstream passes lower scf, arith and vector to the llvm dialect.
The attribute `tile.launch` of the function holds what a launch needs.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from ....dialects import legality, llvm, sm
from ....dialects.entry_names import SHARED_MEMORY
from ....dialects.errors import CompileError
from ....dialects.fallback import fallback_of
from ....dialects.layout import SLOT_ALIGNMENT
from ....dialects.mlir import ir, passmanager
from ....dialects.record import record
from ....dialects.sm.types import Sm
from ....dialects.target import Target
from ....dialects.tile_types import integers_of
from ... import build
from ...base import (
    CONTAINER_ATTRIBUTE,
    MATH_ATTRIBUTE,
    MMA_ATTRIBUTE,
    MULTIPLE_ATTRIBUTE,
    ROWS_ATTRIBUTE,
    PassLog,
    one_of,
    option,
    require,
    target_of,
    walk,
)
from . import (
    barriers as nvvm_barriers,
)
from . import (
    copies as nvvm_copies,
)
from . import (
    fragments as nvvm_fragments,
)
from . import (
    lanes as nvvm_lanes,
)
from . import (
    tensor_core as nvvm_tensor_core,
)
from . import (
    wgmma as nvvm_wgmma,
)
from .named_sums import Named, copied, erase_slots, named_sums, names_of
from .rounded_sums import round_in_place
from .twin_roles import fold_twin_roles

TENSOR_MAP_BYTES = 128
GPU_MODULE = "gpu.module"
PDL = ("auto", "true", "false", "early")
MERGED = "builtin.module(cse)"
"""Pieces of an epilogue compute much alike, which is then neither compared nor lowered."""
UPSTREAM = (
    "builtin.module(convert-vector-to-llvm,convert-scf-to-cf,convert-cf-to-llvm,"
    "convert-arith-to-llvm,convert-math-to-llvm,convert-nvvm-to-llvm,"
    "gpu.module(llvm.func(reconcile-unrealized-casts,canonicalize,cse)))"
)
PATTERNS = {
    **nvvm_barriers.PATTERNS,
    **nvvm_copies.PATTERNS,
    **nvvm_lanes.PATTERNS,
    **nvvm_tensor_core.PATTERNS,
    **nvvm_fragments.PATTERNS,
}


@record
class LowerToNvvm:
    """`sm.kernel` → `llvm.func` in a `gpu.module`, llvm and nvvm ops only.

    `pdl` enables programmatic dependent launch: every thread waits for preceding grids before it
    accesses global memory, so that the kernel may start while their last CTAs run. Later grids may
    start when its CTAs end or, with `early`, once their loads are issued. `auto` is true for
    sm_90a, where it was never slower on an H200, and for sm_100a, else false.
    """

    name: ClassVar[str] = "lower-to-nvvm"
    makes: ClassVar[tuple[str, ...]] = (GPU_MODULE,)
    pdl: str = option("auto", one_of(*PDL), "auto, true, false or early")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        _run_unverified(MERGED, module)
        kernel = _the_kernel(module)
        target = target_of(module)
        pdl = self._pdl(target)
        if pdl != "false":
            broken = legality.grid_dependencies(target)
            require(kernel, broken, f"use pdl=false, not {pdl}", "lower-to-nvvm: ")
        _tell_lowered(module)
        with ir.InsertionPoint(kernel), kernel.location:
            functions = _gpu_module(target)
        folded = fold_twin_roles(kernel)
        ops = walk(kernel, Sm.Operation)
        with ir.InsertionPoint(functions), kernel.location:
            _declare_globals([op for op in ops if isinstance(op, sm.TableOp)])
            function = _declare_function(kernel, pdl)
            _state_occupancy(function, ops)
        named = named_sums(kernel)
        _convert(ops, named, _unwanted(pdl))
        erase_slots(named)
        _move_body(kernel, function)
        _run_upstream(module)
        log.did(f"pdl={pdl}" + (", 2 roles in one program" if folded else ""))

    def _pdl(self, target: Target) -> str:
        if self.pdl != "auto":
            return self.pdl
        return "true" if target.dependent_launch else "false"


def _the_kernel(module: ir.Module) -> sm.KernelOp:
    tops = list(module.body.operations)
    if any(op.operation.name == GPU_MODULE for op in tops):
        raise CompileError("lower-to-nvvm: the module is lowered already; run it once")
    kernels = [op for op in tops if isinstance(op, sm.KernelOp)]
    if len(kernels) != 1:
        raise CompileError(
            f"lower-to-nvvm: the module must hold one sm.kernel, got {len(kernels)}; "
            "run select-instructions first"
        )
    return kernels[0]


def _tell_lowered(module: ir.Module) -> None:
    """Drop attributes of the module that its instructions or `tile.launch` now express."""
    attributes = module.operation.attributes
    for name in (MMA_ATTRIBUTE, MATH_ATTRIBUTE, ROWS_ATTRIBUTE, MULTIPLE_ATTRIBUTE):
        if name in attributes:
            del attributes[name]
    attributes[CONTAINER_ATTRIBUTE] = ir.UnitAttr.get()


def _gpu_module(target: Target) -> ir.Block:
    chip = ir.Attribute.parse(f'#nvvm.target<chip = "{target.chip}">')
    attributes = {"sym_name": ir.StringAttr.get("kernels"), "targets": ir.ArrayAttr.get([chip])}
    made = ir.Operation.create(GPU_MODULE, attributes=attributes, regions=1)
    return made.regions[0].blocks.append()


def _declare_globals(tables: list[sm.TableOp]) -> None:
    """Declare dynamic shared memory, and each table once."""
    memory = ir.Type.parse("!llvm.array<0 x i8>")
    llvm.global_(SHARED_MEMORY, memory, build.SHARED, "external", alignment=SLOT_ALIGNMENT)
    for symbol, table in {table.symbol.value: table for table in tables}.items():
        (count,) = table.values.type.shape
        type_ = ir.Type.parse(f"!llvm.array<{count} x i32>")
        llvm.global_(symbol, type_, build.GLOBAL, "internal", constant=table.values)


def _declare_function(kernel: sm.KernelOp, pdl: str) -> ir.Operation:
    types = [argument.type for argument in kernel.body.blocks[0].arguments]
    signature = ", ".join(str(type_) for type_ in types)
    function = llvm.func(
        kernel.sym_name.value,
        ir.Type.parse(f"!llvm.func<void ({signature})>"),
        [_parameter_attributes(type_) for type_ in types],
    )
    attributes = function.attributes
    for flag in ("gpu.kernel", "nvvm.kernel"):
        attributes[flag] = ir.UnitAttr.get()
    attributes["nvvm.reqntid"] = ir.DenseI32ArrayAttr.get([kernel.threads.value, 1, 1])
    cluster = integers_of(kernel.cluster)
    if cluster != [1, 1, 1] and fallback_of(kernel) is None:  # else a launch has two shapes
        attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get(cluster)
    attributes["tile.launch"] = _launch(kernel, pdl)
    return function


def _state_occupancy(function: ir.Operation, ops: list[Any]) -> None:
    """Write how many CTAs fit on a multiprocessor, if an op states it. If threads change their
    number of registers, ptxas needs to know the initial number."""
    ctas = [op.ctas.value for op in ops if isinstance(op, sm.ResidentOp)]
    ctas += [1 for op in ops if isinstance(op, sm.SetRegistersOp)]
    if ctas:
        least = ir.IntegerAttr.get(build.i32(), max(ctas))
        function.attributes["nvvm.minctasm"] = least


def _parameter_attributes(type_: ir.Type) -> ir.DictAttr:
    """Tensor maps are passed by value (grid constants); other pointers need no attributes."""
    if type_ != build.pointer():
        return ir.DictAttr.get({})
    return ir.DictAttr(
        ir.Attribute.parse(
            f"{{llvm.byval = !llvm.array<{TENSOR_MAP_BYTES} x i8>, nvvm.grid_constant, "
            "llvm.align = 64 : i64}"
        )
    )


def _launch(kernel: sm.KernelOp, pdl: str) -> ir.StringAttr:
    """The launch, and whether it may start before preceding grids have ended."""
    launch = json.loads(kernel.launch.value)
    launch["schedule"]["programmatic_dependent_launch"] = pdl != "false"
    return ir.StringAttr.get(json.dumps(launch, sort_keys=True))


def _unwanted(pdl: str) -> tuple[type, ...]:
    """The ops of programmatic dependent launch, if it is off."""
    if pdl == "false":
        return (sm.AwaitGridsOp, sm.LaunchDependentsOp)
    return (sm.LaunchDependentsOp,) if pdl == "true" else ()


def _convert(ops: list[Any], named: Named, unwanted: tuple[type, ...]) -> None:
    """Replace each op by its lowering, in program order."""
    for run in nvvm_wgmma.runs(ops):
        if isinstance(run[-1], nvvm_wgmma.Multiply):
            nvvm_wgmma.lower_run(run, named)
        else:
            _convert_alone(run[-1], named, unwanted)


def _convert_alone(op: Any, named: Named, unwanted: tuple[type, ...]) -> None:
    pattern = PATTERNS.get(type(op))
    if pattern is None:
        return
    registers = names_of(op.before, named) if isinstance(op, sm.PinOp) else None
    in_place = registers is not None and round_in_place(op, registers)
    if not isinstance(op, unwanted) and not in_place:
        with ir.InsertionPoint(op), op.location:
            value = copied(op, registers) if registers else pattern(op)
        if value is not None:
            values = value if isinstance(value, list) else [value]
            for result, each in zip(op.operation.results, values, strict=True):
                result.replace_all_uses_with(each)
    op.operation.erase()


def _run_upstream(module: ir.Module) -> None:
    """Verify once before; `run_passes` verifies afterwards. Verifying between these passes would
    take half of the time."""
    module.operation.verify()
    _run_unverified(UPSTREAM, module)


def _run_unverified(pipeline: str, module: ir.Module) -> None:
    manager = passmanager.PassManager.parse(pipeline)
    manager.enable_verifier(False)
    manager.run(module.operation)


def _move_body(kernel: sm.KernelOp, function: ir.Operation) -> None:
    entry = kernel.body.blocks[0]
    entry.append_to(function.regions[0])
    with ir.InsertionPoint(entry), kernel.location:
        llvm.return_()
    kernel.operation.erase()
