"""Tensor maps: the arguments of cuTensorMapEncodeTiled, validated, and the boxes they describe.

Dimension 0 is the contiguous one everywhere. A box is a dense byte array ``[rows, inner_bytes]``:
the rows run over dimensions 1 .. rank-1, dimension 1 fastest, the order in which the tensor copy
engine lays them out in shared memory.

Sources: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, sections "Tensors" and
"cp.async.bulk.tensor".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from ..errors import LaunchError, Trap
from ..machine import swizzle as swizzles
from ..machine.swizzle import Swizzle
from .tensor_map_types import element_type

TENSOR_MAP_BYTES = 128
"""Size of the opaque object; its address must be a multiple of 64."""
ADDRESSES = 1 << 64
"""Addresses are computed modulo this."""

L2_PROMOTIONS = ("none", "64B", "128B", "256B")
OOB_FILLS = ("zero", "nan")
INTERLEAVES = ("none", "16B", "32B")
_STORE_UNIT = 16
_PADDED_BOX = 128
_PADDED_ALIGNMENT = 32


@dataclass(frozen=True)
class Part:
    """The part of a box that lies inside its tensor, outermost dimension first, the last in bytes.

    offset: bytes from the global address to its first byte, which may exceed 2^64 (see `Part.at`);
    shape, strides: of the bytes in memory; slices: which part of the whole box it is.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    slices: tuple[slice, ...]

    @cached_property
    def bytes(self) -> int:
        """How many there are."""
        return prod(self.shape)

    @cached_property
    def span(self) -> int:
        """Bytes of memory from its first byte to its last one, both included."""
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))

    def at(self, address: int) -> int:
        """The address of its first byte, in 64 bits, if the tensor starts at ``address``.

        Ragged maps rely on the wrap-around: two outer dimensions whose coordinates add up to 2^64
        bytes let one map bound the rows of any group (Triton's ``ragged_tma``, QuACK).
        """
        return (address + self.offset) % ADDRESSES

    def view(self, memory: np.ndarray, start: int) -> np.ndarray:
        """A view of its bytes in the flat ``uint8`` image ``memory``, in which the tensor begins at
        index ``start``."""
        return np.ndarray(self.shape, np.uint8, memory, start, self.strides)


