"""Copying parts of a program: ops under a value mapping, and loops that can be put together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..dialects.mlir import arith, ir, scf
from ..dialects.tile_types import integer

GROUP_STEPS, SPLIT_START = "tile.group_steps", "tile.split_start"
PURE = (
    "tile.batch",
    "tile.ordered_batch",
    "tile.matrix",
    "tile.transposed",
    "tile.edge_rows",
    "tile.edge_box_rows",
    "tile.group",
    "tile.group_at",
    "tile.group_starts",
    "tile.group_rows",
    "tile.gathered_rows",
    "tile.group_atoms",
    "pipe.other_tile",
    "pipe.parity",
    "tile.group_scales",
    "tile.group_depth",
    "tile.group_columns",
    GROUP_STEPS,
    SPLIT_START,
    "tile.rotated_step",
    "tile.tile_count",
    "tile.stack_tiles",
    "tile.counted_batch",
    "tile.box_rows",
    "memref.dim",
)
Mapping = dict[ir.Value, ir.Value]


def is_pure(op: Any) -> bool:
    """Whether the op only computes: it can be copied and dropped freely."""
    return op.operation.name.startswith("arith.") or op.operation.name in PURE


def effects(block: ir.Block) -> list[Any]:
    """The ops of a block that are not pure."""
    return [op for op in list(block.operations) if not is_pure(op)]


def clone(op: Any, mapping: Mapping) -> ir.Operation:
    """Copy an op at the current insertion point, its regions too, and map its results."""
    copy = op.operation.clone()
    for index, operand in enumerate(op.operation.operands):
        copy.operands[index] = mapping.get(operand, operand)
    for region in copy.regions:
        for block in region:
            replace_in(block, mapping)
    mapping.update(zip(op.operation.results, copy.results, strict=True))
    return copy


def copy_region(source: ir.Region, target: ir.Region) -> None:
    """Copy the one block of a region into a region without blocks."""
    block = source.blocks[0]
    copy = target.blocks.append(*(argument.type for argument in block.arguments))
    mapping: Mapping = dict(zip(block.arguments, copy.arguments, strict=True))
    with ir.InsertionPoint(copy):
        for op in block.operations:
            clone(op, mapping)


def replace_in(block: ir.Block, mapping: Mapping) -> None:
    """Let every op of a block, however deep, read the mapped values."""
    for op in list(block.operations):
        for index, operand in enumerate(op.operation.operands):
            if operand in mapping:
                op.operation.operands[index] = mapping[operand]
        for region in op.operation.regions:
            for inner in region:
                replace_in(inner, mapping)


def index_constant(value: int) -> ir.Value:
    """An index constant at the current insertion point."""
    return arith.ConstantOp(ir.IndexType.get(), value).result


def constant_of(value: ir.Value) -> int | None:
    """The integer that a constant op gives, or None."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.attributes["value"]).value


def iterations_of(loop: scf.ForOp) -> range | None:
    """The counter's values; None where a bound is no constant or the step is not positive.

    Of a loop that ends with a group, all that it may take.
    """
    start, end, step = map(constant_of, (loop.lowerBound, loop.upperBound, loop.step))
    limit = group_steps_of(loop.upperBound)
    end = limit.most.value if limit is not None else end
    if start is None or end is None or step is None or step < 1:
        return None
    return range(start, end, step)


def group_steps_of(bound: ir.Value) -> Any:
    """The op that ends a loop with a group; None where nothing does."""
    owner = bound.owner
    if isinstance(owner, ir.Block) or owner.name != GROUP_STEPS:
        return None
    return owner.opview


def limited(bound: ir.Value, least: int, most: int, less: int) -> ir.Value:
    """The end of a loop that takes up to `most` in the place of one that ends at `bound`, emitted
    here: `less` steps fewer are left for other loops, and it takes `least` in any case."""
    limit = group_steps_of(bound)
    if limit is None:
        return index_constant(most)
    sizes = {"less": limit.less.value + less, "least": least, "most": most}
    numbers = {name: integer(size) for name, size in sizes.items()}
    made = type(limit)(count=limit.count, depth=limit.depth, **numbers, steps=ir.IndexType.get())
    return made.steps


