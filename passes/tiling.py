"""Cuts a `tile.matmul` into the program of one CTA.

    tile.matmul(%a, %b)    →    tile.kernel grid = [⌈M/BM⌉, ⌈N/BN⌉, 1] {
                                  %i, %j = cta_tile
                                  %acc = accumulator : BM×BN
                                  for %k in 0 .. ⌈K/BK⌉ {
                                    %ta = load %a[%i, %k]      %tb = load %b[%j, %k]
                                    mma %acc, %ta, %tb, accumulate = %k != 0 }
                                  store %acc, %c[%i, %j] {epilogue} }

Each CTA of the grid computes one BM×BN tile of C, and walks K in steps of BK. Where a tile reaches
over the edge of a matrix, a load fills it with zero and a store drops what lies outside.

Of stacks of matrices [B,M,K], the grid has all tiles of one matrix before those of the next:

    %batch, %row = batch %i {tiles = ⌈M/BM⌉}    %a_of = matrix %a[%batch]    load %a_of[%row, %k]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from ..dialects import legality
from ..dialects.dtypes import SCALED_KINDS
from ..dialects.errors import CompileError
from ..dialects.layout import LINEAR, TileLayout
from ..dialects.mlir import arith, func, ir, scf
from ..dialects.target import MMAS, WARP, WARP_THREADS, Target, warp_grid
from ..dialects.tile import (
    AccumulatorOp,
    CtaTileOp,
    ElementOp,
    KernelOp,
    LoadOp,
    MatmulOp,
    MmaOp,
)
from ..dialects.tile_batches import TransposedOp, turned_view
from ..dialects.tile_blockwise import BlockwiseMatmulOp
from ..dialects.tile_duals import DualMatmulOp, DualMmaOp
from ..dialects.tile_groups import (
    OFFSETS,
    GroupedMatmulOp,
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
    integers_of,
)
from ..dialects.verify import ORDERS, logical_shape
from .argument_layouts import result_strides
from .base import (
    SWAPPED_ATTRIBUTE,
    PassLog,
    one_of,
    option,
    parse_bool,
    parse_extents,
    refused,
    require,
    walk,
)
from .batches import batch_of
from .blockwise_tiling import blockwise_depth, blockwise_mma, blockwise_scales
from .clone import iterations_of
from .duals import B2
from .groups import group_of
from .mma_tiling import check_tile, operand_type
from .outputs import output_names
from .scaled_tiling import (
    ask_for_kind,
    check_scaled_tile,
    multiply,
    scaled_mma_of,
    scaled_tile,
    scales_of,
    stored_tensor,
)
from .thread_tiling import (
    GLOBAL_OPERANDS,
    OPERANDS,
    check_thread_tile,
    choose_mma,
    parse_threads,
    thread_tile,
    threads_for,
)
from .tile_order import GRID_ORDER, parse_group, say_order
from .tiled_places import (
    batch_at,
    columns_at,
    depth_at,
    group_at,
    matrix_at,
    read_group,
    read_view,
    rows_at,
    steps_at,
    tiles_along,
)
from .tiled_stores import store_outputs
from .tiled_views import major_of, say_source, strides_of, view_as
from .warp_grids import say_grid

DEFAULT_TILE = (128, 128, 64)


def parse_grid(text: str) -> tuple[int, ...] | None:
    """`auto` (None) or two counts."""
    return None if text == "auto" else parse_extents(2)(text)


def parse_tile(text: str) -> tuple[int, ...] | None:
    """`auto` (None) or three extents."""
    return None if text == "auto" else parse_extents(3)(text)


@dataclass(frozen=True)
class Tiling:
    """`tile.matmul` → a `tile.kernel` that computes one tile a CTA.

    `tile` is BM×BN×BK in elements; auto is 128x128x64, with block scales 128x128 and 128 bytes
    along K. `mma` is the instruction that multiplies tiles; auto is what the
    module names, else the target's own, or fma for types that this does not take.

    With fma each thread computes elements of its own, and any tile will do. `threads` is how many
    there are; auto is one for each element, up to 256. `operands` says what they read: tiles of
    shared memory, one after the other along K; `whole` tiles that have all of K, rounded up to
    whole BK; or the `global` views themselves, BK elements of K at a time. Their f32 is multiplied
    as it is, and that of a tensor core as tf32.

    Where each warp multiplies by itself (mma.sync), `warps` is the grid of those that share a
    tile; auto takes four, or more where the sums need their registers.

    `order` is the order in which CTAs take tiles as they start: `m` goes along M, as the grid does
    by itself; `n`, `grouped` by `group` tiles along M (auto: 8) and `hilbert` are as those of
    `persistence`, which has an order of its own. With `grouped` CTAs that run together share more
    operands in L2.

    With `swap` the MMAs multiply tiles of B by tiles of A, so that BM rows of a tile run along N of
    C and BN columns along M. An MMA has 64 rows or a multiple, and columns by 8 or 16: so few rows
    of C, or a number that is no multiple, waste less. Stores then write a view of C with rows for
    columns (`tile.transposed`).

    `kind` is that of a block-scaled MMA, where several take the operands: auto is the quickest.
    With mxf4nvf4, mxfp4 takes the MMA of nvfp4, and with mxf8f6f4 that of 8 bits.
    """

    name: ClassVar[str] = "tiling"
    makes: ClassVar[tuple[str, ...]] = ("tile.kernel",)
    tile: tuple[int, int, int] | None = option(None, parse_tile, "auto or BMxBNxBK, as 128x128x64")
    mma: str = option(
        "auto", one_of("auto", *MMAS), "auto or the name of an MMA, as wgmma.mma_async"
    )
    operands: str = option("tiles", one_of(*OPERANDS), "tiles, whole or global")
    threads: int | None = option(None, parse_threads, "auto or whole warps up to 1024")
    warps: tuple[int, int] | None = option(None, parse_grid, "auto or warps along M and N, as 2x4")
    order: str = option(GRID_ORDER, one_of(*ORDERS), "m, n, grouped or hilbert")
    group: int | None = option(None, parse_group, "auto or a number of tiles along M")
    kind: str = option("auto", one_of("auto", *SCALED_KINDS), f"auto, {' or '.join(SCALED_KINDS)}")
    swap: bool = option(False, parse_bool, "true or false")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        matmuls = walk(module, MatmulOp)
        if len(matmuls) != 1:
            raise CompileError(
                f"tiling: the module must hold one tile.matmul, got {len(matmuls)}; "
                "run normalize first, and tiling once"
            )
        matmul = matmuls[0]
        if self.kind != "auto":
            ask_for_kind(matmul, self.kind)
        target, grid = choose_mma(module, matmul, self.mma), None
        if isinstance(matmul, ScaledMatmulOp):
            mma = scaled_mma_of(matmul, target)
            tile = scaled_tile(matmul, self.tile, mma, log)
            threads = self._threads_of_mma(matmul, tile, target)
        elif target.threads_multiply:
            if isinstance(matmul, DualMatmulOp):
                broken = legality.dual_tile(target, *(self.tile or DEFAULT_TILE)[:2])
                require(matmul, broken, "multiply by a tensor core", "tiling: ")
            self._grid(matmul, target)
            tile = thread_tile(matmul, self.tile or DEFAULT_TILE, self.operands)
            threads = self.threads or threads_for(tile)
            check_thread_tile(matmul, tile, threads, self.operands, target)
        else:
            tile = self.tile or (*DEFAULT_TILE[:2], blockwise_depth(matmul, target))
            threads = self._threads_of_mma(matmul, tile, target)
            grid = self._grid(matmul, target)
            if operand_type(matmul, target).name == "tf32" and log.places:
                log.remark(
                    matmul,
                    "f32 operands are multiplied as tf32, which has 10 fraction bits; mma=fma "
                    "multiplies them as they are",
                )
        if self.swap:
            _check_swap(matmul, target)
        kernel = _build_kernel(matmul, tile, threads, self.operands, target, self.swap)
        if grid:
            say_grid(kernel, grid)
        say_order(kernel, matmul, self.order, self.group)
        function = matmul.operation.parent.opview
        if isinstance(function, func.FuncOp):
            function.operation.erase()
        ctas = ["?" if each == DYNAMIC else each for each in integers_of(kernel.grid)]
        log.did(
            f"{'x'.join(map(str, tile))} tiles, grid {ctas[0]}x{ctas[1]}, "
            f"{_k_tiles(kernel)} K steps"
        )

    def _threads_of_mma(self, matmul: MatmulOp, tile: tuple[int, int, int], target: Target) -> int:
        """Those that the target's MMA needs for the tile."""
        for name, default in (("operands", "tiles"), ("threads", None)):
            if getattr(self, name) != default:
                rule = f"tiling: {name} must be left out where no thread multiplies by itself"
                raise refused(matmul, f"{rule}, got {getattr(self, name)}; use mma=fma")
        if isinstance(matmul, ScaledMatmulOp):
            check_scaled_tile(matmul, tile, scaled_mma_of(matmul, target), target)
        else:
            check_tile(matmul, tile, target)
        grid = self._grid(matmul, target)
        warps = prod(grid) if grid else target.mma_warps(*tile[:2])
        assert warps is not None  # check_tile has asked
        return WARP_THREADS * warps

    def _grid(self, matmul: MatmulOp, target: Target) -> tuple[int, int] | None:
        """The warps that share a tile, where each multiplies by itself; refuse any elsewhere."""
        if target.mma.issuer != WARP:
            if self.warps is not None:
                got = f"{target.mma.name}, got warps={self.warps[0]}x{self.warps[1]}"
                raise refused(matmul, f"tiling: warps share no tile of {got}; drop warps")
            return None
        m, n, _ = self.tile or DEFAULT_TILE
        if self.warps is None:
            return warp_grid(m, n, target.mma, matmul.products)
        broken = legality.warp_grid(target, m, n, self.warps, matmul.products)
        require(matmul, broken, "leave out warps", "tiling: ")
        return self.warps


