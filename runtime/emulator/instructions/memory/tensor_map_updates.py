"""tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap::generic (PTX ISA §9.7.9.26,
§9.7.13.4, §9.7.13.15.19): tensor maps that are built or changed on the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...copies.tensor_map_object import (
    CONSTANT_FIELDS,
    FIELD_BYTES,
    MAX_RANK,
    ORDINAL_FIELDS,
    TENSOR_MAP_BYTES,
    replaced,
)
from ...errors import Trap
from ...interface import Warp
from ...machine.spaces import Space
from ...ptx.addresses import GLOBAL_BASE
from ...ptx.decode import Decoded
from ...ptx.lanes import TOGETHER
from ...ptx.registry import Blocked, Step, instruction
from ..threads.convergence import take_aligned
from .memory import SCOPES, space_of

_FIELDS = ("global_address", "rank", *ORDINAL_FIELDS, *CONSTANT_FIELDS)
_WIDE_FIELDS = ("global_address", "global_stride")
_WORDS = FIELD_BYTES // 8
_OFFSETS = np.arange(_WORDS, dtype=np.uint64) * np.uint64(8)
_COPYING = np.arange(32) < _WORDS
_ALIGNMENT = 64
_NULL_FENCE = (
    "an acquire fence of a tensor map takes an address in global memory (PTX ISA section 9.7.13.4),"
    " got a null pointer, which GPUs pass over"
)


def _check_aligned(address: int) -> None:
    if address % _ALIGNMENT:
        raise Trap("misaligned", f"the address of a tensor map must be a multiple of {_ALIGNMENT},"
                                 f" got 0x{address:x}")  # fmt: skip


def _read(space: Space, address: int) -> bytes:
    _check_aligned(address)
    return space.load(np.uint64(address) + _OFFSETS, 8).tobytes()


def _read_together(warp: Warp, address: int) -> bytes:
    """A map in shared memory that all lanes read: one of them has not seen what another wrote
    until they meet."""
    warp.launch.mask = TOGETHER
    data = _read(warp.cta.shared_space, address)
    warp.launch.mask = None
    return data


def _write(
    warp: Warp, lanes: np.ndarray, space: Space, address: int, old: bytes, new: bytes
) -> None:
    """Store the words that differ, by each of the lanes."""
    count = int(lanes.sum())
    before, after = np.frombuffer(old, np.uint64), np.frombuffer(new, np.uint64)
    for word in np.flatnonzero(before != after):
        place = np.full(count, address + 8 * int(word), np.uint64)
        space.store(place, np.full(count, after[word]), 8, 1, (warp, lanes))


@instruction("tensormap.replace.tile", section="9.7.9.26.1")
def build_replace(ins: Decoded) -> Step:
    """tensormap.replace.tile.field{.ss}.b1024.type [addr]{, ord}, new_val."""
    field = ins.required(_FIELDS)
    ins.required(("b1024",))
    bits = 64 if field in _WIDE_FIELDS else 32
    ins.required((f"b{bits}",))
    space = ins.choice(("global", "shared::cta"))
    ins.finish_modifiers()
    ins.expect_operands(3 if field in ORDINAL_FIELDS else 2)
    ordinal = _ordinal(ins, field)
    at = len(ins.operands) - 1
    if field in CONSTANT_FIELDS:
        ins.immediate(at)
        ins.bound_constant(at, 0, CONSTANT_FIELDS[field])
    _, of = space_of(ins, space, ins.operand(0))
    address, value = ins.address(0), ins.read(at, np.dtype(f"u{bits // 8}"))

    def step(warp: Warp, mask: np.ndarray) -> None:
        places, values = address(warp), value(warp)
        changes = zip(places[mask].tolist(), values[mask].tolist(), strict=True)
        for place, new in dict.fromkeys(changes):
            lanes = mask & (places == place) & (values == new)
            old = _read(of(warp), place)
            _write(warp, lanes, of(warp), place, old, replaced(old, field, ordinal, new))
            if place >= GLOBAL_BASE:
                warp.launch.events.map_edited(warp, place)

    return step


def _ordinal(ins: Decoded, field: str) -> int:
    if field not in ORDINAL_FIELDS:
        return 0
    ordinal, limit = ins.immediate(1), MAX_RANK - (field == "global_stride")
    if not 0 <= ordinal < limit:
        raise ins.trap("operand", f"the ordinal of .{field} must be below {limit}, got {ordinal}")
    return ordinal


def _check_size(ins: Decoded, at: int) -> None:
    if ins.immediate(at) != TENSOR_MAP_BYTES:
        raise ins.trap("operand", f"the size must be {TENSOR_MAP_BYTES}, got {ins.immediate(at)}")


@instruction("tensormap.cp_fenceproxy", section="9.7.13.15.19")
def build_copy(ins: Decoded) -> Step:
    """tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned
    [dst], [src], 128: copy a map to global memory and release it to the tensormap proxy."""
    for part in ("global", "shared::cta", "tensormap::generic", "release"):
        ins.required((part,))
    scope = ins.required(SCOPES)
    converged = take_aligned(ins)
    ins.finish_modifiers()
    ins.expect_operands(3)
    _check_size(ins, 2)
    target, source = _uniform(ins, 0), _uniform(ins, 1)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        to, data = target(warp), _read_together(warp, source(warp))
        _check_aligned(to)
        words, places = np.frombuffer(data, np.uint64), np.uint64(to) + _OFFSETS
        warp.launch.global_memory.store(places, words, 8, 1, (warp, _COPYING))
        warp.launch.events.map_published(warp, to, scope)
        return None

    return step


def _uniform(ins: Decoded, at: int) -> Callable[[Warp], int]:
    address = ins.address(at)

    def read(warp: Warp) -> int:
        values = address(warp)
        if (values != values[0]).any():
            raise Trap("convergence", f"an address of {ins.mnemonic} differs between lanes")
        return int(values[0])

    return read


@instruction("fence.proxy.tensormap::generic", section="9.7.13.4")
def build_fence(ins: Decoded) -> Step:
    """fence.proxy.tensormap::generic.{release.scope, acquire.scope [a], 128}."""
    order = ins.required(("release", "acquire"))
    scope = ins.required(SCOPES)
    ins.finish_modifiers()
    ins.expect_operands(0 if order == "release" else 2)
    if order == "release":
        return lambda warp, mask: warp.launch.events.maps_released(warp, scope)
    _check_size(ins, 1)
    address = ins.address(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for place in np.unique(address(warp)[mask]).tolist():
            if not place:
                warp.launch.events.departed("address-space", "null-fence", _NULL_FENCE)
                continue
            data = _read(warp.generic, place)
            warp.launch.events.map_acquired(warp.cta, place, data, scope)

    return step
