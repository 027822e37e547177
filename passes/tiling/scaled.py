"""Checks of `tiling` on products with block scales: whole scale atoms, views of bytes.

    tile.scaled_matmul(%a, %b, %sa, %sb)   →   %ta = load %a[%i, %k]     %fa = load %sa[%i, %k]
                                               %tb = load %b[%j, %k]     %fb = load %sb[%j, %k]
                                               scaled_mma %acc, %ta, %tb, %fa, %fb, %j, %k

Where both operands are of four bits, two lie in a byte of global and of shared memory: their views
and tiles are of bytes, and the MMA says what these hold. Other elements of four and six bits are
packed in global memory alone. In shared memory 16 of them take 16 bytes, of which the last ones are
a gap, and tiles count as many bytes as elements.
"""

from __future__ import annotations

from ...dialects import scaled_legality
from ...dialects.dtypes import DTYPES, SCALED_KINDS, DType, ScaledMma, scaled_dtype
from ...dialects.layout import BLOCKED, UNIT_BYTES, TileLayout
from ...dialects.mlir import ir
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import LoadOp, MatmulOp
from ...dialects.tile.scales import KIND, ScaledMatmulOp, ScaledMmaOp
from ...dialects.tile_types import SmemType, is_padded
from ...dialects.verify import logical_shape
from ..base import PassLog, refused, require

NAMES = ("a_scales", "b_scales")
ROW_BYTES = 128  # of a tile where nothing else is asked for: the widest swizzle
Tile = tuple[int, int, int]


def ask_for_kind(matmul: MatmulOp, kind: str) -> None:
    """Write on the op which kind of MMA it shall take; refuse a kind that does not."""
    if not isinstance(matmul, ScaledMatmulOp):
        rule = f"tiling: kind is for operands with block scales, got {kind}"
        raise refused(matmul, f"{rule}; leave it out")
    if matmul.mma_of_kind(kind) is None:
        kinds = ", ".join(each for each in SCALED_KINDS if matmul.mma_of_kind(each))
        rule = f"tiling: kind must be one that takes the operands and scales, {kinds}"
        raise refused(matmul, f"{rule}, got {kind}; leave it out")
    matmul.operation.attributes[KIND] = attribute_of(kind)


def scaled_mma_of(matmul: ScaledMatmulOp, target: Target) -> ScaledMma:
    """The kind of MMA, which the target must have."""
    mma = matmul.mma
    assert mma is not None  # its verifier has asked
    require(matmul, scaled_legality.scaled_kind(target, mma), where="tiling: ")
    return mma


def scaled_tile(matmul: ScaledMatmulOp, asked: Tile | None, mma: ScaledMma, log: PassLog) -> Tile:
    """The tile: the one that is asked for, its K rounded up to whole atoms of scales."""
    if asked is None:
        return 128, 128, ROW_BYTES * 2 if mma.packed else ROW_BYTES
    m, n, k = asked
    whole = -(-k // mma.unit) * mma.unit
    if whole != k:
        rule = f"a tile's K must be whole atoms of scales, {mma.unit} elements of {mma.kind}"
        log.remark(matmul, f"tiling: {rule}; {k} is rounded up to {whole}")
    return m, n, whole


def check_scaled_tile(
    matmul: ScaledMatmulOp, tile: Tile, mma: ScaledMma, target: Target, swap: bool
) -> None:
    """Refuse a tile that no block-scaled MMA, TMA box or memory of `target` can hold; with `swap`
    its columns are rows of A."""
    m, n, k = tile
    require(matmul, scaled_legality.scaled_rows(target, m))
    require(matmul, scaled_legality.scaled_columns(target, n))
    require(matmul, scaled_legality.scaled_depth(mma, k))
    for (value, major), name in zip(matmul.sides, "AB", strict=True):
        dtype = _dtype(value)
        if dtype.bits < 8 and major.value != "k":
            rule = f"{name} must have K contiguous for {dtype.name}, whose elements share bytes"
            raise refused(matmul, f"{rule}, got {'MN'[name == 'B']}; transpose it")
    if (matmul.a_major if swap else matmul.b_major).value == "mn" and n % UNIT_BYTES:
        rule = (
            f"tile N must be a multiple of {UNIT_BYTES} for {'M-major A' if swap else 'N-major B'}"
        )
        raise refused(matmul, f"{rule}, got {n}")
    require(matmul, scaled_legality.scaled_memory(target, mma, tile), "make the tile smaller")
    require(
        matmul, scaled_legality.scaled_tensor_memory(target, mma, tile), "make the tile smaller"
    )


def scales_of(matmul: MatmulOp) -> dict[str, ir.Value]:
    """The block scales of a product by their names in the kernel, if it has some."""
    if not isinstance(matmul, ScaledMatmulOp):
        return {}
    return dict(zip(NAMES, (matmul.a_scales, matmul.b_scales), strict=True))


def stored_tensor(matmul: MatmulOp, tensor: ir.RankedTensorType) -> ir.RankedTensorType:
    """A tensor as its tiles are taken: elements that share bytes in shared memory, too, are these
    bytes."""
    dtype = scaled_dtype(str(tensor.element_type))
    packed = isinstance(matmul, ScaledMatmulOp) and matmul.mma is not None and matmul.mma.packed
    if dtype is None or not packed:
        return tensor
    *outer, k = tensor.shape
    return ir.RankedTensorType.get([*outer, k * dtype.bits // 8], ir.Type.parse(DTYPES["u8"].mlir))


def multiply(
    matmul: ScaledMatmulOp,
    sides: list[tuple[ir.Value, ir.StringAttr]],
    views: list[ir.Value],
    tile: Tile,
    mma: ScaledMma,
    where: dict[str, ir.Value],
) -> None:
    """Emit the loads of a K step and its MMA, whose A and B are `sides` of the product; `where` has
    acc, accumulate, i, j and k."""
    m, n, k = tile
    a, b, *scales = views
    i, j, step = (where.pop(name) for name in "ijk")
    k_bytes, majors = mma.operand_bytes(k), [major.value for _, major in sides]
    tiles = [
        _load(view, TileLayout(extent, k_bytes, 1, major, _first_swizzle(view)), at, step)
        for view, extent, major, at in zip((a, b), (m, n), majors, (i, j), strict=True)
    ]
    factors = [
        _load(view, TileLayout(extent, k // mma.block, 1, "k", BLOCKED), at, step)
        for view, extent, at in zip(scales, (m, n), (i, j), strict=True)
    ]
    types = [attribute_of(_dtype(value).name) for value, _ in sides]
    ScaledMmaOp(
        a=tiles[0],
        b=tiles[1],
        a_scales=factors[0],
        b_scales=factors[1],
        j=j,
        k=step,
        a_type=types[0],
        b_type=types[1],
        kind=attribute_of(mma.kind),
        block=matmul.block,
        extent=attribute_of(logical_shape(matmul.a.type, matmul.a_major.value)[1]),
        **where,
    )


def _first_swizzle(view: ir.Value) -> str:
    """TMA fills tiles with gaps by rows of 128 bytes, which MMAs read in that swizzle alone."""
    return "128B" if is_padded(ir.MemRefType(view.type).element_type) else "none"


def _load(view: ir.Value, layout: TileLayout, i: ir.Value, j: ir.Value) -> ir.Value:
    element = ir.MemRefType(view.type).element_type
    return LoadOp(tile=SmemType.of(layout, element), view=view, i=i, j=j).tile


def _dtype(value: ir.Value) -> DType:
    dtype = scaled_dtype(str(ir.RankedTensorType(value.type).element_type))
    assert dtype is not None  # the op's verifier has asked
    return dtype
