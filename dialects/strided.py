"""Layouts as nested shapes and strides: functions from coordinates to offsets.

    Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))    prints ((4,8),(2,2)):((32,1),(16,8))

A layout of a shape takes an index (the first mode runs fastest), or a coordinate of the shape, and
gives the sum of the coordinate's parts times their strides. The names and the order of modes are
those of CuTe (CUTLASS, docs: CuTe layouts and layout algebra), so that what it prints can be
compared. All of it is arithmetic on whole numbers: no MLIR, no array library.

    coalesce        fewest modes, same function of an index
    compose         first the second layout, then the first
    complement      the offsets that a layout leaves out, up to a size
    right_inverse   R with L(R(i)) = i           left_inverse   R with R(L(i)) = i
    Swizzle         exchanges bits of an offset; `Swizzled` does so after a layout
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from .errors import CompileError
from .record import record

Nested = int | tuple["Nested", ...]
Mode = tuple[int, int]


class LayoutError(CompileError):
    """A layout that cannot be, or an operation that no layout is the result of."""


def flat(nested: Nested) -> tuple[int, ...]:
    """The numbers of a nested tuple, from left to right."""
    if isinstance(nested, int):
        return (nested,)
    return tuple(number for part in nested for number in flat(part))


@record
class Layout:
    """A nested shape and strides of the same nesting; strides from `compact` when none are given.

    Extents are 1 or more. Strides count elements of whatever the layout lays out.
    """

    shape: Nested
    stride: Nested = ()

    def __post_init__(self) -> None:
        if self.stride == () and self.shape != ():
            object.__setattr__(self, "stride", compact(self.shape))
        if not _alike(self.shape, self.stride):
            raise LayoutError(
                f"layout: shape and stride must nest alike, got {text(self.shape)} and "
                f"{text(self.stride)}"
            )
        if any(extent < 1 for extent in flat(self.shape)):
            raise LayoutError(f"layout: extents must be 1 or more, got {text(self.shape)}")

    @property
    def size(self) -> int:
        """How many indices there are."""
        return prod(flat(self.shape))

    @property
    def cosize(self) -> int:
        """One more than the largest offset; strides must not be negative."""
        return 1 + sum((extent - 1) * stride for extent, stride in self.leaves())

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The layouts of the outermost modes."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (self,)
        return tuple(Layout(*mode) for mode in zip(self.shape, self.stride, strict=True))

    def leaves(self) -> Iterator[Mode]:
        """(extent, stride) of every innermost mode, the one that runs fastest first."""
        return zip(flat(self.shape), flat(self.stride), strict=True)

    def __call__(self, *coordinate: Nested) -> int:
        """The offset at an index, or at a coordinate that nests as the shape or less deeply."""
        place: Nested = coordinate[0] if len(coordinate) == 1 else coordinate
        return _offset(place, self.shape, self.stride)

    def offsets(self) -> list[int]:
        """The offset at every index."""
        found = [0]
        for extent, stride in self.leaves():
            found = [low + number * stride for number in range(extent) for low in found]
        return found

    def coordinate(self, index: int) -> Nested:
        """The coordinate, nested as the shape, of an index."""
        if not 0 <= index < self.size:
            raise LayoutError(f"coordinate: index must be 0 to {self.size - 1}, got {index}")
        return _coordinate(index, self.shape)

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"


def compact(shape: Nested) -> Nested:
    """The strides of a shape whose elements lie side by side, the first mode fastest."""
    strides = iter(_products(flat(shape)))
    return _nested_as(shape, strides)


def join(*layouts: Layout) -> Layout:
    """The layout whose modes are `layouts`."""
    return Layout(tuple(each.shape for each in layouts), tuple(each.stride for each in layouts))


def coalesce(layout: Layout) -> Layout:
    """The same function of an index as `layout`, with the fewest modes, not nested."""
    kept: list[Mode] = []
    for extent, stride in layout.leaves():
        if extent == 1:
            continue
        if kept and stride == kept[-1][0] * kept[-1][1]:
            kept[-1] = (kept[-1][0] * extent, kept[-1][1])
        else:
            kept.append((extent, stride))
    return _of_modes(kept)


def compose(outer: Layout, inner: Layout) -> Layout:
    """`inner`, then `outer`: index i goes to outer(inner(i)); nested as `inner`.

    Raises LayoutError where extents and strides do not divide each other, so that the result is no
    layout.
    """
    if isinstance(inner.shape, tuple) and inner.shape != ():
        return join(*(compose(outer, mode) for mode in inner.modes))
    ((extent, stride),) = inner.leaves()
    return _of_modes(_taken(outer, extent, stride))


def _taken(outer: Layout, extent: int, stride: int) -> list[Mode]:
    """Every `stride`-th index of `outer`, `extent` of them."""
    modes = list(coalesce(outer).leaves())
    if stride == 0:
        return [(extent, 0)]
    found: list[Mode] = []
    skip, left = stride, extent
    for number, (size, step) in enumerate(modes):
        if number < len(modes) - 1:
            if skip % size and size % skip:
                raise _indivisible(outer, extent, stride)
            here = min(max(1, size // skip), left)
            if left % here:
                raise _indivisible(outer, extent, stride)
        else:
            here = left
        if here > 1:
            found.append((here, skip * step))
        left //= here
        skip = -(-skip // size)
    return found


def _indivisible(outer: Layout, extent: int, stride: int) -> LayoutError:
    return LayoutError(
        f"compose: {extent}:{stride} must divide the modes of {outer} or be divided by them; no "
        "layout is the result"
    )


def complement(layout: Layout, size: int) -> Layout:
    """The layout of what `layout` leaves out of `size` offsets: the first of each of its copies.

    The two together take every offset up to `size` once. Raises LayoutError where the layout meets
    an offset twice, or its modes leave gaps that no layout fills.
    """
    found: list[Mode] = []
    reached = 1
    for stride, extent in sorted((stride, extent) for extent, stride in layout.leaves()):
        if extent == 1:
            continue
        if stride < reached or stride % reached:
            raise LayoutError(
                f"complement: strides must be multiples of what smaller ones reach, got {layout}"
            )
        found.append((stride // reached, reached))
        reached = stride * extent
    found.append((-(-size // reached), reached))
    return coalesce(_of_modes(found))


def right_inverse(layout: Layout) -> Layout:
    """R with layout(R(i)) = i, for as many i from 0 on as there is one for."""
    indices = _products(flat(layout.shape))
    by_stride = sorted(
        (stride, extent, index)
        for (extent, stride), index in zip(layout.leaves(), indices, strict=True)
    )
    found: list[Mode] = []
    reached = 1
    for stride, extent, index in by_stride:
        if extent == 1 or stride != reached:
            continue
        found.append((extent, index))
        reached *= extent
    return coalesce(_of_modes(found))


def left_inverse(layout: Layout) -> Layout:
    """R with R(layout(i)) = i for every index; each offset must be met once."""
    return right_inverse(join(layout, complement(layout, layout.cosize)))


def divide(layout: Layout, tile: Layout) -> Layout:
    """`layout` in two modes: the elements of one `tile`, and the tiles.

    Raises LayoutError where the tile does not divide the layout.
    """
    return compose(layout, join(tile, complement(tile, layout.size)))


@record
class Swizzle:
    """Offsets with `bits` bits from bit `base` on exchanged by those `shift` bits further up.

    The higher bits are added without carry. Swizzle(3, 4, 3) of byte addresses is what PTX calls
    128B: the 16-byte unit of a line of 128 bytes, by the line's number modulo 8.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if min(self.bits, self.base) < 0 or self.shift < self.bits:
            raise LayoutError(
                f"swizzle: needs bits and base of 0 or more, and a shift of at least bits, got "
                f"{self.bits}, {self.base} and {self.shift}"
            )

    def __call__(self, offset: int) -> int:
        mask = (1 << self.bits) - 1
        return offset ^ ((offset >> (self.base + self.shift) & mask) << self.base)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@record
