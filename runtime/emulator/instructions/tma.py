"""cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetch forms (tensor copies).

Source: PTX ISA, "Data Movement and Conversion Instructions: Tensor copy". Every active lane issues
its own copy; the copy itself runs later, in an order that the scheduler picks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import ptx
from ..decode import Decoded
from ..engine import EngineOp
from ..errors import Trap
from ..registry import Step, instruction
from ..shared_access import barrier_at, check_span, count_event, locate, peer
from ..tma import (
    TENSOR_ALIGNMENT,
    BoundMap,
    BulkOperation,
    bound_map,
    box_span,
    bulk_groups,
    load_box,
    read_box,
    store_box,
    write_box,
)
from .mbarrier import apply

if TYPE_CHECKING:
    from ..cta import Cta
    from ..warp import Warp

_LOAD_SECTION = "9.7.9.27.1.2"
_REDUCE_SECTION = "9.7.9.27.1.3"
_PREFETCH_SECTION = "9.7.9.27.1.4"
_RANKS = ("1d", "2d", "3d", "4d", "5d")
_UNMODELLED_MODES = ("tile::gather4", "tile::scatter4", "im2col", "im2col::w", "im2col::w::128",
                     "im2col_no_offs")  # fmt: skip
_REDUCTIONS = ("add", "min", "max", "and", "or", "xor")


def take_rank(ins: Decoded) -> int:
    """Consume the dimension and load-mode modifiers of a tiled tensor copy; its rank."""
    rank = int(ins.required(_RANKS)[0])
    mode = ins.choice(("tile", *_UNMODELLED_MODES))
    if mode in _UNMODELLED_MODES:
        ins.unmodelled(f"mode .{mode}")
    return rank


def take_policy(ins: Decoded, operands: int) -> None:
    """Consume the cache hint and check its policy operand behind ``operands`` others."""
    hinted = ins.flag("L2::cache_hint")
    ins.expect_operands(operands + hinted)
    if hinted:
        ins.read(operands, np.uint64)


@dataclass(frozen=True)
class TensorOperand:
    """Closures of a ``[map, {coordinates}]`` operand."""

    address: Callable
    coordinates: Callable

    def bound(self, warp: Warp, lane: int) -> tuple[BoundMap, tuple[int, ...]]:
        """The map and the coordinates of one lane."""
        coordinates = tuple(int(axis[lane]) for axis in self.coordinates(warp))
        return bound_map(warp.cta, int(self.address(warp)[lane])), coordinates


def tensor_operand(ins: Decoded, at: int, rank: int) -> TensorOperand:
    """Decode operand ``at`` as a tensor map address with ``rank`` coordinates."""
    operand = ins.operand(at)
    if not isinstance(operand, ptx.Address) or operand.coordinates is None:
        ins.unmodelled("a tensor operand without coordinates")
    return TensorOperand(ins.address(at), ins.read_vector(operand.coordinates, rank, np.int32))


def _check_rank(bound: BoundMap, rank: int) -> None:
    if bound.map.rank != rank:
        raise Trap("tma", f"the tensor map has rank {bound.map.rank}, the instruction .{rank}d")


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


Place = tuple["Cta", int]
"""A CTA and an offset in its shared memory."""


@dataclass(frozen=True)
class Load:
    """One destination of an issued tensor load: a multicast reaches each CTA at its own time."""

    bound: BoundMap
    coordinates: tuple[int, ...]
    issuer: Cta
    target: Place
    signal: Place

    def describe(self) -> str:
        tensor_map = self.bound.map
        box = "x".join(str(size) for size in tensor_map.box)
        at = f"rank {self.target[0].rank} 0x{self.target[1]:x}"
        return f"tma load {box} {tensor_map.dtype.name} at {self.coordinates} -> {at}"

    def run(self) -> None:
        box = load_box(self.issuer, self.bound, self.coordinates)
        write_box(*self.target, self.bound.map, box, "a tensor load")
        apply(*self.signal, lambda barrier: barrier.complete_tx(self.bound.map.box_bytes))


def _build_load(ins: Decoded) -> Step:
    rank = take_rank(ins)
    space = ins.required(("shared::cta", "shared::cluster"))
    ins.required(("global",))
    ins.required(("mbarrier::complete_tx::bytes",))
    multicast = ins.flag("multicast::cluster")
    group = 2 if ins.choice(("cta_group::1", "cta_group::2")) == "cta_group::2" else 1
    if multicast and space == "shared::cta":
        ins.unmodelled("modifier .multicast::cluster with .shared::cta")
    take_policy(ins, 4 if multicast else 3)
    ins.finish_modifiers()
    destination, barrier = ins.address(0), ins.address(2)
    source = tensor_operand(ins, 1, rank)
    ctas = ins.read(3, np.uint16) if multicast else None

    def step(warp: Warp, mask: np.ndarray) -> None:
        to, at = destination(warp), barrier(warp)
        for lane in np.flatnonzero(mask):
            bound, coordinates = source.bound(warp, lane)
            _check_rank(bound, rank)
            ranks = int(ctas(warp)[lane]) if multicast else None
            places = _places(warp.cta, int(to[lane]), int(at[lane]), space, group, ranks)
            for target, signal in places:
                _submit_load(warp, Load(bound, coordinates, warp.cta, target, signal))
            count_event(warp.cta, "tma loads")

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
    op = EngineOp(load.describe(), load.run, agent="tma", touches=ctas)
    warp.launch.engines.submit(op)
    count_event(warp.cta, "tma load bytes", load.bound.map.box_bytes)


def _build_store(ins: Decoded, operation: str | None) -> Step:
    rank = take_rank(ins)
    ins.required(("global",))
    ins.required(("shared::cta",))
    ins.required(("bulk_group",))
    take_policy(ins, 2)
    ins.finish_modifiers()
    target, source = tensor_operand(ins, 0, rank), ins.address(1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        addresses = source(warp)
        for lane in np.flatnonzero(mask):
            bound, coordinates = target.bound(warp, lane)
            _check_rank(bound, rank)
            _, offset = locate(warp.cta, int(addresses[lane]), "shared::cta")
            _submit_store(warp, int(lane), Store(bound, coordinates, warp.cta, offset, operation))

    return step


class Store:
    """One issued tensor store: reading its source and writing the tensor are separate steps."""

    def __init__(self, bound: BoundMap, coordinates: tuple[int, ...], cta: Cta, offset: int,
                 operation: str | None):  # fmt: skip
        self.bound, self.coordinates, self.cta = bound, coordinates, cta
        self.offset, self.operation = offset, operation
        self._box: np.ndarray | None = None
        self.what = "a tensor store" if operation is None else "a tensor reduction"

    def describe(self) -> str:
        box = "x".join(str(size) for size in self.bound.map.box)
        return f"{self.what[2:]} {box} 0x{self.offset:x} -> {self.coordinates}"

    def read(self) -> None:
        if self.cta.exited:
            raise Trap("exited-cta", f"{self.what} reads shared memory after the CTA's exit")
        self._box = read_box(self.cta, self.offset, self.bound.map, self.what)

    def write(self) -> None:
        written = store_box(self.cta, self.bound, self.coordinates, self._box, self.operation)
        count_event(self.cta, "tma store bytes", written)


def _submit_store(warp: Warp, lane: int, store: Store) -> None:
    check_span(warp.cta, store.offset, 0, TENSOR_ALIGNMENT, store.what)
    engines = warp.launch.engines
    ctas, name = (warp.cta,), store.describe()
    read = EngineOp(f"{name} (read)", store.read, agent="tma", notifies=ctas)
    write = EngineOp(f"{name} (write)", store.write, (read,), agent="tma", notifies=ctas)
    engines.submit(read)
    engines.submit(write)
    span = box_span(store.bound.map, store.offset)
    source = warp.cta.shared.proxy.source(store.offset, store.offset + span, warp, lane)
    bulk_groups(warp.cta, warp.index, lane).add(BulkOperation(read, write, source))
    count_event(warp.cta, "tma stores")


@instruction("cp.async.bulk.prefetch.tensor", section=_PREFETCH_SECTION)
def build_tensor_prefetch(ins: Decoded) -> Step:
    """A hint: the map and the coordinates are checked, nothing moves."""
    rank = take_rank(ins)
    ins.required(("L2",))
    ins.required(("global",))
    take_policy(ins, 1)
    ins.finish_modifiers()
    source = tensor_operand(ins, 0, rank)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):
            _check_rank(source.bound(warp, lane)[0], rank)

    return step


@instruction(
    "prefetch.tensormap",
    "prefetch.param.tensormap",
    "prefetch.const.tensormap",
    section="9.7.9.15",
)
def build_prefetch_tensormap(ins: Decoded) -> Step:
    """A hint: the address must hold a tensor map; addresses of both spaces are generic ones too."""
    ins.finish_modifiers()
    ins.expect_operands(1)
    address = ins.address(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for value in np.unique(address(warp)[mask]).tolist():
            bound_map(warp.cta, value)

    return step