class TiledMap:
    """A tiled tensor map as the engine sees it: shape, box and layout, without the address.

    The arguments are those of ``TensorMap``. Raises ``LaunchError`` where the driver would refuse.
    im2col: how copies walk over pixels, each of which is a box of the map (`im2col.Im2col`); None
    if the map is tiled.
    """

    im2col: Any = None

    def __init__(
        self,
        dtype: str | int,
        dims: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        interleave: str | int = "none",
        swizzle: str | int = "none",
        l2_promotion: str | int = "none",
        oob_fill: str | int = "zero",
    ):
        self.dtype = element_type(dtype)
        self.dims = integers("globalDim", dims)
        self.strides = integers("globalStrides", strides)
        self.box = integers("boxDim", box)
        steps = element_strides if element_strides is not None else [1] * len(self.dims)
        self.element_strides = integers("elementStrides", steps)
        self.swizzle = _swizzle(swizzle)
        _no_interleave(interleave)
        self.l2_promotion = _choice("l2Promotion", l2_promotion, L2_PROMOTIONS)
        self.oob_fill = _choice("oobFill", oob_fill, OOB_FILLS)
        self._validate()
        self._derive()
        self._part = lru_cache(maxsize=4096)(self._part_at)
        self._rounds = self.dtype.name.startswith("tfloat32")
        self.plans: dict[tuple[int, int], Any] = {}  # of `box_copy`

    @property
    def rank(self) -> int:
        """Number of dimensions, 1..5."""
        return len(self.dims)

    def check_address(self, address: int) -> None:
        """Raise ``LaunchError`` unless the global address is aligned to 16 (padded: 32) bytes."""
        if address % self._alignment:
            raise _error(
                f"globalAddress must be a multiple of {self._alignment}, got 0x{address:x}"
            )

    @property
    def _alignment(self) -> int:
        return _PADDED_ALIGNMENT if self.dtype.padded else 16

    def load(self, memory: np.ndarray, coordinates: Sequence[int]) -> np.ndarray:
        """The box at ``coordinates`` (elements, dimension 0 first) as ``uint8[rows, inner_bytes]``.

        ``memory`` is the flat ``uint8`` image starting at the global address.
        """
        part = self.part(coordinates)
        return self.filled(part, None if part is None else part.view(memory, part.offset))

    def filled(self, part: Part | None, values: np.ndarray | None) -> np.ndarray:
        """A loaded box as ``uint8[rows, inner_bytes]``, of which ``values`` are the part inside.

        Packed elements lie dense, as in global memory. Elements outside the tensor get the fill
        value; tfloat32 elements are rounded to 10 mantissa bits.
        """
        if part is None or values is None:
            box = self._filled.copy()
        elif part.shape == self._filled.shape:
            box = values.copy()
        else:
            box = self._filled.copy()
            box[part.slices] = values
        if self._rounds:
            _round_to_tf32(box.view(np.uint32))
        return box.reshape(self.rows, self.inner_bytes)

    def store(self, memory: np.ndarray, coordinates: Sequence[int], box: np.ndarray) -> None:
        """Write ``box`` (``uint8[rows, inner_bytes]``) at ``coordinates``; outside is dropped."""
        part = self.stored_part(coordinates)
        if part is not None:
            part.view(memory, part.offset)[...] = self.full_box(box)[part.slices]

    def stored_part(self, coordinates: Sequence[int]) -> Part | None:
        """The part of a box that a store writes; None if it lies wholly outside the tensor."""
        self._check_store(coordinates)
        return self.part(coordinates)

    def part(self, coordinates: Sequence[int]) -> Part | None:
        """The part of the box that lies inside the tensor; None if it lies wholly outside."""
        return self._part(tuple(coordinates))

    def _part_at(self, coordinates: tuple[int, ...]) -> Part | None:
        inside = self._inside(coordinates)
        if inside is None:
            return None
        size, lengths = self.dtype.bytes, [high - low for low, high in inside]
        byte_strides = (size, *self.strides)
        walks = zip(self._walks(coordinates), inside, byte_strides, strict=True)
        steps = [stride * step for stride, step in zip(self.strides, self._steps[1:], strict=True)]
        return Part(
            offset=sum(
                (start + low * step) * stride for (start, _, _, step), (low, _), stride in walks
            ),
            shape=(*reversed(lengths[1:]), lengths[0] * size),
            strides=(*reversed(steps), 1),
            slices=self._box_slices(inside),
        )

    def inside_bytes(self, coordinates: Sequence[int]) -> int:
        """Bytes of the box at ``coordinates`` that lie inside the tensor."""
        part = self.part(coordinates)
        return part.bytes if part else 0

    def inside(self, coordinates: Sequence[int]) -> np.ndarray:
        """bool[rows, inner_bytes]: which bytes of the box lie inside the tensor."""
        part, found = self.part(coordinates), np.zeros(self._filled.shape, bool)
        if part is not None:
            found[part.slices] = True
        return found.reshape(self.rows, self.inner_bytes)

    def rows_at(self, coordinates: Sequence[int], address: int) -> tuple[np.ndarray, int]:
        """Addresses uint64[n] of the rows of the part inside the tensor, and the bytes of each."""
        part = self.part(coordinates)
        if part is None:
            return np.zeros(0, np.uint64), 0
        starts = np.array([part.at(address)], np.uint64)
        for count, stride in zip(part.shape[:-1], part.strides[:-1], strict=True):
            steps = np.arange(count, dtype=np.uint64) * np.uint64(stride)
            starts = (starts[:, None] + steps).reshape(-1)
        return starts, part.shape[-1]

    def full_box(self, box: np.ndarray) -> np.ndarray:
        """``box`` reshaped to one axis a dimension, outermost first, the last one in bytes."""
        return box.reshape(self._filled.shape)

    def _derive(self) -> None:
        steps = (1, *self.element_strides[1:])
        self._steps = steps
        self.counts = tuple(-(-b // s) for b, s in zip(self.box, steps, strict=True))
        self.inner_bytes = self.dtype.span(self.box[0])
        self.shared_inner_bytes = self.inner_bytes // self.dtype.bytes * self.dtype.pitch
        self.rows = prod(self.counts[1:])
        self.box_bytes = self.rows * self.inner_bytes
        shape = (*reversed(self.counts[1:]), self.inner_bytes)
        self._filled = np.resize(self._fill_bytes(), self.box_bytes).reshape(shape)

    def _fill_bytes(self) -> np.ndarray:
        pattern = [0xF7, 0x7F] if self.oob_fill == "nan" else [0, 0]
        return np.array(pattern, np.uint8)

    def _inside(self, coordinates: Sequence[int]) -> list[tuple[int, int]] | None:
        """Per dimension the half-open range of box positions inside the tensor, in units."""
        ranges = []
        for start, dim, count, step in self._walks(coordinates):
            low = max(0, -(start // step)) if start < 0 else 0
            high = min(count, -((start - dim) // step))
            if low >= high:
                return None
            ranges.append((low, high))
        return ranges

    def _walks(self, coordinates: Sequence[int]) -> list[tuple[int, int, int, int]]:
        """(start, extent, positions, step) of each dimension, the first one in units."""
        unit = self.dtype.unit
        if coordinates[0] % unit:
            raise Trap(
                "unmodelled",
                f"coordinate 0 of a map of {self.dtype.name} that is no multiple of {unit},"
                f" got {coordinates[0]} (PTX ISA section 5.5.1)",
            )
        rest = zip(coordinates[1:], self.dims[1:], self.counts[1:], self._steps[1:], strict=True)
        first = (coordinates[0] // unit, self.dims[0] // unit, self.counts[0] // unit, 1)
        return [first, *rest]

    def _box_slices(self, inside: list[tuple[int, int]]) -> tuple[slice, ...]:
        size = self.dtype.bytes
        inner = slice(inside[0][0] * size, inside[0][1] * size)
        return (*(slice(low, high) for low, high in reversed(inside[1:])), inner)

    def _check_store(self, coordinates: Sequence[int]) -> None:
        if self.im2col is not None:
            self.im2col.check_store(self)
        if min(coordinates) < 0:
            raise Trap("tma", f"a tensor store needs coordinates >= 0, got {coordinates}")
        if self.dtype.padded:
            raise Trap("unmodelled", f"tensor store through a map of {self.dtype.name}")
        row_bytes = self.dtype.span(self.dims[0])
        if row_bytes % _STORE_UNIT and coordinates[0] + self.box[0] > self.dims[0]:
            raise Trap(
                "unmodelled",
                f"tensor store past the end of rows of {row_bytes} bytes: GPUs write the whole"
                f" {_STORE_UNIT} bytes that a row ends in (seen on an H200; PTX ISA section 5.5)",
            )

    def _validate(self) -> None:
        if not 1 <= self.rank <= 5:
            raise _error(f"tensorRank must be 1..5, got {self.rank}")
        self._check_lengths()
        for index in range(self.rank):
            self._check_dimension(index)
        for index, stride in enumerate(self.strides):
            _check_stride(index, stride)
        self._check_inner()
        self._check_packed()
        if self.oob_fill == "nan" and not self.dtype.floating:
            raise _error(f"oobFill nan needs a floating point type, got {self.dtype.name}")

    def _check_lengths(self) -> None:
        for name, values, length in (
            ("globalStrides", self.strides, self.rank - 1),
            ("boxDim", self.box, self.rank),
            ("elementStrides", self.element_strides, self.rank),
        ):
            if len(values) != length:
                raise _error(f"{name} must have {length} entries, got {len(values)}")

    def _check_dimension(self, index: int) -> None:
        for name, values, high in (
            ("globalDim", self.dims, 1 << 32),
            ("boxDim", self.box, 256),
            ("elementStrides", self.element_strides, 8),
        ):
            if not 1 <= values[index] <= high:
                raise _error(f"{name}[{index}] must be 1..{high}, got {values[index]}")

    def _check_inner(self) -> None:
        inner = self.dtype.span(self.box[0]) // self.dtype.bytes * self.dtype.pitch
        if inner % 16:
            raise _error(f"boxDim[0] must span a multiple of 16 bytes, got {inner}")
        if self.swizzle is not swizzles.NONE and inner > self.swizzle.span:
            raise _error(
                f"boxDim[0] must span at most {self.swizzle.span} bytes for swizzle "
                f"{self.swizzle.name}, got {inner}"
            )

    def _check_packed(self) -> None:
        """What the driver asks of 4- and 6-bit types."""
        kind = self.dtype
        multiple = _PADDED_BOX if kind.padded else kind.unit
        if self.dims[0] % multiple:
            raise _error(f"globalDim[0] of {kind.name} must be a multiple of {multiple}, got "
                         f"{self.dims[0]}")  # fmt: skip
        if not kind.padded:
            return
        if self.box[0] != _PADDED_BOX:
            raise _error(f"boxDim[0] of {kind.name} must be {_PADDED_BOX}, got {self.box[0]}")
        for index, stride in enumerate(self.strides):
            if stride % _PADDED_ALIGNMENT:
                raise _error(f"globalStrides[{index}] of {kind.name} must be a multiple of "
                             f"{_PADDED_ALIGNMENT} bytes, got {stride}")  # fmt: skip
        if self.swizzle not in (swizzles.NONE, swizzles.B128, swizzles.B128_ATOM_32B):
            raise _error(f"swizzle of {kind.name} must be none, 128B or 128B_ATOM_32B, got "
                         f"{self.swizzle.name}")  # fmt: skip


class TensorMap(TiledMap):
    """A tiled tensor map over ``array``, with the arguments of cuTensorMapEncodeTiled.

    ``array`` is the numpy array whose memory the map describes; its first byte plus ``offset``
    bytes, which may be negative, is the global address. ``dims`` and ``box`` count elements,
    ``strides`` are the bytes of dimensions 1 .. rank-1. Copies step by ``element_strides``, 1 by
    default. ``dtype`` is a name ("bf16", "float32", "16u4_align8b", ...) or the driver's number;
    ``swizzle`` a name of ``swizzle.MODES`` or number; ``interleave`` only "none" (0) is modelled;
    ``l2_promotion`` is checked and has no effect; ``oob_fill`` is "zero" (0) or "nan" (1). Raises
    ``LaunchError`` where the driver would refuse.
    The described tensor may be larger than the array: what a copy touches is checked.
    """

    def __init__(
        self, array: np.ndarray, dtype: str | int, dims: Sequence[int], strides: Sequence[int],
        box: Sequence[int], element_strides: Sequence[int] | None = None,
        interleave: str | int = "none", swizzle: str | int = "none",
        l2_promotion: str | int = "none", oob_fill: str | int = "zero", offset: int = 0,
    ):  # fmt: skip
        super().__init__(dtype, dims, strides, box, element_strides, interleave, swizzle,
                         l2_promotion, oob_fill)  # fmt: skip
        if not isinstance(array, np.ndarray):
            raise _error(f"the tensor must be a numpy array, got {type(array).__name__}")
        self.array, self.offset = array, integers("offset", [offset])[0]


def _error(message: str) -> LaunchError:
    return LaunchError(f"tensor map: {message}")


def integers(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """The values of an argument; `LaunchError` if they are no integers."""
    try:
        return tuple(int(value.__index__()) for value in values)
    except (TypeError, AttributeError):
        raise _error(f"{name} must be a sequence of integers, got {values!r}") from None


def _choice(name: str, value: str | int, names: Sequence[str]) -> str:
    if isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    if value in names:
        return str(value)
    raise _error(f"{name} must be one of {', '.join(names)}, got {value!r}")


def _swizzle(value: str | int) -> Swizzle:
    name = _choice("swizzle", value, [mode.name for mode in swizzles.MODES])
    return next(mode for mode in swizzles.MODES if mode.name == name)


def _no_interleave(value: str | int) -> None:
    if _choice("interleave", value, INTERLEAVES) != "none":
        raise _error(f"interleaved layouts are not modelled, got {value!r}")


def _check_stride(index: int, stride: int) -> None:
    if stride % 16:
        raise _error(f"globalStrides[{index}] must be a multiple of 16 bytes, got {stride}")
    if not 0 <= stride < 1 << 40:
        raise _error(f"globalStrides[{index}] must be below 2^40 bytes, got {stride}")


def _round_to_tf32(words: np.ndarray) -> None:
    finite = (words & 0x7F800000) != 0x7F800000
    rounded = (words + (0x0FFF + ((words >> 13) & 1))) & 0xFFFFE000
    np.copyto(words, rounded.astype(np.uint32), where=finite)
