"""Verifier rules that several ops share; an op that breaks one reports it at its location."""

import math
from typing import Any

from .dtypes import PADDED_TYPES
from .dynamic import up_to
from .hilbert import CELLS_MAX
from .layout import (
    ATOM_BYTES,
    LINEAR,
    MAJORS,
    OF_SCALES,
    SPAN_BYTES,
    TileLayout,
)
from .legality import multicast_rows
from .mlir import ext, ir
from .ragged_maps import plain_box
from .tile_types import (
    DYNAMIC,
    SmemType,
    TensorMapType,
    bits_of,
    element_bytes,
    integers_of,
    text_of,
)

HALF_ATOM_BYTES = ATOM_BYTES // 2  # of scales: boxes have up to 256 elements in a dimension
GATHERED_ROWS = 4
"""Rows that one copy gathers (PTX ISA, tile::gather4)."""
GATHERED_BYTES = 128
LAYOUTS = (*SPAN_BYTES, LINEAR, *OF_SCALES)
ORDERS = ("m", "n", "grouped", "hilbert")
NUMBER_MAX = 2**31 - 1
"""What kernels count by in 32 bits."""
GROUP_DEFAULT, GROUP_MAX = 8, NUMBER_MAX


def refuse(op: ext.Operation, rule: str) -> bool:
    """Report `rule` at the op and fail verification."""
    op.location.emit_error(f"{op.operation.name}: {rule}")
    return False


# What a verifier raises that reads an attribute or a type of another form.
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)


def verify_tile(op: ext.Operation, tensor: ir.Type) -> bool:
    """Whether a tile is rows and columns of known extents, its elements whole bytes."""
    shape = list(ir.RankedTensorType(tensor).shape)
    if len(shape) != 2 or min(shape) < 1:
        return refuse(op, f"a tile must have rows and columns of known extents, got {tensor}")
    width = bits_of(ir.RankedTensorType(tensor).element_type)
    whole = width % 8 == 0 or width in PADDED_TYPES.values()
    return whole or refuse(op, f"elements must be whole bytes, got {tensor}")


def verify_smem(op: ext.Operation, smem: SmemType) -> bool:
    """Whether the tile's major axis and swizzle exist and can hold it."""
    if not verify_tile(op, smem.tile):
        return False
    major, swizzle = text_of(smem.major_attr), text_of(smem.swizzle_attr)
    if major not in MAJORS:
        return refuse(op, f"major must be one of {MAJORS}, got {major!r}")
    if swizzle not in LAYOUTS:
        return refuse(op, f"swizzle must be one of {LAYOUTS}, got {swizzle!r}")
    reason = smem.layout.fits()
    return refuse(op, reason) if reason else True


def verify_copy(op: ext.Operation, view: ir.MemRefType, tile: SmemType) -> bool:
    """Whether a view's elements can be copied into the tile."""
    if not verify_smem(op, tile):
        return False
    if view.element_type != tile.element:
        return refuse(
            op,
            f"view and tile must have one element type, got {view.element_type} and {tile.element}",
        )
    return True


def verify_tensor_map(op: ext.Operation, map_type: TensorMapType) -> bool:
    """The rules of cuTensorMapEncodeTiled that the type alone can break."""
    dims, strides, box = map_type.dims, map_type.strides, map_type.box
    if not 1 <= len(dims) <= 5 or len(box) != len(dims) or len(strides) != len(dims) - 1:
        return refuse(
            op,
            "dims and box must have one rank of 1 to 5 and strides one less, got "
            f"{len(dims)}, {len(box)} and {len(strides)}",
        )
    if any(not 1 <= extent <= 256 for extent in _fullest(dims, box)):
        return refuse(op, f"box extents must be 1 to 256 elements, got {box}")
    long_as_m = bool(strides) and dims[0] == DYNAMIC  # a pass knows what M is a multiple of
    if any((stride % 16 and not long_as_m) or abs(stride) >= 2**40 for stride in strides):
        return refuse(op, f"strides must be multiples of 16 bytes below 2^40, got {strides}")
    counted = [at for at, stride in enumerate(strides) if stride < 0]
    of_stack = [len(strides) - 1] if len(dims) > 2 and dims[-1] == DYNAMIC else []
    if long_as_m and counted != [0, *of_stack]:
        rule = "strides of rows of any length must be so many for each element"
        return refuse(op, f"{rule}, got {strides} for dims {dims}")
    if not long_as_m and counted and (counted != [len(strides) - 1] or dims[1] != DYNAMIC):
        rule = "strides must not be negative, but the last one of matrices with any number of rows"
        return refuse(op, f"{rule}, got {strides} for dims {dims}")
    swizzle = map_type.swizzle
    if swizzle not in SPAN_BYTES:
        return refuse(op, f"swizzle must be one of {tuple(SPAN_BYTES)}, got {swizzle!r}")
    inner_bytes = box[0] * element_bytes(map_type.element)
    if inner_bytes % 16:
        return refuse(op, f"box rows must be a multiple of 16 bytes, got {inner_bytes}")
    if swizzle != "none" and inner_bytes > SPAN_BYTES[swizzle]:
        return refuse(
            op, f"box rows must be at most {SPAN_BYTES[swizzle]} bytes, got {inner_bytes}"
        )
    return True


