"""cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetch forms (tensor copies).

Source: PTX ISA, "Data Movement and Conversion Instructions: Tensor copy". Every active lane issues
its own copy; the copy itself runs later, in an order that the scheduler picks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...copies.box_copy import (
    TENSOR_ALIGNMENT,
    BoundMap,
    Box,
    bound_map,
    box_shape,
    box_span,
    load_box,
    move_of_boxes,
    read_box,
    store_box,
    write_box,
)
from ...copies.bulk_groups import BulkOperation, bulk_groups
from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.barrier_operations import apply
from ...machine.engine import EngineOp, Move, Moves
from ...machine.shared_access import barrier_at, check_span, count_event, locate, peer, shared_of
from ...ptx.decode import Decoded
from ...ptx.lane_forms import NOTHING, address_of, note_lane_form, value_of
from ...ptx.lanes import lanes_in
from ...ptx.registry import Step, instruction
from .tensor_operand import COLUMNS, COLUMNS_STORED, take_mode, take_policy, tensor_operand

_LOAD_SECTION = "9.7.9.27.1.2"
_REDUCE_SECTION = "9.7.9.27.1.3"
_PREFETCH_SECTION = "9.7.9.27.1.4"
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _destination_space(ins: Decoded) -> str:
    return next((m for m in ins.modifiers if m.startswith("shared") or m == "global"), "")


@instruction("cp.async.bulk.tensor", section=_LOAD_SECTION)
def build_tensor_copy(ins: Decoded) -> Step:
    if _destination_space(ins) == "global":
        return _build_store(ins, None)
    return _build_load(ins)


@instruction("cp.reduce.async.bulk.tensor", section=_REDUCE_SECTION)
def build_tensor_reduce(ins: Decoded) -> Step:
    return _build_store(ins, ins.required(_REDUCTIONS))


Place = tuple[Cta, int]
"""A CTA and an offset in its shared memory."""


@dataclass(eq=False)
class Load:
    """One destination of an issued tensor load: a multicast reaches each CTA at its own time.

    first: of the destinations of one instruction, which read global memory once.
    """

    bound: BoundMap
    starts: tuple[tuple[int, ...], ...]
    issuer: Cta
    target: Place
    signal: Place
    first: bool
    line: int

    @property
    def bytes(self) -> int:
        """Bytes that complete the transaction."""
        return len(self.starts) * self.bound.map.box_bytes

    def describe(self) -> str:
        tensor_map = self.bound.map
        box = "x".join(str(size) for size in tensor_map.box)
        at = f"rank {self.target[0].rank} 0x{self.target[1]:x}"
        return f"tma load {box} {tensor_map.dtype.name} at {_shown(self.starts)} -> {at}"

    def run(self) -> None:
        tensor_map, cta = self.bound.map, self.target[0]
        boxes = [load_box(self.issuer, self.bound, start) for start in self.starts]
        data = boxes[0] if len(boxes) == 1 else np.concatenate(boxes)
        words = write_box(*self.target, tensor_map, data, "a tensor load")
        cta.launch.events.box_written(cta, words, self.box)
        apply(*self.signal, lambda barrier: barrier.complete_tx(self.bytes))

    def box(self) -> Box:
        """How it writes, for who compares that with how operands are read."""
        tensor_map = self.bound.map
        is_inside = _inside_bytes(self.bound, self.starts) == self.bytes
        known = self.bound.boxes.get((self.line, is_inside))
        if known is not None:
            return known
        has_nan = tensor_map.oob_fill == "nan" and not is_inside
        how = tensor_map.swizzle, self.bound.address, self.line, has_nan, is_inside
        shape = box_shape(tensor_map, len(self.starts))
        box = Box(*how, elements=tensor_map.dtype.name, shape=shape)
        return self.bound.boxes.setdefault((self.line, is_inside), box)

    def moves(self) -> Moves:
        """For profiles."""
        memory = shared_of(self.issuer, self.target[0])
        rows = len(self.starts) * self.bound.map.rows
        written = Move(memory, "write", self.bytes, rows=rows)
        return (
            (move_of_boxes(self.bound, self.starts, "read"), written) if self.first else (written,)
        )


def _inside_bytes(bound: BoundMap, starts: tuple[tuple[int, ...], ...]) -> int:
    return sum(bound.map.inside_bytes(start) for start in starts)


def _shown(starts: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(str(start) for start in starts)


def _build_load(ins: Decoded) -> Step:
    mode = take_mode(ins, "tile::gather4", COLUMNS)
    space = ins.required(("shared::cta", "shared::cluster"))
    ins.required(("global",))
    ins.required(("mbarrier::complete_tx::bytes",))
    multicast = ins.flag("multicast::cluster")
    group = 2 if ins.choice(("cta_group::1", "cta_group::2")) == "cta_group::2" else 1
    if multicast and space == "shared::cta":
        ins.unmodelled("modifier .multicast::cluster with .shared::cta")
    behind = 4 if mode.offsets else 3
    take_policy(ins, behind + multicast)
    ins.finish_modifiers()
    destination, barrier = ins.lane_address(0), ins.lane_address(2)
    source = tensor_operand(ins, 1, mode, 3)
    ctas = ins.read_lane(behind, np.uint16) if multicast else None

    def alone(warp: Warp, lane: int, to: int, at: int, ranks: int | None, *box: int) -> None:
        bound, starts = source.bound_at(warp, *box)
        places = _places(warp.cta, to, at, space, group, ranks)
        for number, (target, signal) in enumerate(places):
            load = Load(bound, starts, warp.cta, target, signal, number == 0, ins.line)
            _submit_load(warp, load)
        count_event(warp.cta, "tma loads")

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in lanes_in(mask):
            box = source.read(warp, lane)
            ranks, to, at = ctas and ctas(warp, lane), destination(warp, lane), barrier(warp, lane)
            alone(warp, lane, to, at, ranks, *box)

    chosen = value_of(ins, behind, np.uint16) if multicast else NOTHING
    note_lane_form(ins, alone, address_of(ins, 0), address_of(ins, 2), chosen, *source.values)
    return step


def _places(
    cta: Cta, to: int, at: int, space: str, group: int, ranks: int | None
) -> list[tuple[Place, Place]]:
    """(destination, barrier it signals) of each copy; the barrier of a pair may be the peer's."""
    target, offset = locate(cta, to, space)
    check_span(target, offset, 0, TENSOR_ALIGNMENT, "a tensor load")
    paired = group == 2 and space == "shared::cta"
    owner, barrier = locate(cta, at, "shared::cluster" if paired else space)
    if ranks is None:
        _check_owner(target, owner, group)
        return [((target, offset), (owner, barrier))]
    selected = [peer(cta, rank) for rank in range(16) if ranks >> rank & 1]
    if not selected:
        raise Trap("tma", "the multicast mask selects no CTA")
    return [((chosen, offset), (_signalled(chosen, owner, group), barrier)) for chosen in selected]


