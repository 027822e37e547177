"""The bulk copy engine: boxes to and from swizzled shared memory, bulk groups.

A box row occupies the swizzle span in shared memory (the inner bytes without swizzle), also where
the box is narrower; the gap bytes stay untouched. The swizzle acts on absolute addresses.
Source: PTX ISA, sections "cp.async.bulk.tensor", "Swizzling Modes", "cp.async.bulk.commit_group".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..checks.proxy import BusySource
from ..checks.races.shadow import Same
from ..errors import Trap
from ..interface import Cta, EngineOp
from ..machine import swizzle as swizzles
from ..machine.memory import READ, WRITTEN, Region
from ..machine.shared_access import WORD, check_span, check_target, read_words, write_words
from ..machine.swizzle import PATTERN_BYTES, Swizzle
from ..ptx.addresses import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from .tensor_map import Part, TiledMap
from .tensor_map_object import TENSOR_MAP_BYTES, decode

TENSOR_ALIGNMENT = 128
"""Bytes to which the shared address of a tensor copy must be aligned."""
GAP = 0xA5
"""What a copy leaves in the gaps of padded 4- and 6-bit elements, whose contents are undefined."""


@dataclass(frozen=True)
class BoxPlan:
    """Word indices of a box relative to its start word, row by row, and the bytes they span."""

    words: np.ndarray
    span: int


@lru_cache(maxsize=1024)
def box_plan(mode: Swizzle, inner_bytes: int, rows: int, phase: int) -> BoxPlan:
    """Where the 64-bit words of a box go, for every start with ``start % 1024 == phase``."""
    pitch = inner_bytes if mode is swizzles.NONE else mode.span
    row = np.arange(rows)[:, None] * pitch
    logical = phase + row + np.arange(0, inner_bytes, WORD)[None, :]
    index = (mode.apply(logical) - phase) // WORD
    return BoxPlan(index, (int(index.max()) + 1) * WORD)


def _place(
    cta: Cta, offset: int, tensor_map: TiledMap, rows: int, what: str
) -> tuple[np.ndarray, tuple[int, int]]:
    plan = _plan(tensor_map, offset, rows)
    check_span(cta, offset, plan.span, TENSOR_ALIGNMENT, what)
    return plan.words + offset // WORD, (offset, offset + plan.span)


def write_box(
    cta: Cta, offset: int, tensor_map: TiledMap, box: np.ndarray, what: str
) -> np.ndarray:
    """Write ``box`` (``uint8[rows, inner_bytes]``) at window ``offset``; the words it went to."""
    index, span = _place(cta, offset, tensor_map, len(box), what)
    check_target(cta, *span, what)
    write_words(cta, index, _in_shared(tensor_map, box).view(np.uint64), span)
    return index


def read_box(cta: Cta, offset: int, tensor_map: TiledMap, rows: int, what: str) -> np.ndarray:
    """The box at window ``offset`` as ``uint8[rows, inner_bytes]``."""
    index, span = _place(cta, offset, tensor_map, rows, what)
    return read_words(cta, index, what, span).view(np.uint8)


def _in_shared(tensor_map: TiledMap, box: np.ndarray) -> np.ndarray:
    """``uint8[rows, bytes]`` as the rows lie in shared memory, the gaps filled with garbage."""
    kind = tensor_map.dtype
    if not kind.padded:
        return box
    units = np.full((len(box), tensor_map.inner_bytes // kind.bytes, kind.pitch), GAP, np.uint8)
    units[:, :, : kind.bytes] = box.reshape(len(box), -1, kind.bytes)
    return units.reshape(len(box), -1)


def _plan(tensor_map: TiledMap, offset: int, rows: int) -> BoxPlan:
    phase = offset % PATTERN_BYTES
    return box_plan(tensor_map.swizzle, tensor_map.shared_inner_bytes, rows, phase)


def box_span(tensor_map: TiledMap, offset: int, rows: int) -> int:
    """Bytes of shared memory from the start of a box at window ``offset`` to its end."""
    return _plan(tensor_map, offset, rows).span


@dataclass(frozen=True)
class BoundMap:
    """A tensor map and the emulated global address of its tensor."""

    map: TiledMap
    address: int


def bound_map(cta: Cta, address: int) -> BoundMap:
    """The tensor map object at a generic address; ``Trap`` if none is visible to copies there."""
    for name, window in (("local", LOCAL_WINDOW), ("shared", SHARED_WINDOW)):
        if window <= address < window + WINDOW_SIZE:
            raise Trap(
                "address-space",
                f"a tensor map must lie in parameter, constant or global memory, got the {name} "
                f"address 0x{address:x}",
            )
    data = cta.generic.read_bytes(address, TENSOR_MAP_BYTES, 64).tobytes()
    bound = BoundMap(*decode(data))
    cta.launch.tensor_maps.check(cta, address, data)
    return bound


@dataclass(frozen=True)
class Reach:
    """The part of a box inside its tensor, in the memory that it lies in, from index ``start``."""

    region: Region
    part: Part
    start: int

    @property
    def view(self) -> np.ndarray:
        """Its bytes."""
        return self.part.view(self.region.data, self.start)


def _reach(cta: Cta, bound: BoundMap, part: Part | None, access: str) -> Reach | None:
    """Where the copy touches memory; Trap unless all of that lies inside one array."""
    if part is None:
        return None
    address = part.at(bound.address)
    region = cta.launch.global_memory.region_at(address)
    reach = Reach(region, part, region.check_range(address, part.span, access))
    allowed = region.allowed
    if allowed is not None and not part.view(allowed, reach.start).all():
        raise Trap("out-of-bounds", "the tensor map reaches bytes between the array's elements")
    if region.touched is not None:
        marks = part.view(region.touched, reach.start)
        marks |= READ if access == "read" else WRITTEN
    return reach


def load_box(cta: Cta, bound: BoundMap, coordinates: tuple[int, ...]) -> np.ndarray:
    """The global side of a tensor load."""
    _note_base(cta, bound)
    reach = _reach(cta, bound, bound.map.part(coordinates), "read")
    if reach is None:
        return bound.map.filled(None, None)
    _check_order(cta, reach, "read")
    return bound.map.filled(reach.part, reach.view)


def _note_base(cta: Cta, bound: BoundMap) -> None:
    """Warn where the map of a load is based outside of every array, which stores may be."""
    if cta.launch.global_memory.contains(bound.address):
        return
    cta.launch.warn(
        "map-base",
        f"a tensor load through a map whose global address 0x{bound.address:x} lies in no array:"
        " GPUs have been seen to fault there whatever the load touches; a ragged map for loads"
        " starts at the array itself",
    )


def store_box(
    cta: Cta, bound: BoundMap, coordinates: tuple[int, ...], box: np.ndarray, operation: str | None
) -> int:
    """The global side of a tensor store or, with ``operation``, of a reduction; bytes written."""
    reach = _reach(cta, bound, bound.map.stored_part(coordinates), "write")
    if reach is None:
        return 0
    view, part = reach.view, bound.map.full_box(box)[reach.part.slices]
    same = None if operation else lambda: (view == part).reshape(-1)
    _check_order(cta, reach, "write", same)
    view[...] = part if operation is None else reduce_bytes(bound.map, view, part, operation)
    return part.size


def _check_order(cta: Cta, reach: Reach, access: str, same: Same | None = None) -> None:
    """Trap if the copy under way races; the element operations of a reduction are strong.

    same: of a store, which bytes keep their value; a warp may store the same box in every lane.
    """
    races = cta.launch.races
    if races is None or reach.region.shadow is None:
        return
    races.order = "relaxed" if access == "write" and same is None else None
    races.box(reach.region, _offsets_in(reach.region.data, reach.view), access, same)
    races.order = None


def _offsets_in(data: np.ndarray, view: np.ndarray) -> np.ndarray:
    """int64, the shape of the view: where its bytes lie in ``data``."""
    start = view.__array_interface__["data"][0] - data.__array_interface__["data"][0]
    offsets = np.int64(start)
    for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        steps = np.arange(length) * stride
        offsets = offsets + steps.reshape(-1, *(1,) * (view.ndim - axis - 1))
    return offsets


_SIGNED = {"int32": np.int32, "int64": np.int64}
_FLOATS = {"float16": np.float16, "float32": np.float32, "float32_ftz": np.float32,
           "float64": np.float64}  # fmt: skip
_OPERATIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduce_bytes(
    tensor_map: TiledMap, old: np.ndarray, new: np.ndarray, operation: str
) -> np.ndarray:
    """``old op new`` element by element, both as bytes of the map's element type."""
    name, size = tensor_map.dtype.name, tensor_map.dtype.bytes
    if operation in ("and", "or", "xor"):
        return _OPERATIONS[operation](old, new)
    if operation in ("inc", "dec"):
        return _count(name, old, new, operation)
    if name == "bfloat16":
        return _reduce_bf16(old, new, operation)
    dtype = _SIGNED.get(name) or _FLOATS.get(name) or np.dtype(f"u{size}")
    if name.startswith("tfloat32"):
        raise Trap("unmodelled", f"tensor reduction .{operation} of {name}")
    left, right = (np.ascontiguousarray(side).view(dtype) for side in (old, new))
    with np.errstate(all="ignore"):
        return _OPERATIONS[operation](left, right).astype(dtype).view(np.uint8)


