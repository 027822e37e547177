"""Locations that name the pass of an op, `PASS/OP:LINE:COLUMN`, and from them `.loc` in PTX.

LINE and COLUMN are those of the op in the IR that is printed after the pass
(`tilewright compile --stop-after PASS --emit mlir`). An op that a later pass clones keeps its
origin; one that a pass makes in the place of another gets its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..dialects.mlir import ir, passmanager
from ..passes.lowering.nvvm.lower_to_nvvm import LowerToNvvm
from ..passes.lowering.select_instructions import SelectInstructions
from .pipeline import PassEvent

SCOPES = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly})"
# What they make is made of ops whose origins are known.
INSTRUCTION_PASSES = (SelectInstructions.name, LowerToNvvm.name)
Observer = Callable[[PassEvent], None]


class OriginMarker:
    """An observer of passes that gives each new op of the module its origin."""

    def __init__(self, module: ir.Module, then: Observer | None = None):
        self._module, self._then = module, then

    def __call__(self, event: PassEvent) -> None:
        if event.name not in INSTRUCTION_PASSES:
            self._mark(event)
        if self._then is not None:
            self._then(event)

    def _mark(self, event: PassEvent) -> None:
        printed = ir.Module.parse(event.ir())
        ops = zip(_ops(self._module.operation), _ops(printed.operation), strict=True)
        for op, twin in ops:
            if not _is_origin_of(op, op.location):
                place, file = ir.FileLineColLoc(twin.location), f"{event.name}/{op.name}"
                op.location = ir.Location.file(file, place.start_line, place.start_col)


def keep_origins(module: ir.Module) -> None:
    """Let the translation to LLVM IR keep locations, as directives without debug information."""
    passmanager.PassManager.parse(SCOPES).run(module.operation)


def _ops(operation: ir.Operation) -> Iterator[ir.Operation]:
    """Every op inside, in the order they are printed."""
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from _ops(op.operation)


def _is_origin_of(op: ir.Operation, location: ir.Location) -> bool:
    """Whether a location says that a pass made an op of this name."""
    is_file = isinstance(location, ir.FileLineColLoc)
    return is_file and str(location.filename).endswith(f"/{op.name}")
