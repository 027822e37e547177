"""The kernel of a product: the views that it takes, and the program of the CTA of one tile.

What `tiling` has chosen is given: the tile, the threads, what the threads of an fma read, and
whether A and B are exchanged.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..dialects.layout import LINEAR, TileLayout
from ..dialects.mlir import arith, ir, scf
from ..dialects.target import Target
from ..dialects.tile import (
    AccumulatorOp,
    CtaTileOp,
    ElementOp,
    KernelOp,
    LoadOp,
    MatmulOp,
    MmaOp,
)
from ..dialects.tile_blockwise import BlockwiseMatmulOp
from ..dialects.tile_duals import DualMatmulOp, DualMmaOp
from ..dialects.tile_grouped_products import (
    BY_ATOMS,
    BY_COLUMNS,
    BY_ROWS,
    GROUPED_PRODUCTS,
    groups_rows,
)
from ..dialects.tile_groups import (
    OFFSETS,
    ORDER,
    ROWS,
    GatheredMatmulOp,
    GroupedMatmulOp,
    OrderedMatmulOp,
    tiles_of_groups,
)
from ..dialects.tile_outputs import kept_of
from ..dialects.tile_quantized import quantize_of
from ..dialects.tile_scales import ScaledMatmulOp
from ..dialects.tile_sums import ViewMmaOp
from ..dialects.tile_types import (
    DYNAMIC,
    AccumulatorType,
    SmemType,
    dynamic_dims,
    element_bytes,
    extent_of,
    integers,
)
from ..dialects.tile_weights import WeightMatmulOp
from ..dialects.verify import logical_shape
from .argument_layouts import result_strides
from .base import (
    SWAPPED_ATTRIBUTE,
    refused,
    walk,
)
from .batches import batch_of
from .blockwise_tiling import blockwise_mma, blockwise_scales
from .clone import iterations_of
from .duals import B2
from .dynamic_rows import row_bounds
from .groups import group_of
from .outputs import output_names
from .scaled_tiling import (
    multiply,
    scaled_mma_of,
    scales_of,
    stored_tensor,
)
from .thread_tiling import (
    GLOBAL_OPERANDS,
)
from .tiled_places import (
    batch_at,
    columns_at,
    depth_at,
    gathered_at,
    group_at,
    matrix_at,
    read_group,
    read_view,
    rows_at,
    scales_at,
    steps_at,
    tiles_along,
)
from .tiled_stores import store_outputs
from .tiled_swap import turn_elements, turned
from .tiled_views import major_of, say_source, strides_of, view_as
from .weights import stored_weights, weight_mma, weight_scales, weights_per_byte


def epilogue_tensors(matmul: MatmulOp) -> list[ir.Value]:
    """What the epilogue reads beside the sum, in the order in which the kernel takes it."""
    sources = dict.fromkeys(element.source for element in walk(matmul, ElementOp))
    return sorted(sources, key=lambda source: ir.BlockArgument(source).arg_number)


def _beside(matmul: MatmulOp) -> dict[str, ir.Value]:
    """What an op takes beside A and B, by the names of the kernel's arguments."""
    if isinstance(matmul, GroupedMatmulOp):
        more = {ROWS: matmul.rows} if isinstance(matmul, GatheredMatmulOp) else {}
        more |= {ORDER: matmul.order} if isinstance(matmul, OrderedMatmulOp) else {}
        return {OFFSETS: matmul.offsets, **more}
    ends = {OFFSETS: matmul.offsets} if isinstance(matmul, GROUPED_PRODUCTS) else {}
    if isinstance(matmul, DualMatmulOp):
        return {B2: matmul.b2, **ends}
    scales = blockwise_scales(matmul) or scales_of(matmul) or weight_scales(matmul)
    return {**scales, **ends}