def _count(name: str, old: np.ndarray, new: np.ndarray, operation: str) -> np.ndarray:
    """inc and dec, which wrap around at the new value."""
    if name != "uint32":
        raise Trap("tma", f"a tensor reduction .{operation} needs elements of uint32, got {name}")
    left, right = (np.ascontiguousarray(side).view(np.uint32) for side in (old, new))
    one, zero = np.uint32(1), np.uint32(0)
    if operation == "inc":
        return np.where(left >= right, zero, left + one).view(np.uint8)
    return np.where((left == 0) | (left > right), right, left - one).view(np.uint8)


def _reduce_bf16(old: np.ndarray, new: np.ndarray, operation: str) -> np.ndarray:
    left, right = (
        (np.ascontiguousarray(side).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        for side in (old, new)
    )
    with np.errstate(all="ignore"):
        bits = _OPERATIONS[operation](left, right).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, 0x7FFF, rounded).astype(np.uint16).view(np.uint8)


@dataclass
class BulkOperation:
    """A bulk store: `read` is done when its source is free, `write` when the result is there.

    source: the shared bytes it reads, busy until the thread has waited for the reading.
    """

    read: EngineOp
    write: EngineOp
    source: BusySource


@dataclass
class BulkGroups:
    """Bulk async-groups of one thread: operations not committed yet, and committed groups.

    written: the last write that is done but that the thread has not waited for.
    """

    open: list[BulkOperation] = field(default_factory=list)
    committed: deque[list[BulkOperation]] = field(default_factory=deque)
    written: list[EngineOp] = field(default_factory=list)

    def add(self, operation: BulkOperation) -> None:
        """An operation initiated by the thread."""
        self.open.append(operation)

    def commit(self) -> None:
        """Close the open group (an empty one is a group too)."""
        self.committed.append(self.open)
        self.open = []

    def _older(self, newest: int) -> list[BulkOperation]:
        groups = list(self.committed)[: max(0, len(self.committed) - newest)]
        return [operation for group in groups for operation in group]

    def awaited(self, newest: int, read: bool) -> list[EngineOp]:
        """What a wait for all but the ``newest`` groups waits for (the reading, with ``read``)."""
        older = self._older(newest)
        parts = [operation.read for operation in older]
        return parts if read else [*parts, *self.written, *(each.write for each in older)]

    def release(self, newest: int, read: bool) -> None:
        """That is done: the sources are free, and groups that are complete are forgotten."""
        for operation in self._older(newest):
            operation.source.release()
        self.written = self.written[-1:] if read else []
        for _ in range(max(0, len(self.committed) - newest)):
            if not all(operation.write.done for operation in self.committed[0]):
                return
            done = self.committed.popleft()
            if read and done:
                self.written = [done[-1].write]

    def unread(self) -> bool:
        """Whether a source in shared memory was never waited for."""
        groups = (*self.committed, self.open)
        return any(operation.source.busy for group in groups for operation in group)


def bulk_groups(cta: Cta, warp: int, lane: int) -> BulkGroups:
    """The groups of one thread; made at first use."""
    table = cta.state("bulk groups", dict)
    if not table:
        cta.at_exit(lambda: _check_sources(table))
    return table.setdefault((warp, lane), BulkGroups())


def _check_sources(table: dict[tuple[int, int], BulkGroups]) -> None:
    for (warp, lane), groups in table.items():
        if groups.unread():
            raise Trap(
                "bulk-group",
                f"the CTA exits while a bulk store of warp {warp} lane {lane} may still read its "
                f"shared memory; cp.async.bulk.wait_group.read 0 first",
            )
