"""Quantizing C to elements with block scales.

tile.quantize         inside f: y = x / scale of its block; the scales are a further output
tile.store_quantized  view[r,c] = f(acc[r,c]) / scale, scales[r, c/B] = scale of each B columns
tile.block_scale      the scale of a block, of its largest magnitude
tile.write_codes      view[row, column + c] = codes[c], packed
tile.write_scales     scales[row, number + s] = codes[s], at their place in an atom

A scale follows from the largest magnitude of its B neighbours in a row of C
(`dialects.quantized`). Scales lie blocked, as `tile.scaled_matmul` takes them, and what pads their
atoms is zero.
"""

from typing import Any

from ..dtypes import ScaledFormat, stored_dtype
from ..integer_types import I32
from ..mlir import ext, ir
from ..quantized import QUANTIZED, columns_refusal, format_of, rounding_refusal, scales_shape
from ..tile_types import AccumulatorType, Tile, bits_of
from ..verify import products_of, refuse, verify_epilogue
from .outputs import KeepOp

CODES_BYTES = (1, 2, 4, 8, 16, 32)
SCALES_BYTES, SCALES_RANK = (1, 2, 4), 5


class QuantizeOp(KeepOp, name="quantize"):
    """Inside the region of a `tile.matmul`: `element` is the value divided by the scale of its
    block.

    A block is `block` adjacent elements in a row of C. Elements are rounded to nearest, ties to
    even, and clamped to the largest number. C is the elements; the scales, of type `scale`, are the
    last further output. `rounding` says how a scale follows from the largest magnitude of a block.
    """

    block: ir.IntegerAttr
    rounding: ir.StringAttr
    scale: ir.TypeAttr
    element: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if self.value.type != ir.F32Type.get():
            return refuse(self, f"value must be f32, got {self.value.type}")
        form = verify_format(self, self.element.type, self.scale.value)
        users = [use.owner.name for use in self.element.uses]
        if form is None:
            return False
        if users != ["tile.yield"]:
            return refuse(self, f"its element must be yielded as C's, got {users}")
        return super().verify_invariants()

    def kept_type(self, c: ir.RankedTensorType) -> ir.RankedTensorType:
        return ir.RankedTensorType.get(
            scales_shape(list(c.shape), self.block.value), self.scale.value
        )


class StoreQuantizedOp(Tile.Operation, name="store_quantized"):
    """`view[i*M + r, j*N + c] = f(acc[r,c]) / scale`, and the scales of each `block` columns.

    `scales` are blocked, [rows/128, blocks/4, 32, 4, 4]; their padding becomes zero. Nothing is
    stored outside the view. The region is f, as in `tile.matmul`, and returns f32.
    """

    acc: ext.Operand[AccumulatorType]
    view: ext.Operand[ir.MemRefType]
    scales: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    block: ir.IntegerAttr
    rounding: ir.StringAttr
    epilogue: ext.Region

    def verify_invariants(self) -> bool:
        view, scales = self.view.type, self.scales.type
        form = verify_format(self, view.element_type, scales.element_type)
        if form is None:
            return False
        shape, n = list(view.shape), self.acc.type.shape[1] // products_of(self)
        broken = columns_refusal(form, shape[-1])
        if broken or n % form.block:
            rule = f"N of the tile must be whole blocks of {form.block}, got {n}"
            return refuse(self, broken or rule)
        wanted = scales_shape(shape, form.block)
        if view.rank != 2 or list(scales.shape) != wanted:
            return refuse(self, f"scales must be {wanted} for {shape}, got {list(scales.shape)}")
        return verify_epilogue(self, self.epilogue, self.acc.type.element, ir.F32Type.get())


class BlockScaleOp(Tile.Operation, name="block_scale"):
    """`code`: the bits of the scale of a block of `element`s whose largest magnitude is `amax`.

    `number` is the value of the scale. An element is its value times `reciprocal`, exactly for
    ue8m0; for ue4m3, `number` gives the remainder. Nothing is multiplied by a scale of zero.
    """

    amax: ext.Operand[ir.F32Type]
    element: ir.TypeAttr
    scale: ir.TypeAttr
    block: ir.IntegerAttr
    rounding: ir.StringAttr
    code: ext.Result[I32]
    number: ext.Result[ir.F32Type]
    reciprocal: ext.Result[ir.F32Type]

    def verify_invariants(self) -> bool:
        return verify_format(self, self.element.value, self.scale.value) is not None


class WriteCodesOp(Tile.Operation, name="write_codes"):
    """`view[row, column + c] = codes[c]`: one store of packed elements, as bytes.

    They begin `behind` bytes after the byte of the column.
    """

    codes: ext.Operand[Any]
    view: ext.Operand[ir.MemRefType]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    behind: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        dtype = stored_dtype(str(self.view.type.element_type))
        if dtype is None or dtype.name not in QUANTIZED:
            known = ", ".join(QUANTIZED)
            return refuse(self, f"the view must hold {known}, got {self.view.type}")
        return _verify_bytes(self, CODES_BYTES)


class WriteScalesOp(Tile.Operation, name="write_scales"):
    """`scales[row, number + s] = codes[s]`: one store of the scales of adjacent blocks of a row.

    They are bytes of one word of an atom, so `number` is a multiple of their count.
    """

    codes: ext.Operand[Any]
    scales: ext.Operand[ir.MemRefType]
    row: ext.Operand[I32]
    number: ext.Operand[I32]

    def verify_invariants(self) -> bool:
        if self.scales.type.rank != SCALES_RANK:
            return refuse(self, f"scales must be blocked, got {self.scales.type}")
        return _verify_bytes(self, SCALES_BYTES)


def quantize_of(epilogue: ir.Block) -> QuantizeOp | None:
    """The op that makes the elements of C, if they have block scales."""
    return next((op for op in epilogue.operations if isinstance(op, QuantizeOp)), None)


def verify_format(op: Any, element: ir.Type, scale: ir.Type) -> ScaledFormat | None:
    """The format of an op's elements and scales; None where something is refused."""
    form = format_of(str(element), str(scale), op.block.value)
    if form is None:
        refuse(op, f"no format has {element} with {scale} by {op.block.value}")
        return None
    broken = rounding_refusal(form, op.rounding.value)
    if broken:
        refuse(op, broken)
        return None
    return form


def _verify_bytes(op: Any, counts: tuple[int, ...]) -> bool:
    """Whether an op's codes are so many bytes."""
    codes = op.codes.type
    fits = isinstance(codes, ir.VectorType) and bits_of(codes.element_type) == 8
    if fits and ir.VectorType(codes).shape[0] in counts:
        return True
    return refuse(op, f"codes must be {', '.join(map(str, counts))} bytes, got {codes}")