class Swizzled:
    """A swizzle of what a layout gives."""

    swizzle: Swizzle
    layout: Layout

    def __call__(self, *coordinate: Nested) -> int:
        """The swizzled offset at an index or a coordinate."""
        return self.swizzle(self.layout(*coordinate))

    def __str__(self) -> str:
        return f"{self.swizzle} o 0 o {self.layout}"


def text(nested: Nested) -> str:
    """A nested tuple as it is printed."""
    if isinstance(nested, int):
        return str(nested)
    return f"({','.join(map(text, nested))})"


def _of_modes(modes: Iterable[Mode]) -> Layout:
    """A layout of those modes; of one, not nested; of none, one index."""
    listed = list(modes) or [(1, 0)]
    if len(listed) == 1:
        return Layout(*listed[0])
    return Layout(tuple(extent for extent, _ in listed), tuple(stride for _, stride in listed))


def _products(extents: Iterable[int]) -> list[int]:
    """For each extent the product of those before it."""
    found, reached = [], 1
    for extent in extents:
        found.append(reached)
        reached *= extent
    return found


def _nested_as(shape: Nested, numbers: Iterator[int]) -> Nested:
    if isinstance(shape, int):
        return next(numbers)
    return tuple(_nested_as(part, numbers) for part in shape)


def _alike(shape: Nested, stride: Nested) -> bool:
    if isinstance(shape, int) or isinstance(stride, int):
        return isinstance(shape, int) and isinstance(stride, int)
    return len(shape) == len(stride) and all(map(_alike, shape, stride))


def _coordinate(index: int, shape: Nested) -> Nested:
    if isinstance(shape, int):
        return index
    parts = []
    for part in shape:
        size = prod(flat(part))
        parts.append(_coordinate(index % size, part))
        index //= size
    return tuple(parts)


def _offset(place: Nested, shape: Nested, stride: Nested) -> int:
    if isinstance(place, int) and isinstance(shape, tuple):
        size = prod(flat(shape))
        if not 0 <= place < size:
            raise LayoutError(f"layout: index must be 0 to {size - 1}, got {place}")
        place = _coordinate(place, shape)
    if isinstance(place, int) and isinstance(shape, int) and isinstance(stride, int):
        if not 0 <= place < shape:
            raise LayoutError(f"layout: coordinate must be 0 to {shape - 1}, got {place}")
        return place * stride
    if isinstance(place, tuple) and isinstance(shape, tuple) and isinstance(stride, tuple):
        if len(place) == len(shape):
            return sum(_offset(*part) for part in zip(place, shape, stride, strict=True))
    raise LayoutError(f"layout: {text(place)} is no coordinate of shape {text(shape)}")
