"""Readable names of values; MLIR's printer makes them unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dialects.mlir import ir
from ..dialects.tile import KernelOp
from ..dialects.tile.scales import ALL_MMAS
from ..passes.base import operations
from .launch_names import LaunchNames

NAME_CHARACTERS = 32
SM_KERNEL = "sm.kernel"
OURS = ("tile", "pipe", "sm")
STEMS = {
    "tile.accumulator": "acc",
    "tile.cta_tile": "ij",
    "tile.place": "ij",
    "tile.pair_rank": "rank",
    "tile.split_rank": "part",
    "tile.split_start": "first",
    "tile.rotated_step": "step",
    "sm.read_position": "at",
}
# Stems of ops that give several values, each with a name of its own (`ir_text`).
SEVERAL = {
    "ij": ("i", "j"),
    "team": ("thread", "lane", "leader"),
    "cta_place": ("along_m", "along_n", "first", "leads"),
}
OF_PIPES = {
    "pipe.create": "ring",
    "sm.ring": "ring",
    "sm.staging": "ring",
    "pipe.acquire": "slot",
    "pipe.wait": "slot",
    "sm.slot": "slot",
    "sm.slot_memory": "slots",
}
LABELLED = ("sm.barriers", "sm.position", "sm.tally")
MOVES = (
    "tile.load",
    "tile.tma_load",
    "tile.tma_multicast",
    "tile.copy",
    "tile.load_boxes",
    "tile.multicast_boxes",
)
# Ops that read columns of an accumulator from `start` on, in a loop over its columns.
READS = ("tile.read_row", "tile.read_matrices", "tile.read_fragment")
OPERANDS = {
    2: ("a", "b"),
    3: ("a", "b", "b2"),
    4: ("a", "b", "a_scales", "b_scales"),
}
ADDING = tuple(each.OPERATION_NAME for each in ALL_MMAS)
TILE_LOOPS = ("tile.for_each_tile", "pipe.for_each_claim", "pipe.for_each_turn")


def name_values(operation: ir.Operation) -> ir.Operation:
    """A copy of the op whose locations name its values (`use_name_loc_as_prefix`)."""
    copy = operation.clone()
    names = _Names()
    for op in [copy, *operations(copy)]:
        names.of_op(op.operation)
    return copy


class _Names:
    """What is known of values: of views their names, by which maps and tiles are named, and what
    the launch of an `sm.kernel` calls its parameters and mbarriers."""

    def __init__(self) -> None:
        self._views: dict[ir.Value, str] = {}
        self._launch = LaunchNames([], [])

    def of_op(self, op: ir.Operation) -> None:
        if op.name == SM_KERNEL:
            self._launch = LaunchNames.of(op)
        stem = self._stem(op)
        if stem is not None and len(op.results) > 0:
            op.location = ir.Location.name(stem)
        for region in op.regions:
            for block in region.blocks:
                for argument, name in zip(block.arguments, self._arguments(op, block), strict=True):
                    if name is not None:
                        ir.BlockArgument(argument).set_location(ir.Location.name(name))

    def _arguments(self, op: ir.Operation, block: ir.Block) -> Sequence[str | None]:
        count = len(block.arguments)
        unnamed: list[str | None] = [None] * count
        if op.name == KernelOp.OPERATION_NAME:
            names = [_short(name) for name in ir.ArrayAttr(op.attributes["arg_names"])]
            self._views |= dict(zip(block.arguments, names, strict=True))
            return names
        if op.name == SM_KERNEL and len(self._launch.parameters) == count:
            return [_cut(name) for name in self._launch.parameters]
        if op.name in TILE_LOOPS and count == 2:
            return ["i", "j"]
        if op.name == "scf.for":
            return [_counter(op), *unnamed[1:]]
        return ["x", *unnamed[1:]] if op.name.startswith("tile.") and count else unnamed

    def _stem(self, op: ir.Operation) -> str | None:
        """The name of an op's results; None for MLIR's own."""
        if op.name in ("tile.tensor_map", "tile.load"):
            view = self._views.get(op.operands[0])
            kind = "map" if op.name == "tile.tensor_map" else "tile"
            return f"{view}_{kind}" if view else kind
        if op.name in ("tile.element", "tile.staged_element"):
            return self._views.get(op.operands[0], "element")
        if op.name in OF_PIPES:
            return pipe_name(OF_PIPES[op.name], str(op.results[0].type))
        if op.name in LABELLED:
            return _short(op.attributes["label"]).replace(".", "_")
        if op.name == "sm.barrier":
            return _of_barrier(op)
        if op.name == "sm.shared_address":
            return self._of_address(op.operands[0]) or "shared_address"
        if op.name == "pipe.tile":
            return _of_slot(op, "index", "tile")
        if op.name == "sm.operand":
            base = _maker(op.operands[1], "sm.base_descriptor")
            return _of_slot(base, "tile", "operand") if base is not None else "operand"
        if op.name == "sm.base_descriptor":
            return _of_slot(op, "tile", "base")
        if op.name == "arith.cmpi":
            return "adds" if _tells_an_mma(op) else None
        if op.name == "sm.special_register":
            return ir.StringAttr(op.attributes["register"]).value.replace(".", "_")
        dialect, _, last = op.name.partition(".")
        return STEMS.get(op.name, last.replace(".", "_") if dialect in OURS else None)

    def _of_address(self, offset: ir.Value) -> str | None:
        """The name of the mbarrier at an offset in shared memory: a constant, or a constant and
        the bytes of a slot."""
        byte = _constant(offset)
        name = self._launch.at(byte) if byte is not None else None
        added = _maker(offset, "arith.addi")
        for operand in added.operands if added is not None else ():
            byte = _constant(operand)
            name = name or (self._launch.of_slots(byte) if byte is not None else None)
        return _cut(name.replace(".", "_")) if name else None


def _constant(value: ir.Value) -> int | None:
    made = _maker(value, "arith.constant")
    return ir.IntegerAttr(made.attributes["value"]).value if made is not None else None


def _short(name: ir.Attribute) -> str:
    return _cut(ir.StringAttr(name).value)


def _cut(name: str) -> str:
    """An argument's name, which may be anything: MLIR replaces what an identifier can't have."""
    return name[:NAME_CHARACTERS] or "view"


def pipe_name(kind: str, type_: str) -> str:
    """The name of a ring or of slots by the text of its type: of accumulators, of a single tile,
    which is a staging buffer, or of operands."""
    if "!tile.acc<" in type_:
        return f"acc_{kind}"
    return f"staging_{kind}" if type_.count("!tile.smem<") == 1 else kind


def _of_barrier(op: ir.Operation) -> str:
    """What it tells of a slot: full, empty."""
    barriers = _maker(op.operands[0], "sm.barriers")
    label = _short(barriers.attributes["label"]) if barriers is not None else ""
    return label.rpartition(".")[2] or "barrier"


def _maker(value: ir.Value, name: str) -> ir.Operation | None:
    """The op that a value comes from, if it is of that name."""
    owner = value.owner
    is_op = isinstance(owner, ir.Operation | ir.OpView)
    return owner.operation if is_op and owner.operation.name == name else None


def _of_slot(op: ir.Operation, number: str, what: str) -> str:
    """A slot of two tiles holds A's and B's, one of three also the second B's or scales, and one of
    four scales of both; `number` is the attribute that says which."""
    index, tiles = ir.IntegerAttr(op.attributes[number]).value, str(op.operands[0].type)
    if "!tile.acc<" in str(op.results[0].type):
        return "acc"
    if index == 2 and tiles.count("!tile.smem<") == 3 and '"linear"' in str(op.results[0].type):
        return f"scales_{what}"
    names = OPERANDS.get(tiles.count("!tile.smem<"))
    return f"{names[index]}_{what}" if names else what


def _tells_an_mma(op: ir.Operation) -> bool:
    """Whether it says if an MMA adds to what its accumulator holds."""
    return any(use.owner.name in ADDING for use in op.results[0].uses)


def _counter(loop: Any) -> str | None:
    body = loop.regions[0].blocks[0]
    if body.operations[0].operation.name == "tile.place":
        return "number"
    if any(use.owner.name in READS for use in body.arguments[0].uses):
        return "start"
    return "k" if _walks_k(loop) else None


def _walks_k(loop: Any) -> bool:
    return any(op.operation.name in MOVES or "mma" in op.operation.name for op in operations(loop))