def erase_unused(block: ir.Block) -> None:
    """Drop pure ops whose results nobody reads, inner blocks first."""
    for op in reversed(list(block.operations)):
        for region in op.operation.regions:
            for inner in region:
                erase_unused(inner)
        if is_pure(op) and not any(list(result.uses) for result in op.operation.results):
            op.operation.erase()


def erase_dead(epilogue: ir.Block) -> None:
    """Drop the ops of an epilogue, which are all pure, whose results nobody reads."""
    for op in reversed(list(epilogue.operations)[:-1]):
        if not any(list(result.uses) for result in op.operation.results):
            op.operation.erase()


def fuse_loops(block: ir.Block) -> None:
    """Join neighbouring loops that do the same on consecutive ranges.

    for p in l .. u { f(p) }  for k in 0 .. n { f(k + u) }   →   for p in l .. u + n { f(p) }
    """
    loops = [op for op in list(block.operations) if isinstance(op, scf.ForOp)]
    for loop in loops:
        fuse_loops(loop.body)
    for first, second in pairwise(loops):
        if _are_neighbours(first, second) and _fuse(first, second):
            fuse_loops(block)
            return


def _are_neighbours(first: scf.ForOp, second: scf.ForOp) -> bool:
    places = [op.operation for op in effects(first.operation.block)]
    return places.index(first.operation) + 1 == places.index(second.operation)


def _fuse(first: scf.ForOp, second: scf.ForOp) -> bool:
    steps, later = iterations_of(first), iterations_of(second)
    shift, shifted = _shift(second)
    if not steps or not later or steps.step != later.step:
        return False
    if later.start + shift != steps.start + len(steps) * steps.step:
        return False
    index = second.induction_variable if shifted is None else shifted
    mapping: Mapping = {index: first.induction_variable}
    if not _same_body(first.body, second.body, mapping):
        return False
    with ir.InsertionPoint(first), first.operation.location:
        first.operation.operands[1] = _end_of_both(first, second, shift)
    second.operation.erase()
    return True


def _end_of_both(first: scf.ForOp, second: scf.ForOp, shift: int) -> ir.Value:
    """Where a loop ends that does both: with a group, where one of the two does."""
    later = iterations_of(second) or range(0)
    limit = group_steps_of(second.upperBound)
    if limit is not None:
        least = limit.least.value + shift
        return limited(second.upperBound, least, later.stop + shift, -shift)
    limit = group_steps_of(first.upperBound)
    least = 0 if limit is None else limit.least.value + len(later)
    return limited(first.upperBound, least, later.stop + shift, -len(later))


def _shift(loop: scf.ForOp) -> tuple[int, ir.Value | None]:
    """(d, iv + d) when the body uses its counter only as iv + d; else (0, None)."""
    uses = list(loop.induction_variable.uses)
    if len(uses) != 1 or uses[0].owner.name != "arith.addi":
        return 0, None
    amount = constant_of(uses[0].owner.operands[1])
    return (0, None) if amount is None else (amount, uses[0].owner.results[0])


def _same_body(first: ir.Block, second: ir.Block, mapping: Mapping) -> bool:
    """Whether two bodies have the same effects on the same values, in order."""
    left, right = (effects(block) for block in (first, second))
    if len(left) != len(right):
        return False
    return all(_same_op(a, b, mapping) for a, b in zip(left, right, strict=True))


def _same_op(a: Any, b: Any, mapping: Mapping) -> bool:
    if len(list(a.operation.regions)) or not _same_computation(a, b, mapping):
        return False
    mapping.update(zip(b.operation.results, a.operation.results, strict=True))
    return True


def _same_computation(a: Any, b: Any, mapping: Mapping) -> bool:
    if a.operation.name != b.operation.name or _attributes(a) != _attributes(b):
        return False
    pairs = zip(a.operation.operands, b.operation.operands, strict=True)
    return all(_same_value(x, y, mapping) for x, y in pairs)


def _same_value(a: ir.Value, b: ir.Value, mapping: Mapping) -> bool:
    """Whether `b`, mapped, is `a`, or both are computed alike."""
    if mapping.get(b, b) == a:
        return True
    if isinstance(a.owner, ir.Block) or isinstance(b.owner, ir.Block):
        return False
    ops = (a.owner.opview, b.owner.opview)
    return all(is_pure(op) for op in ops) and _same_computation(*ops, mapping)


def _attributes(op: Any) -> dict[str, str]:
    attributes = op.operation.attributes
    return {name: str(attributes[name]) for name in attributes}
