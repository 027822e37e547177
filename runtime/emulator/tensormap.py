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
from math import prod

import numpy as np

from . import swizzle as swizzles
from .errors import LaunchError, Trap
from .swizzle import Swizzle

TENSOR_MAP_BYTES = 128
"""Size of the opaque object; its address must be a multiple of 64."""


@dataclass(frozen=True)
class ElementType:
    """One CUtensorMapDataType: ``number`` is the driver's enumerator, ``bytes`` an element."""

    name: str
    number: int
    bytes: int
    floating: bool = False


_TYPES = (
    ElementType("uint8", 0, 1),
    ElementType("uint16", 1, 2),
    ElementType("uint32", 2, 4),
    ElementType("int32", 3, 4),
    ElementType("uint64", 4, 8),
    ElementType("int64", 5, 8),
    ElementType("float16", 6, 2, True),
    ElementType("float32", 7, 4, True),
    ElementType("float64", 8, 8, True),
    ElementType("bfloat16", 9, 2, True),
    ElementType("float32_ftz", 10, 4, True),
    ElementType("tfloat32", 11, 4, True),
    ElementType("tfloat32_ftz", 12, 4, True),
)
_ALIASES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "s32": "int32", "u64": "uint64",
    "s64": "int64", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16",
    "tf32": "tfloat32", "e4m3": "uint8", "e5m2": "uint8",
}  # fmt: skip
_PACKED_NUMBERS = (13, 14, 15)
_L2_PROMOTIONS = ("none", "64B", "128B", "256B")
_OOB_FILLS = ("zero", "nan")
_MAGIC = b"tilewright tensor map"