def _fullest(dims: list[int], box: list[int]) -> list[int]:
    """The box at its largest, which may have as many rows as a launch says."""
    return [abs(e) if d == DYNAMIC else e for d, e in zip(dims, box, strict=True)]


def order_refusal(order: str, group: int) -> str | None:
    """What an order of tiles breaks with its `group`, which is of order grouped alone."""
    if order not in ORDERS:
        return f"order must be one of {ORDERS}, got {order!r}"
    if not 1 <= group <= GROUP_MAX:
        return f"group must be 1 to {GROUP_MAX}, got {group}"
    if order != "grouped" and group != GROUP_DEFAULT:
        return f"group must be {GROUP_DEFAULT} where order is not 'grouped', got {group}"
    return None


def verify_order(op: Any) -> bool:
    """Whether there is such an order of the tiles along M and N."""
    order, extents = op.order.value, op.tiles
    if broken := order_refusal(order, op.group.value):
        return refuse(op, broken)
    tiles = integers_of(extents)
    if len(tiles) != 2:
        return refuse(op, f"tiles must be how many there are along M and N, got {tiles}")
    if order == "hilbert" and DYNAMIC in tiles:
        return refuse(op, f"order hilbert is a table of known tiles, got {tiles}")
    if order == "hilbert" and math.prod(tiles) > CELLS_MAX:
        return refuse(op, f"order hilbert takes at most {CELLS_MAX} tiles, got {tiles}")
    return True


def verify_tile_loop(op: Any) -> bool:
    """Whether a loop over tiles knows its order and gives its body (i, j)."""
    if not verify_order(op):
        return False
    arguments = [str(argument.type) for argument in op.body.blocks[0].arguments]
    if arguments != ["index", "index"]:
        return refuse(op, f"the body must take (i, j), got {arguments}")
    return True


def products_of(op: Any) -> int:
    """How many products' sums the epilogue of an op takes."""
    return len(op.epilogue.blocks[0].arguments)


def tile_of_c(op: Any) -> tuple[int, int]:
    """Rows and columns of C that a store stores: its sums have as many columns for each product."""
    m, n = op.acc.type.shape
    return m, n // products_of(op)


def verify_epilogue(
    op: ext.Operation,
    epilogue: ir.Region,
    accumulator: ir.Type,
    output: ir.Type,
    products: tuple[int, ...] = (1, 2),
) -> bool:
    """Whether the region takes an element of the sums of each product and yields one of `output`.

    `products` is how many there may be.
    """
    if len(epilogue.blocks) != 1:
        return refuse(op, f"the epilogue must be one block, got {len(epilogue.blocks)}")
    block = epilogue.blocks[0]
    found = [argument.type for argument in block.arguments]
    if len(found) not in products or any(type_ != accumulator for type_ in found):
        times = " or ".join(("one", "two")[count - 1] for count in products)
        got = [str(type_) for type_ in found]
        return refuse(op, f"the epilogue must take {times} {accumulator}, got {got}")
    last = (list(block.operations) or [None])[-1]
    if (
        last is None
        or last.operation.name != "tile.yield"
        or last.operation.operands[0].type != output
    ):
        return refuse(op, f"the epilogue must end in a tile.yield of {output}")
    return True


def lies_in_rows(layout: TileLayout, major: str = "k") -> bool:
    """Whether a tile's rows, or columns, lie in lines of a swizzle or are odd numbers of units
    without one; scales and vectors do not."""
    return layout.major == major and (layout.swizzle in SPAN_BYTES or layout.has_odd_rows)


def can_write_matrices(piece: TileLayout) -> bool:
    """Whether stmatrix can write the piece: two 8x8 matrices of 16-bit elements side by side, or
    one above the other where columns are contiguous."""
    columns = 8 if piece.major == "mn" or piece.has_odd_rows else 16
    lines = piece.element_bytes == 2 and lies_in_rows(piece, piece.major)
    return lines and piece.k % columns == 0


def summed_extents(op: Any) -> tuple[int, int]:
    """Rows and columns of the sums that CTAs add up for a store, as C lies: of a transposed view
    the columns and rows of a tile."""
    m, n = op.acc.type.shape
    transposed = getattr(op.view.owner, "name", "") == "tile.transposed"
    return (n, m) if transposed else (m, n)


def verify_stored_to(op: Any) -> bool:
    """Whether what an op stores to is a tensor map or the view of a matrix."""
    to = op.to.type
    if isinstance(to, TensorMapType) or (isinstance(to, ir.MemRefType) and to.rank == 2):
        return True
    return refuse(op, f"must store by a tensor map or to a view of a matrix, got {to}")


