"""The 128 bytes of a tensor map object: the emulator's own encoding, which instructions can edit.

The first 64 bytes describe the map completely: they may be copied, edited by
``tensormap.replace`` and lie in any memory. All zeros are a map of which no field is set yet. The
other half is of no use, as on GPUs: grouped kernels of the CuTe DSL copy the first half alone.
Source: PTX ISA §5.5.8 (tensor-map), §9.7.9.26.1 (tensormap.replace, field values).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any

from ..errors import LaunchError, Trap
from ..machine import swizzle as swizzles
from .im2col import CORNER_BITS, Im2col
from .tensor_map import INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, TiledMap
from .tensor_map_types import by_ptx_number

TENSOR_MAP_BYTES = 128
"""Size of the object; its address must be a multiple of 64."""
FIELD_BYTES = 64
"""How many of them, from the first on, hold the fields."""
MAX_RANK = 5
NO_MAP = "the 128 bytes at the tensor map address are no map"
_MAGIC, _MAGIC_IM2COL = b"tmap\0", b"tm2c\0"
_SECTION = "PTX ISA section 9.7.9.26.1"
_ROWS_OF_BITS = ((MAX_RANK, 33), (MAX_RANK - 1, 40), (MAX_RANK, 9), (MAX_RANK, 4))
"""Entries of dims, strides, box and steps, and the bits of each."""
_SCALARS = (3, 4, 2, 3, 2, 1, 2, 64)
_WIDTHS = (*(bits for count, bits in _ROWS_OF_BITS for _ in range(count)), *_SCALARS)
_STRIDE_UNIT = 16
_WIDTHS_IM2COL = (*[33] * MAX_RANK, *[36] * (MAX_RANK - 1), 9, *[4] * MAX_RANK, *_SCALARS, 11, 32)
"""Bits of dims, strides in units of 16 bytes, channels, steps, the scalars, pixels and corners."""
_MODE_128B = 3
_LARGEST_STEP, _LARGEST_BOX, _LARGEST_STRIDE = (1 << 4) - 1, (1 << 9) - 1, (1 << 40) - 1

Row = tuple[int, ...]


@dataclass(frozen=True)
class MapObject:
    """The fields as they are stored: an entry for each dimension that a map can have, numbers as
    the instruction gives them.

    ``dtype``, ``interleave``, ``fill`` and ``promotion`` are the driver's enumerators;
    ``mode`` and ``atomicity`` make the swizzle.
    """

    dims: Row = (0,) * MAX_RANK
    strides: Row = (0,) * (MAX_RANK - 1)
    box: Row = (0,) * MAX_RANK
    steps: Row = (0,) * MAX_RANK
    rank: int = 1
    dtype: int = 0
    interleave: int = 0
    mode: int = 0
    atomicity: int = 0
    fill: int = 0
    promotion: int = 0
    address: int = 0

    def pack(self) -> bytes:
        """The first 64 bytes."""
        return _packed(_MAGIC, (*self.dims, *self.strides, *self.box, *self.steps,
                                *self._scalars()), _WIDTHS)  # fmt: skip

    def pack_im2col(self, im2col: Im2col) -> bytes:
        """The same in im2col mode."""
        strides, bits = [stride // _STRIDE_UNIT for stride in self.strides], CORNER_BITS[self.rank]
        corners = 0
        for value in reversed((*im2col.lower, *im2col.upper)):
            corners = corners << bits | value & (1 << bits) - 1
        return _packed(_MAGIC_IM2COL, (*self.dims, *strides, self.box[0], *self.steps,
                                       *self._scalars(), im2col.pixels, corners),
                       _WIDTHS_IM2COL)  # fmt: skip

    def _scalars(self) -> tuple[int, ...]:
        return astuple(self)[4:]

    @staticmethod
    def unpack(data: bytes) -> MapObject:
        """The fields of an object; zeros are an empty map, other bytes are a ``Trap``."""
        if not any(data[:FIELD_BYTES]):
            return MapObject()
        if data.startswith(_MAGIC_IM2COL):
            raise Trap("tensor-map", "the map is in im2col mode, and tensormap.replace.tile is of"
                                     f" tiled ones ({_SECTION})")  # fmt: skip
        if not data.startswith(_MAGIC):
            raise Trap("tensor-map", NO_MAP)
        values = _unpacked(data, _WIDTHS)
        rows: list[Any] = [tuple(values.pop(0) for _ in range(count)) for count, _ in _ROWS_OF_BITS]
        return MapObject(*rows, *values)

    @staticmethod
    def unpack_im2col(data: bytes) -> tuple[MapObject, Im2col]:
        """The fields of an object in im2col mode."""
        values = _unpacked(data, _WIDTHS_IM2COL)
        dims, strides, rest = values[:5], values[5:9], values[9:]
        box, steps, scalars = (rest[0], 1, 1, 1, 1), tuple(rest[1:6]), rest[6:-2]
        found = MapObject(tuple(dims), tuple(each * _STRIDE_UNIT for each in strides), box, steps,
                          *scalars)  # fmt: skip
        if found.rank not in CORNER_BITS:
            raise Trap("tensor-map", NO_MAP)
        bits, corners = CORNER_BITS[found.rank], []
        for _ in range(2 * (found.rank - 2)):
            value = rest[-1] & (1 << bits) - 1
            corners.append(value - (value >> bits - 1 << bits))
            rest[-1] >>= bits
        lower, upper = corners[: found.rank - 2], corners[found.rank - 2 :]
        return found, Im2col(tuple(lower), tuple(upper), rest[-2])

    def tiled(self) -> TiledMap:
        """The map that the fields describe; ``LaunchError`` where the driver would refuse it."""
        rank = self.rank
        return TiledMap(
            self.dtype,
            self.dims[:rank],
            self.strides[: rank - 1],
            self.box[:rank],
            self.steps[:rank],
            self.interleave,
            self._swizzle(),
            self.promotion,
            self.fill,
        )

    def _swizzle(self) -> int:
        if self.mode == _MODE_128B and self.atomicity < 4:
            return _MODE_128B + self.atomicity
        if self.mode > _MODE_128B or self.atomicity:
            raise LaunchError(f"tensor map: swizzle mode {self.mode} with atomicity "
                              f"{self.atomicity} is not modelled")  # fmt: skip
        return self.mode


def _packed(magic: bytes, values: tuple[int, ...], widths: tuple[int, ...]) -> bytes:
    number, at = 0, 0
    for value, bits in zip(values, widths, strict=True):
        number |= value << at
        at += bits
    return magic + number.to_bytes(FIELD_BYTES - len(magic), "little")


def _unpacked(data: bytes, widths: tuple[int, ...]) -> list[int]:
    number, values = int.from_bytes(data[len(_MAGIC) : FIELD_BYTES], "little"), []
    for bits in widths:
        values.append(number & (1 << bits) - 1)
        number >>= bits
    return values


def _padded(row: Row, length: int = MAX_RANK) -> Row:
    return row + (0,) * (length - len(row))


def encode(tiled: TiledMap, address: int) -> bytes:
    """The object of a map whose tensor starts at a global ``address``."""
    number = swizzles.MODES.index(tiled.swizzle)
    found = MapObject(
        dims=_padded(tiled.dims),
        strides=_padded(tiled.strides, MAX_RANK - 1),
        box=_padded(tiled.box),
        steps=_padded(tiled.element_strides),
        rank=tiled.rank,
        dtype=tiled.dtype.number,
        mode=min(number, _MODE_128B),
        atomicity=max(number - _MODE_128B, 0),
        fill=OOB_FILLS.index(tiled.oob_fill),
        promotion=L2_PROMOTIONS.index(tiled.l2_promotion),
        address=address,
    )
    packed = found.pack_im2col(tiled.im2col) if tiled.im2col else found.pack()
    return packed.ljust(TENSOR_MAP_BYTES, b"\0")


@lru_cache(maxsize=1024)
def decode(data: bytes) -> tuple[TiledMap, int]:
    """(map, global address) of an object; ``Trap`` if it is none or breaks a rule."""
    im2col = None
    if data.startswith(_MAGIC_IM2COL):
        found, im2col = MapObject.unpack_im2col(data)
    else:
        found = MapObject.unpack(data)
    if not any(data[:FIELD_BYTES]):
        raise Trap("tensor-map", NO_MAP)
    try:
        tiled = found.tiled()
        tiled.im2col = im2col
        tiled.check_address(found.address)
    except LaunchError as error:
        raise Trap("tensor-map", str(error).removeprefix("tensor map: ")) from None
    return tiled, found.address


# -- tensormap.replace ---------------------------------------------------------------------------

_ROWS = {
    "box_dim": ("box", _LARGEST_BOX),
    "global_dim": ("dims", None),
    "global_stride": ("strides", _LARGEST_STRIDE),
    "element_stride": ("steps", _LARGEST_STEP),
}
_CHOICES = {
    "interleave_layout": ("interleave", len(INTERLEAVES)),
    "swizzle_mode": ("mode", 5),
    "swizzle_atomicity": ("atomicity", 4),
    "fill_mode": ("fill", len(OOB_FILLS)),
}
ORDINAL_FIELDS = tuple(_ROWS)
"""Fields with one value a dimension."""
CONSTANT_FIELDS = {"elemtype": 15, **{name: count - 1 for name, (_, count) in _CHOICES.items()}}
"""Fields whose new value is an immediate, and the largest."""


_ROUNDED = (11, 12)
"""Enumerators of tf32 and of tf32 that flushes subnormal numbers."""
_OF_ROUNDED = {7: 11, 10: 12}
"""What an H200 makes of f32, and of f32 that flushes, in their place: it goes on rounding."""
_WORDS = {2: "u32", 3: "s32"}


def replaced(data: bytes, field: str, ordinal: int, value: int) -> bytes:
    """The fields with one of them replaced, as ``tensormap.replace.tile.field`` does it."""
    found = MapObject.unpack(data)
    if field == "global_address":
        return replace(found, address=value).pack()
    if field == "rank":
        return replace(found, rank=_below(field, value, MAX_RANK) + 1).pack()
    if field == "elemtype":
        number = by_ptx_number(value)
        dtype = _below(field, value if number is None else number, 16)
        return replace(found, dtype=_still_rounded(found.dtype, dtype)).pack()
    if field in _CHOICES:
        name, count = _CHOICES[field]
        return replace(found, **{name: _below(field, value, count)}).pack()
    name, limit = _ROWS[field]
    row = list(getattr(found, name))
    row[ordinal] = value if limit is None else _below(field, value, limit + 1)
    return replace(found, **{name: tuple(row)}).pack()


def _still_rounded(old: int, new: int) -> int:
    """The type that copies have where another one takes the place of tf32, of which PTX says
    nothing. An H200 stops at copies of integers, as at an illegal instruction."""
    if old not in _ROUNDED:
        return new
    if new in _WORDS:
        raise Trap(
            "tensor-map",
            f"tensormap.replace .elemtype of a map of tf32 by {_WORDS[new]}: GPUs stop at copies"
            " through it; make the map of another type",
        )
    return _OF_ROUNDED.get(new, new)


def _below(field: str, value: int, limit: int) -> int:
    if value >= limit:
        raise Trap("tensor-map", f"tensormap.replace .{field} must be below {limit}, got {value}"
                                 f" ({_SECTION})")  # fmt: skip
    return value