def _check_owner(target: Cta, owner: Cta, group: int) -> None:
    pair = group == 2 and owner.rank ^ 1 == target.rank
    if owner is not target and not pair:
        raise Trap("tma", f"the mbarrier must lie in the CTA of the destination, rank "
                          f"{target.rank}, got rank {owner.rank}")  # fmt: skip


def _signalled(chosen: Cta, owner: Cta, group: int) -> Cta:
    """cta_group::2 signals the member of the destination's pair of the barrier's rank parity."""
    if group == 1 or chosen.rank % 2 == owner.rank % 2:
        return chosen
    return peer(chosen, chosen.rank ^ 1)


def _submit_load(warp: Warp, load: Load) -> None:
    barrier_at(*load.signal)
    ctas = tuple(dict.fromkeys((load.target[0], load.signal[0])))
    op = EngineOp(
        load.describe,
        load.run,
        agent="tma",
        touches=ctas,
        moves=load.moves,
        signals=load.signal,
    )
    warp.launch.engines.submit(op)
    count_event(warp.cta, "tma load bytes", load.bytes)


def _build_store(ins: Decoded, operation: str | None) -> Step:
    mode = take_mode(ins, "tile::scatter4" if operation is None else None, COLUMNS_STORED)
    ins.required(("global",))
    ins.required(("shared::cta",))
    ins.required(("bulk_group",))
    take_policy(ins, 2)
    ins.finish_modifiers()
    target, source = tensor_operand(ins, 0, mode), ins.lane_address(1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in lanes_in(mask):
            bound, starts = target.bound(warp, lane)
            _, offset = locate(warp.cta, source(warp, lane), "shared::cta")
            _submit_store(warp, lane, Store(bound, starts, warp.cta, offset, operation))

    return step


class Store:
    """One issued tensor store: reading its source and writing the tensor are separate steps."""

    def __init__(self, bound: BoundMap, starts: tuple[tuple[int, ...], ...], cta: Cta, offset: int,
                 operation: str | None):  # fmt: skip
        self.bound, self.starts, self.cta = bound, starts, cta
        self.offset, self.operation = offset, operation
        self._box: np.ndarray | None = None
        self.what = "a tensor store" if operation is None else "a tensor reduction"

    def describe(self) -> str:
        box = "x".join(str(size) for size in self.bound.map.box)
        return f"{self.what[2:]} {box} 0x{self.offset:x} -> {_shown(self.starts)}"

    @property
    def rows(self) -> int:
        """Rows of all boxes."""
        return len(self.starts) * self.bound.map.rows

    def read(self) -> None:
        where = self.cta, self.offset, self.bound.map, self.rows, self.what
        self._box = read_box(*where, self._inside())

    def _inside(self) -> np.ndarray | None:
        """bool[rows, inner_bytes] of what lies inside the tensor, None if all of it does; the rest
        is dropped, whatever it is."""
        tensor_map = self.bound.map
        size = len(self.starts) * tensor_map.box_bytes
        if tensor_map.dtype.padded or _inside_bytes(self.bound, self.starts) == size:
            return None
        found = [tensor_map.inside(start) for start in self.starts]
        return np.concatenate(found)

    def read_moves(self) -> Moves:
        """For profiles: what reading its source moves."""
        size = len(self.starts) * self.bound.map.box_bytes
        return (Move("shared", "read", size, rows=self.rows),)

    def write_moves(self) -> Moves:
        """For profiles: what writing the tensor moves."""
        return (move_of_boxes(self.bound, self.starts, "write"),)

    def write(self) -> None:
        assert self._box is not None  # `read` comes before
        for start, box in zip(self.starts, np.split(self._box, len(self.starts)), strict=True):
            written = store_box(self.cta, self.bound, start, box, self.operation)
            count_event(self.cta, "tma store bytes", written)


def _submit_store(warp: Warp, lane: int, store: Store) -> None:
    check_span(warp.cta, store.offset, 0, TENSOR_ALIGNMENT, store.what)
    engines = warp.launch.engines
    ctas = (warp.cta,)
    read = EngineOp(
        lambda: f"{store.describe()} (read)",
        store.read,
        agent="tma",
        notifies=ctas,
        moves=store.read_moves,
    )
    write = EngineOp(
        lambda: f"{store.describe()} (write)",
        store.write,
        (read,),
        agent="tma",
        notifies=ctas,
        moves=store.write_moves,
    )
    read.stream, write.stream = ("bulk reads", lane), ("bulk writes", lane)
    engines.submit(read)
    engines.submit(write)
    span = box_span(store.bound.map, store.offset, store.rows)
    warp.launch.events.source_issued(warp, lane, (store.offset, store.offset + span), read)
    bulk_groups(warp.cta, warp.index, lane).add(BulkOperation(read, write))
    count_event(warp.cta, "tma stores")


@instruction("cp.async.bulk.prefetch.tensor", section=_PREFETCH_SECTION)
def build_tensor_prefetch(ins: Decoded) -> Step:
    """A hint: the map and the coordinates are checked, nothing moves."""
    mode = take_mode(ins, "tile::gather4", COLUMNS)
    ins.required(("L2",))
    ins.required(("global",))
    take_policy(ins, 2 if mode.offsets else 1)
    ins.finish_modifiers()
    source = tensor_operand(ins, 0, mode, 1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in lanes_in(mask):
            source.bound(warp, lane)

    return step


@instruction(
    "prefetch.tensormap",
    "prefetch.param.tensormap",
    "prefetch.const.tensormap",
    section="9.7.9.15",
)
def build_prefetch_tensormap(ins: Decoded) -> Step:
    """A hint: the address must hold a tensor map, and be one of .param where that is said."""
    ins.finish_modifiers()
    ins.expect_operands(1)
    address, of_parameters = ins.address(0), ".param" in ins.mnemonic

    def step(warp: Warp, mask: np.ndarray) -> None:
        places = np.unique(address(warp)[mask])
        if of_parameters:
            places = warp.launch.own_parameters.generic(places)
        for place in places.tolist():
            bound_map(warp.cta, place)

    return step