def logical_shape(stored: ir.RankedTensorType, major: str) -> tuple[int, int]:
    """(MN, K) of an operand tensor that is stored [MN,K] ("k") or [K,MN] ("mn").

    A stack of them has one more dim, before these.
    """
    rows, columns = list(stored.shape)[-2:]
    return (rows, columns) if major == "k" else (columns, rows)


def verify_boxes(op: Any) -> bool:
    """Whether the boxes of a tensor map fill a tile, or the rows of it that the view has."""
    layout, map_type = op.tile.type.layout, op.map.type
    if layout.is_of_scales:
        return verify_atoms(op)
    if not verify_boxes_swizzle(op):
        return False
    rank2, rank3 = [layout.span, layout.rows], [layout.span, layout.rows, layout.chunks]
    rows = [layout.span, map_type.dims[1]]
    if map_type.dims[1] == DYNAMIC:
        rows = [layout.span, up_to(layout.rows)]
    clipped = layout.major == "k" and map_type.dims[1] < layout.rows
    own_rows = clipped and map_type.box in (rows, [*rows, 1][: 3 if layout.chunks == 1 else 2])
    if plain_box(map_type) not in (rank2, rank3) and not own_rows:
        return refuse(op, f"the box must be {rank2} or {rank3}, got {map_type.box}")
    return True


def gather_refusal(layout: TileLayout) -> str | None:
    """Why no copies can gather the rows of a tile, or None when they can.

    Each writes four rows of a chunk, at a multiple of 128 bytes (PTX ISA, cp.async.bulk.tensor).
    """
    if layout.is_of_scales or layout.major != "k" or layout.rows % GATHERED_ROWS:
        rule = f"a gathered tile must be K-major, of rows by {GATHERED_ROWS}"
        return f"{rule}, got {layout.rows} of {layout.major!r}"
    if GATHERED_ROWS * layout.span_bytes % GATHERED_BYTES:
        rule = f"{GATHERED_ROWS} rows must be a multiple of {GATHERED_BYTES} bytes"
        return f"{rule}, got {GATHERED_ROWS * layout.span_bytes}"
    return None


def verify_gather(op: Any) -> bool:
    """Whether the boxes of a tensor map are rows of a K-major tile, taken by fours."""
    layout, map_type = op.tile.type.layout, op.map.type
    broken = gather_refusal(layout)
    if broken:
        return refuse(op, broken)
    wanted = [layout.span, 1], layout.swizzle
    if (map_type.box, map_type.swizzle) != wanted:
        got = f"{map_type.box} with {map_type.swizzle}"
        return refuse(op, f"the box must be {wanted[0]} with {wanted[1]}, got {got}")
    return True


def boxes_swizzle(layout: TileLayout) -> str:
    """The swizzle of the boxes that fill a tile: boxes of linear rows are without one."""
    return "none" if layout.swizzle == LINEAR else layout.swizzle


def verify_boxes_swizzle(op: Any, tile: SmemType | None = None) -> bool:
    """Whether the boxes of a tensor map are swizzled as the tile that they fill, or store."""
    layout, got = (tile or op.tile.type).layout, op.map.type.swizzle
    if boxes_swizzle(layout) == got:
        return True
    rule = "tile and tensor map must have one swizzle"
    return refuse(op, f"{rule}, got {layout.swizzle} and {got}")


def verify_atoms(op: Any) -> bool:
    """Whether the boxes of a tensor map are the atoms of a tile of scales, each in two halves."""
    box = scale_box(op.tile.type.layout)
    if op.map.type.box != box or op.map.type.swizzle != "none":
        got = f"{op.map.type.box} and {op.map.type.swizzle!r}"
        return refuse(op, f"the box of scales must be {box} without a swizzle, got {got}")
    return True


def scale_box(layout: TileLayout, parts: int = 1) -> list[int] | None:
    """The box of a map of scales: bytes of half an atom, halves along K, atoms along MN.

    One of several parts is whole rows of atoms, or of each row some halves; None where neither is.
    """
    along_mn, along_k = layout.atoms
    if along_mn % parts == 0:
        return [HALF_ATOM_BYTES, 2 * along_k, along_mn // parts]
    return None if 2 * along_k % parts else [HALF_ATOM_BYTES, 2 * along_k // parts, 1]


def verify_parts(op: Any) -> bool:
    """Whether the boxes of a tensor map are a CTA's part of the rows of a tile."""
    layout, parts = op.tile.type.layout, op.parts.value
    if op.axis.value not in ("m", "n"):
        return refuse(op, f"axis must be 'm' or 'n', got {op.axis.value!r}")
    if parts < 2:
        return refuse(op, f"parts must be 2 or more, got {parts}")
    if not layout.is_of_scales and (broken := multicast_rows(layout, parts)):
        return refuse(op, broken)
    box: list[int] | None = [layout.span, layout.rows // parts]
    if layout.is_of_scales:
        box = scale_box(layout, parts)
    elif not verify_boxes_swizzle(op):
        return False
    if plain_box(op.map.type) != box:
        return refuse(op, f"the box must be {box}, got {op.map.type.box}")
    return True