def build_kernel(
    matmul: MatmulOp,
    tile: tuple[int, int, int],
    threads: int,
    operands: str,
    target: Target,
    swap: bool,
) -> KernelOp:
    """The kernel in front of the function of the product, which stays for the pass to drop."""
    function = matmul.operation.parent.opview
    beside, kept = _beside(matmul), kept_of(matmul)
    sources = epilogue_tensors(matmul)
    names = ["a", "b", *beside, *(f"e{index}" for index in range(len(sources)))]
    quantized = quantize_of(matmul.epilogue.blocks[0]) is not None
    names += output_names(1 + len(kept), quantized)
    sources = [*beside.values(), *sources]
    _check_dynamic(matmul)
    *stack, n = (extent_of(matmul.c.type, dim) for dim in range(matmul.c.type.rank))
    along_m = _of_all(stack[:-1], tiles_along(stack[-1], tile[0]))
    if stack == [DYNAMIC]:
        along_m = 1 if row_bounds(matmul)[1] <= tile[0] else DYNAMIC
    if groups_rows(matmul):
        along_m = tiles_of_groups(stack[0], matmul.b.type.shape[0], tile[0], 1)
    grid = [along_m, tiles_along(matmul.products * n, tile[1]), 1]
    if swap:
        along_n = tiles_along(max(1, stack[-1]), tile[1])
        if stack == [DYNAMIC]:
            along_n = 1 if row_bounds(matmul)[1] <= tile[1] else DYNAMIC
        grid = [_of_all(stack[:-1], tiles_along(n, tile[0])), along_n, 1]
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(function), matmul.location:
        kernel = KernelOp(
            sym_name=function.attributes["sym_name"],
            grid=integers(grid),
            cluster=integers([1, 1, 1]),
            threads=ir.IntegerAttr.get(i64, threads),
            arg_names=ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names]),
        )
    say_source(kernel, matmul, sources)
    if swap:
        kernel.operation.attributes[SWAPPED_ATTRIBUTE] = ir.UnitAttr.get()
    views = [
        *(
            view_as(_stored(matmul, each.type), major.value, strides_of(function, each))
            for each, major in ((matmul.a, matmul.a_major), (matmul.b, matmul.b_major))
        ),
        *(
            view_as(
                ir.RankedTensorType(each.type), major_of(matmul, each), strides_of(function, each)
            )
            for each in sources
        ),
        view_as(matmul.c.type, "k", result_strides(function)),
        *(view_as(each.output.type, "k", None) for each in kept),
    ]
    block = kernel.body.blocks.append(*views)
    with ir.InsertionPoint(block), matmul.location:
        _build_body(matmul, block.arguments, tile, operands, target, swap)
    views_of = dict(zip(sources, list(block.arguments)[2:], strict=False))
    batch, group = batch_of(kernel), group_of(kernel)
    for element in walk(kernel, ElementOp):
        if group is not None:
            read_group(element, views_of[element.source], group)
        else:
            read_view(element, views_of[element.source], batch)
    if swap:
        turn_elements(kernel)
    return kernel


def _of_all(stack: list[int], tiles: int) -> int:
    """The tiles of all matrices of a stack; a launch says how many those are where it does."""
    return DYNAMIC if DYNAMIC in stack else prod(stack) * tiles


def _stored(matmul: MatmulOp, tensor: ir.RankedTensorType) -> ir.RankedTensorType:
    """A tensor as its tiles are taken: of elements that share bytes, these."""
    return stored_weights(matmul, stored_tensor(matmul, tensor))


def _check_dynamic(matmul: MatmulOp) -> None:
    """Refuse dynamic extents but rows of one matrix, which are those of A as it lies, or the number
    of matrices in a stack."""
    shapes = {"A": matmul.a.type, "B": matmul.b.type, "C": matmul.c.type}
    dynamic = {name: dynamic_dims(type_) for name, type_ in shapes.items()}
    if not any(dynamic.values()):
        return
    if _has_scales(matmul):
        what = "a dynamic M" if matmul.c.type.rank == 2 else "a dynamic batch"
        raise refused(matmul, f"tiling: {what} has no block scales; give it a number")
    if matmul.c.type.rank == 3:
        _check_stack(matmul, shapes, dynamic)
        return
    if matmul.a_major.value == "mn":
        rule = "tiling: A of a dynamic M must have K contiguous"
        raise refused(matmul, f"{rule}, got M; transpose it before the kernel")
    if dynamic != {"A": [0], "B": [], "C": [0]} or matmul.c.type.rank != 2:
        got = ", ".join(str(type_) for type_ in shapes.values())
        raise refused(matmul, f"tiling: M alone may be dynamic, of one matrix, got {got}")


def _check_stack(matmul: MatmulOp, shapes: dict[str, Any], dynamic: dict[str, list[int]]) -> None:
    """Of a stack the number of matrices alone is dynamic: rows between matrices are steps."""
    stacked = {name: [0] if type_.rank == 3 else [] for name, type_ in shapes.items()}
    if isinstance(matmul, (GroupedMatmulOp, *GROUPED_PRODUCTS)) or dynamic != stacked:
        got = ", ".join(str(type_) for type_ in shapes.values())
        rule = "tiling: of a stack the number of matrices alone may be dynamic"
        raise refused(matmul, f"{rule}, got {got}; give the others numbers")


