"""The types of the `tile` dialect, and reading what attributes hold."""

import functools

from .dynamic import DYNAMIC as DYNAMIC
from .layout import TileLayout
from .mlir import ext, ir


class Tile(ext.Dialect, name="tile"):
    """What one CTA computes."""


class SmemType(Tile.Type, name="smem"):
    """An operand tile in shared memory: [MN, K] elements, major axis, swizzle."""

    tile_attr: ir.TypeAttr
    major_attr: ir.StringAttr
    swizzle_attr: ir.StringAttr

    @staticmethod
    def of(layout: TileLayout, element: ir.Type) -> "SmemType":
        """The type of a tile of `element` in `layout`."""
        tile = ir.RankedTensorType.get([layout.mn, layout.k], element)
        major, swizzle = (ir.StringAttr.get(name) for name in (layout.major, layout.swizzle))
        return SmemType.get(tile, major, swizzle)

    @property
    def tile(self) -> ir.RankedTensorType:
        return ir.RankedTensorType(ir.TypeAttr(self.tile_attr).value)

    @property
    def element(self) -> ir.Type:
        return self.tile.element_type

    @property
    def layout(self) -> TileLayout:
        mn, k = self.tile.shape
        major, swizzle = text_of(self.major_attr), text_of(self.swizzle_attr)
        return _layout(mn, k, element_bytes(self.element), major, swizzle)


@functools.cache
def _layout(mn: int, k: int, item: int, major: str, swizzle: str) -> TileLayout:
    """One for all that ask: a compilation does 400 times."""
    return TileLayout(mn, k, item, major, swizzle)


class AccumulatorType(Tile.Type, name="acc"):
    """An [M, N] accumulator in the place that the target keeps it."""

    tile_attr: ir.TypeAttr

    @staticmethod
    def of(m: int, n: int, element: ir.Type) -> "AccumulatorType":
        """The type of an [m, n] accumulator of `element`."""
        return AccumulatorType.get(ir.RankedTensorType.get([m, n], element))

    @property
    def tile(self) -> ir.RankedTensorType:
        return ir.RankedTensorType(ir.TypeAttr(self.tile_attr).value)

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.tile.shape
        return m, n

    @property
    def element(self) -> ir.Type:
        return self.tile.element_type


class TensorMapType(Tile.Type, name="map"):
    """What cuTensorMapEncodeTiled is told: element, dims, strides (bytes), box, swizzle.

    Dimension 0 is the contiguous one; `strides` are those of dimensions 1 and up.
    """

    element_attr: ir.TypeAttr
    dims_attr: ir.ArrayAttr
    strides_attr: ir.ArrayAttr
    box_attr: ir.ArrayAttr
    swizzle_attr: ir.StringAttr

    @staticmethod
    def of(
        element: ir.Type, dims: list[int], strides: list[int], box: list[int], swizzle: str
    ) -> "TensorMapType":
        """The map type with those encode arguments."""
        arrays = (integers(values) for values in (dims, strides, box))
        return TensorMapType.get(element, *arrays, ir.StringAttr.get(swizzle))

    @property
    def element(self) -> ir.Type:
        return ir.TypeAttr(self.element_attr).value

    @property
    def dims(self) -> list[int]:
        return integers_of(self.dims_attr)

    @property
    def strides(self) -> list[int]:
        return integers_of(self.strides_attr)

    @property
    def box(self) -> list[int]:
        return integers_of(self.box_attr)

    @property
    def swizzle(self) -> str:
        return text_of(self.swizzle_attr)


def has_own_rows(map_: TensorMapType) -> bool:
    """Whether boxes of a map have as many rows as a launch says, up to those of a tile."""
    return len(map_.box) > 1 and map_.box[1] < 0


def stored_element(to: ir.Type) -> ir.Type:
    """The type of elements of what is stored to: a tensor map or a view."""
    return to.element if isinstance(to, TensorMapType) else ir.MemRefType(to).element_type


def stored_extents(to: ir.Type) -> tuple[int, int]:
    """(rows, columns) of what is stored to: a tensor map or a view; rows may be dynamic."""
    if isinstance(to, TensorMapType):
        columns, rows = to.dims[:2]
        return rows, columns
    return extent_of(to, 0), extent_of(to, 1)


def extent_of(shaped: ir.Type, dim: int) -> int:
    """The extent of a tensor or view along a dim, `DYNAMIC` where a launch says it."""
    return max(ir.ShapedType(shaped).shape[dim], DYNAMIC)


def dynamic_dims(shaped: ir.Type) -> list[int]:
    """The dims of a tensor or view whose extents a launch says."""
    return [dim for dim, extent in enumerate(ir.ShapedType(shaped).shape) if extent < 0]


def text_of(attribute: ir.Attribute) -> str:
    """The text of a string attribute that came back untyped."""
    return ir.StringAttr(attribute).value


def integer(value: int) -> ir.IntegerAttr:
    """An attribute of i64."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def integers(values: list[int]) -> ir.ArrayAttr:
    """An array attribute of i64."""
    return ir.ArrayAttr.get([integer(value) for value in values])


def integers_of(attribute: ir.Attribute) -> list[int]:
    """The values of an array attribute of integers."""
    return [ir.IntegerAttr(value).value for value in ir.ArrayAttr(attribute)]


def element_bytes(element: ir.Type) -> int:
    """Bytes of one element of an integer or float type, 1 where several share a byte."""
    return -(-bits_of(element) // 8)


def is_padded(element: ir.Type) -> bool:
    """Whether elements are packed in global memory, and 16 take 16 bytes of shared memory."""
    return bits_of(element) < 8


def moved_bytes(element: ir.Type, shared_bytes: int) -> int:
    """Bytes of global memory that fill so many of a tile, of which gaps are left out."""
    return shared_bytes * bits_of(element) // 8 if is_padded(element) else shared_bytes


def bits_of(element: ir.Type) -> int:
    """Bits of an integer or float type."""
    if not isinstance(element, ir.IntegerType | ir.FloatType):
        raise TypeError(f"expected an integer or float type, got {element}")
    return element.width