class TensorMap:
    """A tiled tensor map over ``array``, with the arguments of cuTensorMapEncodeTiled.

    ``array`` is the numpy array whose memory the map describes; its first byte is the global
    address. ``dims`` and ``box`` count elements, ``strides`` are the bytes of dimensions
    1 .. rank-1. ``dtype`` is a name ("bf16", "float32", ...) or the driver's number; ``swizzle`` a
    name of ``swizzle.MODES`` or number; ``interleave`` only "none" (0) is modelled;
    ``l2_promotion`` is checked and has no effect; ``oob_fill`` is "zero" (0) or "nan" (1).
    Raises ``LaunchError`` where the driver would refuse, or where the described tensor does not
    lie inside the array.
    """

    def __init__(
        self,
        array: np.ndarray,
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
        self.array = array
        self.dtype = _element_type(dtype)
        self.dims = _integers("globalDim", dims)
        self.strides = _integers("globalStrides", strides)
        self.box = _integers("boxDim", box)
        steps = element_strides if element_strides is not None else [1] * len(self.dims)
        self.element_strides = _integers("elementStrides", steps)
        self.swizzle = _swizzle(swizzle)
        _no_interleave(interleave)
        self.l2_promotion = _choice("l2Promotion", l2_promotion, _L2_PROMOTIONS)
        self.oob_fill = _choice("oobFill", oob_fill, _OOB_FILLS)
        self._validate()
        self._derive()

    @property
    def rank(self) -> int:
        """Number of dimensions, 1..5."""
        return len(self.dims)

    @property
    def extent(self) -> int:
        """Bytes from the global address to the end of the last element."""
        steps = zip(self.dims[1:], self.strides, strict=True)
        return self.dims[0] * self.dtype.bytes + sum((dim - 1) * stride for dim, stride in steps)

    def check_address(self, address: int) -> None:
        """Raise ``LaunchError`` unless the global address is a multiple of 16 bytes."""
        if address % 16:
            raise _error(f"globalAddress must be a multiple of 16, got 0x{address:x}")

    def encode(self, index: int) -> bytes:
        """The opaque 128 bytes of the map: a mark and its ``index`` in the launch's table."""
        head = _MAGIC + b"\0" + index.to_bytes(4, "little")
        return head.ljust(TENSOR_MAP_BYTES, b"\xa5")

    @staticmethod
    def decode(data: bytes) -> int:
        """Index recorded by ``encode``; ``Trap`` if the bytes are no tensor map."""
        if not data.startswith(_MAGIC):
            raise Trap("tensor-map", "the 128 bytes at the tensor map address are no map")
        start = len(_MAGIC) + 1
        return int.from_bytes(data[start : start + 4], "little")

    def load(self, memory: np.ndarray, coordinates: Sequence[int]) -> np.ndarray:
        """The box at ``coordinates`` (elements, dimension 0 first) as ``uint8[rows, inner_bytes]``.

        ``memory`` is the flat ``uint8`` image starting at the global address. Elements outside
        the tensor get the fill value; tfloat32 elements are rounded to 10 mantissa bits.
        """
        box = self._filled.copy()
        inside = self._inside(coordinates)
        if inside is not None:
            box[self._box_slices(inside)] = self._tensor_view(memory, coordinates, inside)
        if self.dtype.name.startswith("tfloat32"):
            _round_to_tf32(box.view(np.uint32))
        return box.reshape(self.rows, self.inner_bytes)

    def store(self, memory: np.ndarray, coordinates: Sequence[int], box: np.ndarray) -> None:
        """Write ``box`` (``uint8[rows, inner_bytes]``) at ``coordinates``; outside is dropped."""
        target = self.target(memory, coordinates)
        if target is not None:
            view, slices = target
            view[...] = box.reshape(self._filled.shape)[slices]

    def target(
        self, memory: np.ndarray, coordinates: Sequence[int]
    ) -> tuple[np.ndarray, tuple[slice, ...]] | None:
        """Writable view of the in-bounds part of a stored box and the box slices it matches."""
        self._check_store(coordinates)
        inside = self._inside(coordinates)
        if inside is None:
            return None
        return self._tensor_view(memory, coordinates, inside), self._box_slices(inside)

    def inside(self, memory: np.ndarray, coordinates: Sequence[int]) -> np.ndarray | None:
        """View of the in-bounds part of the box in ``memory``; None if it lies wholly outside."""
        inside = self._inside(coordinates)
        return None if inside is None else self._tensor_view(memory, coordinates, inside)

    def full_box(self, box: np.ndarray) -> np.ndarray:
        """``box`` reshaped to one axis a dimension, outermost first, the last one in bytes."""
        return box.reshape(self._filled.shape)

    def _derive(self) -> None:
        steps = (1, *self.element_strides[1:])
        self._steps = steps
        self.counts = tuple(-(-b // s) for b, s in zip(self.box, steps, strict=True))
        self.inner_bytes = self.box[0] * self.dtype.bytes
        self.rows = prod(self.counts[1:])
        self.box_bytes = self.rows * self.inner_bytes
        shape = (*reversed(self.counts[1:]), self.inner_bytes)
        self._filled = np.resize(self._fill_bytes(), self.box_bytes).reshape(shape)

    def _fill_bytes(self) -> np.ndarray:
        pattern = [0xF7, 0x7F] if self.oob_fill == "nan" else [0, 0]
        return np.array(pattern, np.uint8)

    def _inside(self, coordinates: Sequence[int]) -> list[tuple[int, int]] | None:
        """Per dimension the half-open range of box positions inside the tensor."""
        ranges = []
        for start, dim, count, step in zip(
            coordinates, self.dims, self.counts, self._steps, strict=True
        ):
            low = max(0, -(start // step)) if start < 0 else 0
            high = min(count, -((start - dim) // step))
            if low >= high:
                return None
            ranges.append((low, high))
        return ranges

    def _box_slices(self, inside: list[tuple[int, int]]) -> tuple[slice, ...]:
        size = self.dtype.bytes
        inner = slice(inside[0][0] * size, inside[0][1] * size)
        return (*(slice(low, high) for low, high in reversed(inside[1:])), inner)

    def _tensor_view(
        self, memory: np.ndarray, coordinates: Sequence[int], inside: list[tuple[int, int]]
    ) -> np.ndarray:
        size = self.dtype.bytes
        byte_strides = (size, *self.strides)
        offset = sum(
            (start + low * step) * stride
            for start, (low, _), step, stride in zip(
                coordinates, inside, self._steps, byte_strides, strict=True
            )
        )
        lengths = [high - low for low, high in inside]
        shape = (*reversed(lengths[1:]), lengths[0] * size)
        steps = [stride * step for stride, step in zip(self.strides, self._steps[1:], strict=True)]
        return np.ndarray(shape, np.uint8, memory, offset, (*reversed(steps), 1))

    def _check_store(self, coordinates: Sequence[int]) -> None:
        if min(coordinates) < 0:
            raise Trap("tma", f"a tensor store needs coordinates >= 0, got {coordinates}")
        if any(step != 1 for step in self._steps):
            raise Trap("unmodelled", "tensor store through a map with elementStrides > 1")

    def _validate(self) -> None:
        if not 1 <= self.rank <= 5:
            raise _error(f"tensorRank must be 1..5, got {self.rank}")
        self._check_lengths()
        for index in range(self.rank):
            self._check_dimension(index)
        for index, stride in enumerate(self.strides):
            _check_stride(index, stride)
        self._check_inner()
        if self.oob_fill == "nan" and not self.dtype.floating:
            raise _error(f"oobFill nan needs a floating point type, got {self.dtype.name}")
        self._check_extent()

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
        inner = self.box[0] * self.dtype.bytes
        if inner % 16:
            raise _error(f"boxDim[0] must span a multiple of 16 bytes, got {inner}")
        if self.swizzle is not swizzles.NONE and inner > self.swizzle.span:
            raise _error(
                f"boxDim[0] must span at most {self.swizzle.span} bytes for swizzle "
                f"{self.swizzle.name}, got {inner}"
            )

    def _check_extent(self) -> None:
        if not isinstance(self.array, np.ndarray):
            raise _error(f"the tensor must be a numpy array, got {type(self.array).__name__}")
        low, high = np.lib.array_utils.byte_bounds(self.array)
        first = self.array.__array_interface__["data"][0]
        if first != low or self.extent > high - low:
            raise _error(
                f"the described tensor spans {self.extent} bytes, the array holds {high - low}"
            )


def _error(message: str) -> LaunchError:
    return LaunchError(f"tensor map: {message}")


def _integers(name: str, values: Sequence[int]) -> tuple[int, ...]:
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


def _element_type(value: str | int) -> ElementType:
    if value in _PACKED_NUMBERS or str(value).lower().startswith(("16u4", "16u6")):
        raise _error(f"packed 4- and 6-bit element types are not modelled, got {value!r}")
    name = _ALIASES.get(str(value).lower(), str(value).lower())
    for kind in _TYPES:
        if kind.name == name or kind.number == value:
            return kind
    names = ", ".join(kind.name for kind in _TYPES)
    raise _error(f"tensorDataType must be one of {names}, got {value!r}")


def _swizzle(value: str | int) -> Swizzle:
    name = _choice("swizzle", value, [mode.name for mode in swizzles.MODES])
    return next(mode for mode in swizzles.MODES if mode.name == name)


def _no_interleave(value: str | int) -> None:
    if _choice("interleave", value, ("none", "16B", "32B")) != "none":
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