def _check_swap(matmul: MatmulOp, target: Target) -> None:
    """Refuse to exchange A and B where the rest has rows and columns of its own."""
    majors = {matmul.a_major.value, matmul.b_major.value}
    others = epilogue_tensors(matmul) or kept_of(matmul)
    broken = None
    if type(matmul) is not MatmulOp or matmul.c.type.rank != 2:
        broken = f"one product of two matrices, got {matmul.operation.name}"
    elif quantize_of(matmul.epilogue.blocks[0]) is not None or others:
        broken = "an epilogue of the sum alone with one output, got another"
    elif majors != {"k"} or DYNAMIC in (extent_of(matmul.c.type, dim) for dim in range(2)):
        broken = f"known extents and K contiguous, got majors {sorted(majors)} of {matmul.c.type}"
    elif target.mma.issuer == WARP or target.threads_multiply:
        broken = f"wgmma or tcgen05.mma, got {target.mma.name}"
    if broken:
        raise refused(matmul, f"tiling: swap needs {broken}; leave it out")


def epilogue_tensors(matmul: MatmulOp) -> list[ir.Value]:
    """What the epilogue reads beside the sum, in the order in which the kernel takes it."""
    sources = dict.fromkeys(element.source for element in walk(matmul, ElementOp))
    return sorted(sources, key=lambda source: ir.BlockArgument(source).arg_number)


