"""Boxes of tensors, to and from swizzled shared memory.

A box row occupies the swizzle span in shared memory (the inner bytes without swizzle), also where
the box is narrower; the gap bytes stay untouched. The swizzle acts on absolute addresses.
Source: PTX ISA, sections "cp.async.bulk.tensor", "Swizzling Modes".
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from ..errors import Trap
from ..interface import Cta
from ..machine import swizzle as swizzles
from ..machine.engine import Move, Pieces
from ..machine.events import strong_accesses
from ..machine.memory import READ, WRITTEN, Region
from ..machine.shared_access import (
    WORD,
    Words,
    check_span,
    check_target,
    read_words,
    write_words,
)
from ..machine.swizzle import PATTERN_BYTES, Swizzle
from ..ptx.addresses import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from ..ptx.values import bf16_to_f32, f32_to_bf16
from ..truth import all_of, any_of
from .tensor_map import Part, TiledMap
from .tensor_map_object import FIELD_BYTES, TENSOR_MAP_BYTES, decode

TENSOR_ALIGNMENT = 128
"""Bytes to which the shared address of a tensor copy must be aligned."""
_MOST_REACHES = 1 << 14
"""Boxes of a map of which it is kept where they lie."""
GAP = 0xA5
"""What a copy leaves in the gaps of padded 4- and 6-bit elements, whose contents are undefined."""


@dataclass(frozen=True)
class Box:
    """How a tensor copy wrote a word: swizzle, tensor (its global address), PTX line, whether the
    box lies inside the tensor as a whole, and whether elements outside were filled with NaN;
    elements: the tensor map's type of them; shape: bytes from row to row, and how many rows there
    are along each other dimension, empty if unknown."""

    swizzle: Swizzle
    tensor: int
    line: int | None
    has_nan: bool
    is_inside: bool = True
    elements: str = ""
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class BoxPlan:
    """Word indices of a box relative to its start word, row by row, and the bytes they span.

    order: where the words fill these bytes, in which order those of the box lie there; else None.
    """

    words: np.ndarray
    span: int
    order: np.ndarray | None

    def at(self, start: int) -> Words:
        """The numbers of the words of a box that starts at a word, ascending where they can be."""
        if self.order is None:
            return self.words + start
        return slice(start, start + self.words.size)

    def arranged(self, box: np.ndarray) -> np.ndarray:
        """The words of a box in the order of `at`."""
        return box if self.order is None else box.reshape(-1).take(self.order)

    def restored(self, found: np.ndarray) -> np.ndarray:
        """Words in the order of `at` as the box."""
        return found if self.order is None else found.take(self.words)


@lru_cache(maxsize=1024)
def box_plan(mode: Swizzle, inner_bytes: int, rows: int, phase: int) -> BoxPlan:
    """Where the 64-bit words of a box go, for every start with ``start % 1024 == phase``."""
    pitch = inner_bytes if mode is swizzles.NONE else mode.span
    row = np.arange(rows)[:, None] * pitch
    logical = phase + row + np.arange(0, inner_bytes, WORD)[None, :]
    index = (mode.apply(logical) - phase) // WORD
    size = int(index.max()) + 1
    return BoxPlan(index, size * WORD, np.argsort(index, axis=None) if size == index.size else None)


def _place(
    cta: Cta, offset: int, tensor_map: TiledMap, rows: int, what: str
) -> tuple[BoxPlan, Words, tuple[int, int]]:
    plan = _plan(tensor_map, offset, rows)
    check_span(cta, offset, plan.span, TENSOR_ALIGNMENT, what)
    return plan, plan.at(offset // WORD), (offset, offset + plan.span)


def write_box(cta: Cta, offset: int, tensor_map: TiledMap, box: np.ndarray, what: str) -> Words:
    """Write ``box`` (``uint8[rows, inner_bytes]``) at window ``offset``; the words it went to."""
    plan, index, span = _place(cta, offset, tensor_map, len(box), what)
    check_target(cta, *span, what)
    write_words(cta, index, plan.arranged(_in_shared(tensor_map, box).view(np.uint64)), span)
    return index


def read_box(
    cta: Cta,
    offset: int,
    tensor_map: TiledMap,
    rows: int,
    what: str,
    inside: np.ndarray | None = None,
) -> np.ndarray:
    """The box at window ``offset`` as ``uint8[rows, inner_bytes]``.

    inside: bool of the same shape, of bytes that will be used; None if all are.
    """
    plan, index, span = _place(cta, offset, tensor_map, rows, what)
    if inside is None:
        return plan.restored(read_words(cta, index, what, span)).view(np.uint8)
    words = plan.words + offset // WORD
    counts = inside.reshape(rows, -1, WORD).any(axis=2)
    box = np.zeros(words.shape, np.uint64)
    if any_of(counts):
        box[counts] = read_words(cta, words[counts], what, span)
    return box.view(np.uint8)


def _in_shared(tensor_map: TiledMap, box: np.ndarray) -> np.ndarray:
    """``uint8[rows, bytes]`` as the rows lie in shared memory, the gaps filled with garbage."""
    kind = tensor_map.dtype
    if not kind.padded:
        return box
    units = np.full((len(box), tensor_map.inner_bytes // kind.bytes, kind.pitch), GAP, np.uint8)
    units[:, :, : kind.bytes] = box.reshape(len(box), -1, kind.bytes)
    return units.reshape(len(box), -1)


def _plan(tensor_map: TiledMap, offset: int, rows: int) -> BoxPlan:
    key = offset % PATTERN_BYTES, rows
    plan = tensor_map.plans.get(key)
    if plan is None:
        inner_bytes, phase = tensor_map.shared_inner_bytes, key[0]
        plan = tensor_map.plans[key] = box_plan(tensor_map.swizzle, inner_bytes, rows, phase)
    return plan


def box_shape(tensor_map: TiledMap, boxes: int) -> tuple[int, ...]:
    """Bytes from row to row of so many boxes, one behind the other, and their rows along each other
    dimension."""
    mode = tensor_map.swizzle
    pitch = tensor_map.shared_inner_bytes if mode is swizzles.NONE else mode.span
    rows = tensor_map.box[1:]
    return (
        (pitch, *rows)
        if boxes == 1 and math.prod(rows) == tensor_map.rows
        else (pitch, boxes * tensor_map.rows)
    )


def box_span(tensor_map: TiledMap, offset: int, rows: int) -> int:
    """Bytes of shared memory from the start of a box at window ``offset`` to its end."""
    return _plan(tensor_map, offset, rows).span


@dataclass(frozen=True)
class BoundMap:
    """A tensor map and the emulated global address of its tensor. boxes: how copies have written
    with it, by PTX line and whether the box lay inside the tensor; reaches: what loads have read
    with it, by coordinates."""

    map: TiledMap
    address: int
    boxes: dict[tuple[int, bool], Box] = field(default_factory=dict, compare=False)
    reaches: dict[tuple[int, ...], Reach] = field(default_factory=dict, compare=False)


def bound_map(cta: Cta, address: int) -> BoundMap:
    """The tensor map object at a generic address; ``Trap`` if none is visible to copies there."""
    known = cta.launch.state("constant tensor maps", dict)
    found = known.get(address)
    if found is None:
        _check_visible(address)
        found = _read_map(cta, address, known)
    data, bound = found
    cta.launch.events.map_used(cta, address, data)
    return bound


def _check_visible(address: int) -> None:
    for name, window in (("local", LOCAL_WINDOW), ("shared", SHARED_WINDOW)):
        if window <= address < window + WINDOW_SIZE:
            raise Trap(
                "address-space",
                f"a tensor map must lie in parameter, constant or global memory, got the {name} "
                f"address 0x{address:x}",
            )


def _read_map(
    cta: Cta, address: int, known: dict[int, tuple[bytes, BoundMap]]
) -> tuple[bytes, BoundMap]:
    """The fields in memory and their map; known: takes it where nobody can ever change it."""
    data = cta.generic.read_bytes(address, TENSOR_MAP_BYTES, 64)[:FIELD_BYTES].tobytes()
    found = data, BoundMap(*decode(data))
    if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_SIZE:
        known[address] = found
    return found


@dataclass(eq=False)
class Reach:
    """The part of a box inside its tensor, in the memory that it lies in, from index ``start``."""

    region: Region
    part: Part
    start: int

    @cached_property
    def view(self) -> np.ndarray:
        """The bytes of the part, as a view."""
        return self.part.view(self.region.data, self.start)

    @property
    def lasts(self) -> bool:
        """Whether a later copy may touch it without another look."""
        region = self.region
        return not (region.awaited or region.touched is not None or region.closed)


def _reach(cta: Cta, bound: BoundMap, part: Part | None, access: str) -> Reach | None:
    """Where the copy touches memory; Trap unless all of that lies inside one array."""
    if part is None:
        return None
    address = part.at(bound.address)
    region = cta.launch.global_memory.region_at(address)
    reach = Reach(region, part, region.check_range(address, part.span, access))
    allowed = region.allowed
    if allowed is not None and not all_of(part.view(allowed, reach.start)):
        raise Trap("out-of-bounds", "the tensor map reaches bytes between the array's elements")
    if region.touched is not None:
        marks = part.view(region.touched, reach.start)
        marks |= READ if access == "read" else WRITTEN
    return reach


def move_of_boxes(bound: BoundMap, starts: tuple[tuple[int, ...], ...], direction: str) -> Move:
    """What boxes move of their tensor, for profiles: each of their rows is a piece."""
    places = [bound.map.rows_at(start, bound.address) for start in starts]
    rows = np.concatenate([rows for rows, _ in places])
    sizes = np.concatenate([np.full(len(rows), size) for rows, size in places])
    return Move("global", direction, int(sizes.sum()), Pieces(rows, sizes))


def load_box(cta: Cta, bound: BoundMap, coordinates: tuple[int, ...]) -> np.ndarray:
    """The global side of a tensor load."""
    reach = bound.reaches.get(coordinates)
    if reach is None or not reach.lasts:
        reach = _first_reach(cta, bound, coordinates)
    if reach is None:
        return bound.map.filled(None, None)
    view = reach.view
    for tell in reach.region.heard("reading_box"):
        tell(reach.region, reach.start, view)
    return bound.map.filled(reach.part, view)


def _first_reach(cta: Cta, bound: BoundMap, coordinates: tuple[int, ...]) -> Reach | None:
    """Where a load reads; kept while nothing can make it illegal."""
    based = _note_base(cta, bound)
    reach = _reach(cta, bound, bound.map.part(coordinates), "read")
    if based and reach is not None and reach.lasts:
        if len(bound.reaches) == _MOST_REACHES:
            bound.reaches.clear()
        bound.reaches[coordinates] = reach
    return reach


def _note_base(cta: Cta, bound: BoundMap) -> bool:
    """Whether the map of a load is based inside an array; warn if not, which stores may be."""
    if cta.launch.global_memory.contains(bound.address):
        return True
    cta.launch.warn(
        "map-base",
        f"a tensor load through a map whose global address 0x{bound.address:x} lies in no array:"
        " GPUs have been seen to fault there whatever the load touches; a ragged map for loads"
        " starts at the array itself",
    )
    return False


def store_box(
    cta: Cta, bound: BoundMap, coordinates: tuple[int, ...], box: np.ndarray, operation: str | None
) -> int:
    """The global side of a tensor store or, with ``operation``, of a reduction; bytes written."""
    reach = _reach(cta, bound, bound.map.stored_part(coordinates), "write")
    if reach is None:
        return 0
    view, part = reach.view, bound.map.full_box(box)[reach.part.slices]
    same = None if operation else lambda: (view == part).reshape(-1)
    with strong_accesses(cta.launch) if operation else nullcontext():
        for tell in reach.region.heard("writing_box"):
            tell(reach.region, reach.start, view, same)
    view[...] = part if operation is None else reduce_bytes(bound.map, view, part, operation)
    return part.size


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
    left, right = (bf16_to_f32(np.ascontiguousarray(side).view(np.uint16)) for side in (old, new))
    with np.errstate(all="ignore"):
        return f32_to_bf16(_OPERATIONS[operation](left, right)).view(np.uint8)
