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
from .tensor_map import INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, TiledMap
from .tensor_map_types import by_ptx_number

TENSOR_MAP_BYTES = 128
"""Size of the object; its address must be a multiple of 64."""
FIELD_BYTES = 64
"""How many of them, from the first on, hold the fields."""
MAX_RANK = 5
NO_MAP = "the 128 bytes at the tensor map address are no map"
_MAGIC = b"tmap\0"
_SECTION = "PTX ISA section 9.7.9.26.1"
_ROWS_OF_BITS = ((MAX_RANK, 33), (MAX_RANK - 1, 40), (MAX_RANK, 9), (MAX_RANK, 4))
"""Entries of dims, strides, box and steps, and the bits of each."""
_WIDTHS = (*(bits for count, bits in _ROWS_OF_BITS for _ in range(count)), 3, 4, 2, 3, 2, 1, 2, 64)
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
        rows, scalars = astuple(self)[:4], astuple(self)[4:]
        fields, number, at = (*(each for row in rows for each in row), *scalars), 0, 0
        for value, bits in zip(fields, _WIDTHS, strict=True):
            number |= value << at
            at += bits
        return _MAGIC + number.to_bytes(FIELD_BYTES - len(_MAGIC), "little")

    @staticmethod
    def unpack(data: bytes) -> MapObject:
        """The fields of an object; zeros are an empty map, other bytes are a ``Trap``."""
        if not any(data[:FIELD_BYTES]):
            return MapObject()
        if not data.startswith(_MAGIC):
            raise Trap("tensor-map", NO_MAP)
        number, values = int.from_bytes(data[len(_MAGIC) : FIELD_BYTES], "little"), []
        for bits in _WIDTHS:
            values.append(number & (1 << bits) - 1)
            number >>= bits
        rows: list[Any] = [tuple(values.pop(0) for _ in range(count)) for count, _ in _ROWS_OF_BITS]
        return MapObject(*rows, *values)

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
    return found.pack().ljust(TENSOR_MAP_BYTES, b"\0")


@lru_cache(maxsize=1024)
def decode(data: bytes) -> tuple[TiledMap, int]:
    """(map, global address) of an object; ``Trap`` if it is none or breaks a rule."""
    found = MapObject.unpack(data)
    if not any(data[:FIELD_BYTES]):
        raise Trap("tensor-map", NO_MAP)
    try:
        tiled = found.tiled()
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


def replaced(data: bytes, field: str, ordinal: int, value: int) -> bytes:
    """The fields with one of them replaced, as ``tensormap.replace.tile.field`` does it."""
    found = MapObject.unpack(data)
    if field == "global_address":
        return replace(found, address=value).pack()
    if field == "rank":
        return replace(found, rank=_below(field, value, MAX_RANK) + 1).pack()
    if field == "elemtype":
        number = by_ptx_number(value)
        return replace(found, dtype=_below(field, value if number is None else number, 16)).pack()
    if field in _CHOICES:
        name, count = _CHOICES[field]
        return replace(found, **{name: _below(field, value, count)}).pack()
    name, limit = _ROWS[field]
    row = list(getattr(found, name))
    row[ordinal] = value if limit is None else _below(field, value, limit + 1)
    return replace(found, **{name: tuple(row)}).pack()


def _below(field: str, value: int, limit: int) -> int:
    if value >= limit:
        raise Trap("tensor-map", f"tensormap.replace .{field} must be below {limit}, got {value}"
                                 f" ({_SECTION})")  # fmt: skip
    return value