def _build_body(
    matmul: MatmulOp,
    views: Any,
    tile: tuple[int, int, int],
    operands: str,
    target: Target,
    swap: bool,
) -> None:
    m, n, k = tile
    if isinstance(matmul, GroupedMatmulOp) and matmul.of_depth and operands != "tiles":
        raise refused(
            matmul,
            f"tiling: operands must be tiles where K is grouped, got {operands}; leave it out",
        )
    a, b, *others = views
    majors = matmul.a_major.value, matmul.b_major.value
    outputs = others[-1 - len(kept_of(matmul)) :]
    c = outputs[0]
    if swap:
        (a, b), majors = (b, a), majors[::-1]
    cta = CtaTileOp(i=ir.IndexType.get(), j=ir.IndexType.get())
    place = cta.i
    depth, group_depth = logical_shape(matmul.a.type, matmul.a_major.value)[1], None
    if c.type.rank == 3:
        order = others[1] if isinstance(matmul, OrderedMatmulOp) else None
        batch = batch_at(cta, c.type, m, 2 if swap else 1, order)
        a, b, *outputs = (
            each if each.type.rank == 2 else matrix_at(each, batch.batch)
            for each in (a, b, *outputs)
        )
        if matmul.products == 2 and others[0].type.rank == 3:
            others[0] = matrix_at(others[0], batch.batch)
        if _has_scales(matmul):
            stacked = [operand.type.rank == 3 for operand in (matmul.a, matmul.b)]
            others[:2] = [
                matrix_at(each, batch.batch) if whole else each
                for each, whole in zip(others[:2], stacked, strict=True)
            ]
        place = batch.row
        if isinstance(matmul, GroupedMatmulOp):
            group_depth = depth_at(batch, others[0], depth)
            a, b = columns_at(a, group_depth), columns_at(b, group_depth)
    elif groups_rows(matmul):
        offsets = others[2 if _has_scales(matmul) else matmul.products - 1]
        group = group_at(cta, offsets, c.type.shape[0], m)
        gathered = isinstance(matmul, GatheredMatmulOp)
        a = gathered_at(a, group, others[1]) if gathered else rows_at(a, group)
        b = matrix_at(b, group.group)
        if _has_scales(matmul):
            others[0] = scales_at(others[0], group, _form_of(matmul, others[0].type))
        if not isinstance(matmul, GroupedMatmulOp):  # b's scales, or the second b
            at = 1 if _has_scales(matmul) else 0
            others[at] = matrix_at(others[at], group.group)
        outputs = [rows_at(each, group) for each in outputs]
        place = group.row
    if swap:
        outputs = [turned(each) for each in outputs]
    accumulator_type = AccumulatorType.of(m, n, matmul.epilogue.blocks[0].arguments[0].type)
    acc = AccumulatorOp(acc=accumulator_type).acc
    zero, one = _index(0), _index(1)
    steps = steps_at(group_depth, k) if group_depth else _index(tiles_along(depth, k))
    loop = scf.ForOp(zero, steps, one)
    with ir.InsertionPoint(loop.body):
        step = loop.induction_variable
        if isinstance(matmul, ScaledMatmulOp):
            accumulate = arith.cmpi(arith.CmpIPredicate.ne, step, zero)
            where = {"acc": acc, "accumulate": accumulate, "i": place, "j": cta.j, "k": step}
            multiply(matmul, [a, b, *others[:2]], tile, scaled_mma_of(matmul, target), where)
        elif operands == GLOBAL_OPERANDS:
            accumulate = arith.cmpi(arith.CmpIPredicate.ne, step, zero)
            where = {"i": place, "j": cta.j, "k": step, "accumulate": accumulate}
            depth = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), k)
            ViewMmaOp(acc=acc, a=a, b=b, **where, depth=depth)
        else:
            layout = LINEAR if target.threads_multiply else "none"
            rows = n // matmul.products
            packed = [1, weights_per_byte(matmul)]
            of_a, of_b = packed[::-1] if swap else packed
            a_tile = _load(a, majors[0], (m, k // of_a), place, step, layout)
            b_tile = _load(b, majors[1], (rows, k // of_b), cta.j, step, layout)
            second = {}
            if isinstance(matmul, DualMatmulOp):
                b2_major = matmul.b2_major.value
                second = {"b2": _load(others[0], b2_major, (rows, k), cta.j, step, layout)}
            accumulate = arith.cmpi(arith.CmpIPredicate.ne, step, zero)
            where = {"acc": acc, "a": a_tile, "b": b_tile, "accumulate": accumulate}
            if isinstance(matmul, BlockwiseMatmulOp):
                blockwise_mma(matmul, others[:2], {**where, "i": place, "j": cta.j, "k": step})
            elif isinstance(matmul, WeightMatmulOp):
                beside = others[: len(weight_scales(matmul))]
                of_weights = {"j": place if swap else cta.j, "k": step}
                weight_mma(matmul, beside, where | of_weights, swap)
            else:
                op_class = DualMmaOp if second else MmaOp
                op_class(**where, **second)
        scf.YieldOp([])
    store_outputs(matmul, outputs, {"acc": acc, "i": place, "j": cta.j})


def _has_scales(matmul: MatmulOp) -> bool:
    """Whether A and B have scales of blocks."""
    return isinstance(matmul, ScaledMatmulOp | BlockwiseMatmulOp)


def _form_of(matmul: MatmulOp, scales: ir.MemRefType) -> str:
    """What the lines of the scales of a group's rows are."""
    if isinstance(matmul, BlockwiseMatmulOp):
        return BY_COLUMNS
    return BY_ATOMS if scales.rank == 5 else BY_ROWS


def _load(
    view: ir.Value[ir.MemRefType], major: str, shape: tuple[int, int], i: Any, j: Any, swizzle: str
) -> ir.Value:
    element = view.type.element_type
    layout = TileLayout(*shape, element_bytes(element), major, swizzle)
    return LoadOp(tile=SmemType.of(layout, element), view=view, i=i, j=j).tile


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def k_tiles(kernel: KernelOp) -> int:
    """Steps along K of the one loop, 0 where a launch says them."""
    return len(iterations_of(walk(kernel, scf.ForOp)[0]) or ())
