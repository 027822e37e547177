"""Records the time at which each role reaches certain points of the kernel.

    kernel(%a, %b, %c)           kernel(%a, %b, %marks, %c)
      role "load" { … }       →    tile.mark %marks {place = "start"}
      role "consumer" { … }        role "load" { mark "load.begin"; … commit; mark "load.issued" … }
                                   role "consumer" { mark; … wait; mark; … mark; store; mark … }

The kernel takes one more tensor after those that its epilogue reads: a row for each CTA, a column
for each point.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar, NamedTuple

from ...dialects.mlir import ir
from ...dialects.pipe import CommitOp, RoleOp, WaitOp
from ...dialects.record import record
from ...dialects.tile import STORES, KernelOp
from ...dialects.tile.marks import FIRST, LAST, MARKS, UNITS, MarkOp
from ...dialects.tile_types import integer, integers_of
from ..base import SOURCE_ATTRIBUTE, PassLog, one_of, option, refused, the_kernel, walk
from ..build import GLOBAL, i32
from ..dynamic_rows import has_dynamic_size
from ..outputs import outputs_of
from ..rings import is_operand_ring


class Place(NamedTuple):
    """A place that is told of: what people call it, which time is kept, and where it is."""

    name: str
    keep: str
    at: ir.InsertionPoint


@record
class Instrument:
    """A kernel that writes the GPU's clock to a tensor `marks`, s32, at certain points.

    `start` is the kernel's first instruction. For each role, `begin` is after the initialisation of
    the barriers and the synchronisation of the CTA or the cluster; `issued` is after the first
    loads of a slot, `arrived` after the first wait for one; `sums` is when the accumulator of the
    last tile is complete, `stored` after its store, and `end` after everything that the role waits
    for. `unit` is cycles of the multiprocessor, or nanoseconds of the GPU's timer.

    The launch takes `marks` as one more input, which should be zero: a CTA does not write the
    points that it does not reach. The values are the low 32 bits of the clock.
    """

    name: ClassVar[str] = "instrument"
    unit: str = option("cycles", one_of(*UNITS), "cycles or nanoseconds")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        roles = walk(kernel, RoleOp)
        if walk(kernel, MarkOp):
            raise refused(kernel, "instrument: places are marked already; run it once")
        if not roles:
            raise refused(
                kernel,
                "instrument: places are those of roles, got none; run warp-specialization first",
            )
        if has_dynamic_size(kernel):
            raise refused(
                kernel,
                "instrument: a row a CTA needs a grid that is known, got one "
                "that a launch says; give M and the batch numbers",
            )
        places = [Place("start", FIRST, ir.InsertionPoint.at_block_begin(kernel.body.blocks[0]))]
        for role in roles:
            places += _places_of(role)
        marks = _add_view(kernel, len(places))
        for number, place in enumerate(places):
            with place.at, kernel.location:
                MarkOp(
                    marks=marks,
                    column=integer(number),
                    place=ir.StringAttr.get(place.name),
                    keep=ir.StringAttr.get(place.keep),
                    unit=ir.StringAttr.get(self.unit),
                )
        log.did(f"{len(places)} places: {', '.join(place.name for place in places)}")


def _places_of(role: RoleOp) -> Iterator[Place]:
    body, name = role.body.blocks[0], role.agent.value
    yield Place(f"{name}.begin", FIRST, ir.InsertionPoint.at_block_begin(body))
    for kind, what in ((CommitOp, "issued"), (WaitOp, "arrived")):
        for op in _of_operands(role, kind):
            yield Place(f"{name}.{what}", FIRST, ir.InsertionPoint.after(op))
    stores = [op for kind in STORES for op in walk(role, kind)]
    if stores:
        block = list(stores[0].operation.block.operations)
        in_order = sorted(stores, key=lambda op: block.index(op))
        yield Place(f"{name}.sums", LAST, ir.InsertionPoint(in_order[0]))
        yield Place(f"{name}.stored", LAST, ir.InsertionPoint.after(in_order[-1]))
    yield Place(f"{name}.end", LAST, ir.InsertionPoint(body))


def _of_operands(role: RoleOp, kind: type) -> list[Any]:
    """The first op of a kind in a role that is about a ring of operands, if there is one."""
    found = [op for op in walk(role, kind) if is_operand_ring(op.ring.owner.opview)]
    return found[:1]


def _add_view(kernel: KernelOp, columns: int) -> ir.Value:
    """One more input, the last of them."""
    block = kernel.body.blocks[0]
    inputs = len(block.arguments) - len(outputs_of(kernel))
    space = integer(GLOBAL)
    type_ = ir.MemRefType.get([prod(integers_of(kernel.grid)), columns], i32(), memory_space=space)
    names = list(kernel.arg_names)
    names.insert(inputs, ir.StringAttr.get(MARKS))
    attributes = kernel.operation.attributes
    attributes["arg_names"] = ir.ArrayAttr.get(names)
    if SOURCE_ATTRIBUTE in attributes:
        attributes[SOURCE_ATTRIBUTE] = _with_argument(ir.DictAttr(attributes[SOURCE_ATTRIBUTE]))
    outputs = list(block.arguments)[inputs:]
    marks = block.add_argument(type_, kernel.location)
    for output in outputs:  # an argument can be made after the others only
        output.replace_all_uses_with(block.add_argument(output.type, kernel.location))
    for _ in outputs:
        block.erase_argument(inputs)
    return marks


def _with_argument(source: ir.DictAttr) -> ir.DictAttr:
    """The arguments of the source's function with one more after them."""
    count = ir.IntegerAttr(source["arguments"])
    inputs, transposed = (list(ir.ArrayAttr(source[each])) for each in ("inputs", "transposed"))
    return ir.DictAttr.get(
        {
            "arguments": ir.IntegerAttr.get(count.type, count.value + 1),
            "inputs": ir.ArrayAttr.get([*inputs, ir.IntegerAttr.get(inputs[0].type, count.value)]),
            "transposed": ir.ArrayAttr.get([*transposed, ir.BoolAttr.get(False)]),
        }
    )