def _beside(matmul: MatmulOp) -> dict[str, ir.Value]:
    """What an op takes beside A and B, by the names of the kernel's arguments."""
    if isinstance(matmul, GroupedMatmulOp):
        return {OFFSETS: matmul.offsets}
    if isinstance(matmul, DualMatmulOp):
        return {B2: matmul.b2}
    return blockwise_scales(matmul) or scales_of(matmul)


def _build_kernel(
    matmul: MatmulOp,
    tile: tuple[int, int, int],
    threads: int,
    operands: str,
    target: Target,
    swap: bool,
) -> KernelOp:
    function = matmul.operation.parent.opview
    beside, kept = _beside(matmul), kept_of(matmul)
    sources = epilogue_tensors(matmul)
    names = ["a", "b", *beside, *(f"e{index}" for index in range(len(sources)))]
    quantized = quantize_of(matmul.epilogue.blocks[0]) is not None
    names += output_names(1 + len(kept), quantized)
    sources = [*beside.values(), *sources]
    _check_dynamic(matmul)
    *stack, n = (extent_of(matmul.c.type, dim) for dim in range(matmul.c.type.rank))
    along_m = DYNAMIC if stack == [DYNAMIC] else prod(stack[:-1]) * tiles_along(stack[-1], tile[0])
    if isinstance(matmul, GroupedMatmulOp) and not matmul.of_depth:
        along_m = tiles_of_groups(stack[0], matmul.b.type.shape[0], tile[0], 1)
    grid = [along_m, tiles_along(matmul.products * n, tile[1]), 1]
    if swap:
        grid = [tiles_along(n, tile[0]), tiles_along(stack[0], tile[1]), 1]
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
            view_as(stored_tensor(matmul, each.type), major.value, strides_of(function, each))
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
    return kernel


def _check_dynamic(matmul: MatmulOp) -> None:
    """Refuse dynamic extents but rows of one matrix, which are those of A as it lies."""
    shapes = {"A": matmul.a.type, "B": matmul.b.type, "C": matmul.c.type}
    dynamic = {name: dynamic_dims(type_) for name, type_ in shapes.items()}
    if not any(dynamic.values()):
        return
    if isinstance(matmul, ScaledMatmulOp | BlockwiseMatmulOp):
        raise refused(matmul, "tiling: a dynamic M has no block scales; give M a number")
    if matmul.a_major.value == "mn":
        rule = "tiling: A of a dynamic M must have K contiguous"
        raise refused(matmul, f"{rule}, got M; transpose it before the kernel")
    if dynamic != {"A": [0], "B": [], "C": [0]} or matmul.c.type.rank != 2:
        got = ", ".join(str(type_) for type_ in shapes.values())
        raise refused(matmul, f"tiling: M alone may be dynamic, of one matrix, got {got}")


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
    outputs = others[-1 - len(kept_of(matmul)) :]
    c = outputs[0]
    if swap:
        a, b = b, a
        outputs = [TransposedOp(view=c, turned=turned_view(c.type)).turned]
    cta = CtaTileOp(i=ir.IndexType.get(), j=ir.IndexType.get())
    place = cta.i
    depth, group_depth = logical_shape(matmul.a.type, matmul.a_major.value)[1], None
    if c.type.rank == 3:
        batch = batch_at(cta, c.type, m)
        a, b, *outputs = (
            each if each.type.rank == 2 else matrix_at(each, batch.batch)
            for each in (a, b, *outputs)
        )
        if matmul.products == 2 and others[0].type.rank == 3:
            others[0] = matrix_at(others[0], batch.batch)
        if isinstance(matmul, ScaledMatmulOp | BlockwiseMatmulOp):
            stacked = [operand.type.rank == 3 for operand in (matmul.a, matmul.b)]
            others[:2] = [
                matrix_at(each, batch.batch) if whole else each
                for each, whole in zip(others[:2], stacked, strict=True)
            ]
        place = batch.row
        if isinstance(matmul, GroupedMatmulOp):
            group_depth = depth_at(batch, others[0], depth)
            a, b = columns_at(a, group_depth), columns_at(b, group_depth)
    elif isinstance(matmul, GroupedMatmulOp):
        group = group_at(cta, others[0], c.type.shape[0], m)
        a, b = rows_at(a, group), matrix_at(b, group.group)
        outputs = [rows_at(each, group) for each in outputs]
        place = group.row
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
            a_tile = _load(a, matmul.a_major.value, (m, k), place, step, layout)
            b_tile = _load(b, matmul.b_major.value, (rows, k), cta.j, step, layout)
            second = {}
            if isinstance(matmul, DualMatmulOp):
                b2_major = matmul.b2_major.value
                second = {"b2": _load(others[0], b2_major, (rows, k), cta.j, step, layout)}
            accumulate = arith.cmpi(arith.CmpIPredicate.ne, step, zero)
            where = {"acc": acc, "a": a_tile, "b": b_tile, "accumulate": accumulate}
            if isinstance(matmul, BlockwiseMatmulOp):
                blockwise_mma(matmul, others[:2], {**where, "i": place, "j": cta.j, "k": step})
            else:
                op_class = DualMmaOp if second else MmaOp
                op_class(**where, **second)
        scf.YieldOp([])
    store_outputs(matmul, outputs, {"acc": acc, "i": place, "j": cta.j})


def _load(
    view: ir.Value[ir.MemRefType], major: str, shape: tuple[int, int], i: Any, j: Any, swizzle: str
) -> ir.Value:
    element = view.type.element_type
    layout = TileLayout(*shape, element_bytes(element), major, swizzle)
    return LoadOp(tile=SmemType.of(layout, element), view=view, i=i, j=j).tile


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _k_tiles(kernel: KernelOp) -> int:
    return len(iterations_of(walk(kernel, scf.ForOp)[0]) or ())
