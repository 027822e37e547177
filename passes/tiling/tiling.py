"""Cuts a `tile.matmul` into the program of one CTA.

    tile.matmul(%a, %b)    →    tile.kernel grid = [⌈M/BM⌉, ⌈N/BN⌉, 1] {
                                  %i, %j = cta_tile
                                  %acc = accumulator : BM×BN
                                  for %k in 0 .. ⌈K/BK⌉ {
                                    %ta = load %a[%i, %k]      %tb = load %b[%j, %k]
                                    mma %acc, %ta, %tb, accumulate = %k != 0 }
                                  store %acc, %c[%i, %j] {epilogue} }

Each CTA of the grid computes one BM×BN tile of C and iterates over K in steps of BK. Where a tile
extends past the edge of a matrix, loads fill it with zeros and stores drop out-of-bounds elements.

For batches of matrices [B,M,K], the grid has all tiles of one matrix before those of the next:

    %batch, %row = batch %i {tiles = ⌈M/BM⌉}    %a_of = matrix %a[%batch]    load %a_of[%row, %k]
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dialects import legality
from ...dialects.dtypes import SCALED_KINDS
from ...dialects.errors import CompileError
from ...dialects.mlir import func, ir
from ...dialects.mma_units import MMAS, WARP, warp_grid
from ...dialects.record import record
from ...dialects.target import WARP_THREADS, Target
from ...dialects.terms import DEPTHS
from ...dialects.tile import MatmulOp
from ...dialects.tile.duals import DualMatmulOp
from ...dialects.tile.scales import ScaledMatmulOp
from ...dialects.tile.sums import LANES_TEXT
from ...dialects.tile.weights import WeightMatmulOp
from ...dialects.tile_types import DYNAMIC, integers_of
from ...dialects.verify import ORDERS
from ..base import (
    PassLog,
    auto_option,
    many,
    one_of,
    option,
    parse_bool,
    parse_extents,
    parse_positive,
    refused,
    require,
    walk,
)
from ..tile_order import GRID_ORDER, say_order
from ..warp_grids import say_grid
from ..weights import WEIGHT_TILE, check_weight_tile
from .blockwise import blockwise_depth
from .kernel import build_kernel, k_tiles
from .mma import check_tile, operand_type
from .scaled import (
    ask_for_kind,
    check_scaled_tile,
    scaled_mma_of,
    scaled_tile,
)
from .steps import TileChoice
from .swap import check_swap
from .threads import (
    OPERANDS,
    check_lanes,
    check_thread_tile,
    choose_mma,
    parse_lanes,
    parse_threads,
    thread_tile,
    threads_for,
)

DEFAULT_TILE = (128, 128, 64)
Choice = tuple[tuple[int, int, int], int, tuple[int, int] | None]
"""The tile, the threads of a CTA, and the grid of warps that share the tile; None by the rule."""


def default_tile(matmul: MatmulOp, target: Target) -> tuple[int, int, int]:
    """The default tile."""
    if isinstance(matmul, WeightMatmulOp):
        return WEIGHT_TILE
    if target.mma.splits:
        return (*DEFAULT_TILE[:2], max(DEPTHS))
    return (*DEFAULT_TILE[:2], blockwise_depth(matmul, target))


@record
class Tiling:
    """`tile.matmul` → a `tile.kernel` that computes one tile a CTA.

    `tile` is BM×BN×BK in elements; auto is 128x128x64, with block scales 128x128 and 128 bytes
    along K, with narrow weights 64x128x64. `mma` is the instruction that multiplies tiles; auto is
    what the module names, else the default of the target, or fma for types that it does not take.

    With fma each thread computes its own elements, and a tile may have any size. `threads` is the
    number of threads; auto is one per element, up to 256. `operands` says what they read: tiles in
    shared memory, one K step at a time; `whole` tiles that hold all of K, rounded up to a multiple
    of BK; or the `global` views directly, BK elements of K at a time. f32 is multiplied in full
    precision, whereas tensor cores multiply it as tf32.

    With `global` operands, several `lanes` may share each element, as in a GEMV kernel: threads of
    a warp, or whole warps. They read adjacent elements along K, 16 bytes each if rows are aligned,
    and add up their partial sums after the loop. This is for few rows, where the time is that of
    reading B: adjacent lanes read one row of B, and each thread computes all rows of a tile. For
    two products, N of a tile counts the columns of both.

    With mma.sync, where each warp issues its own MMAs, `warps` is the grid of warps that share a
    tile; auto is four, or more if the accumulators need their registers.

    `order` is the order in which CTAs take tiles as they start: `m` goes along M, as the grid does
    by default; `n`, `grouped` by `group` tiles along M (auto: 8) and `hilbert` are those of
    `persistence`, which has its own order. With `grouped`, CTAs that run at the same time share
    more operands in L2.

    With `swap` (swap-AB) the MMAs multiply tiles of B by tiles of A, so that the BM rows of a tile
    run along N of C and its BN columns along M. An MMA has a multiple of 64 rows, but a multiple of
    8 or 16 columns, so this wastes less for few rows of C, or an odd number of them. Later passes
    see the transpose of C: stores write a transposed view (`tile.transposed`), epilogues read such
    views, and an operand with one element per column of C has one per row of the accumulator.

    `kind` selects a block-scaled MMA if several take the operands; auto is the fastest. With
    mxf4nvf4, mxfp4 uses the MMA of nvfp4, and with mxf8f6f4 that of 8-bit types.
    """

    name: ClassVar[str] = "tiling"
    makes: ClassVar[tuple[str, ...]] = ("tile.kernel",)
    tile: tuple[int, int, int] | None = auto_option(parse_extents(3), "BMxBNxBK, as 128x128x64")
    mma: str = option(
        "auto", one_of("auto", *MMAS), "auto or the name of an MMA, as wgmma.mma_async"
    )
    operands: str = option("tiles", one_of(*OPERANDS), "tiles, whole or global")
    threads: int | None = option(None, parse_threads, "auto or whole warps up to 1024")
    warps: tuple[int, int] | None = auto_option(parse_extents(2), "warps along M and N, as 2x4")
    order: str = option(GRID_ORDER, one_of(*ORDERS), "m, n, grouped or hilbert")
    group: int | None = auto_option(parse_positive, "a number of tiles along M")
    kind: str = option("auto", one_of("auto", *SCALED_KINDS), f"auto, {' or '.join(SCALED_KINDS)}")
    swap: bool = option(False, parse_bool, "true or false")
    lanes: int = option(1, parse_lanes, f"1, {LANES_TEXT}")

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
        target = choose_mma(module, matmul, self.mma)
        tile, threads, grid = self._choose(matmul, target, log)
        if self.swap:
            check_swap(matmul, target)
        choice = TileChoice(matmul, tile, self.operands, target, self.swap, self.lanes)
        kernel = build_kernel(choice, threads)
        if grid:
            say_grid(kernel, grid)
        say_order(kernel, matmul, self.order, self.group)
        function = matmul.operation.parent.opview
        if isinstance(function, func.FuncOp):
            function.operation.erase()
        ctas = ["?" if each == DYNAMIC else each for each in integers_of(kernel.grid)]
        size, steps = "x".join(map(str, tile)), many(k_tiles(kernel), "K step")
        log.did(f"{size} tiles, grid {ctas[0]}x{ctas[1]}, {steps}")

    def _choose(self, matmul: MatmulOp, target: Target, log: PassLog) -> Choice:
        """The tile, the MMA unit and the threads of a CTA."""
        if isinstance(matmul, ScaledMatmulOp):
            tile = scaled_tile(matmul, self.tile, scaled_mma_of(matmul, target), log)
            return tile, self._threads_of_mma(matmul, tile, target), self.warps
        if target.threads_multiply:
            return self._choose_for_threads(matmul, target)
        tile = self.tile or default_tile(matmul, target)
        threads = self._threads_of_mma(matmul, tile, target)
        grid = self._grid(matmul, target)
        if operand_type(matmul, target).name == "tf32" and log.places:
            log.remark(
                matmul,
                "f32 operands are multiplied as tf32, which has 10 fraction bits; mma=fma "
                "multiplies them as they are",
            )
        return tile, threads, grid

    def _choose_for_threads(self, matmul: MatmulOp, target: Target) -> Choice:
        """The same for kernels on CUDA cores."""
        self._grid(matmul, target)
        tile = thread_tile(matmul, self.tile or DEFAULT_TILE, self.operands)
        threads = self.threads or threads_for(tile, self.lanes)
        if self.lanes > 1:
            check_lanes(matmul, tile, threads, (self.operands, self.lanes), target)
            return tile, threads, None
        if isinstance(matmul, DualMatmulOp):
            broken = legality.dual_tile(target, *tile[:2])
            require(matmul, broken, "take lanes=32, or multiply by a tensor core", "tiling: ")
        check_thread_tile(matmul, tile, threads, self.operands, target)
        return tile, threads, None

    def _threads_of_mma(self, matmul: MatmulOp, tile: tuple[int, int, int], target: Target) -> int:
        """The number of threads that the target's MMA needs for the tile."""
        for name, default in (("operands", "tiles"), ("threads", None), ("lanes", 1)):
            if getattr(self, name) != default:
                rule = f"tiling: {name} must be left out where no thread multiplies by itself"
                raise refused(matmul, f"{rule}, got {getattr(self, name)}; use mma=fma")
        if isinstance(matmul, ScaledMatmulOp):
            check_scaled_tile(matmul, tile, scaled_mma_of(matmul, target), target, self.swap)
        elif isinstance(matmul, WeightMatmulOp):
            check_weight_tile(matmul, tile, target, self.swap)
        else:
            check_tile(matmul, tile, target, self.swap)
        grid = self._grid(matmul, target)
        warps = prod(grid) if grid else target.mma_warps(*tile[:2])
        assert warps is not None  # check_tile has asked
        return WARP_THREADS * warps

    def _grid(self, matmul: MatmulOp, target: Target) -> tuple[int, int] | None:
        """The grid of warps that share a tile, with mma.sync; refused for other MMAs."""
        if target.mma.issuer != WARP:
            if self.warps is not None:
                got = f"{target.mma.name}, got warps={self.warps[0]}x{self.warps[1]}"
                raise refused(matmul, f"tiling: warps share no tile of {got}; drop warps")
            return None
        m, n, _ = self.tile or default_tile(matmul, target)
        if self.warps is None:
            return warp_grid(m, n, target.mma, matmul.products)
        broken = legality.warp_grid(target, m, n, self.warps, matmul.products)
        require(matmul, broken, "leave out warps", "tiling: ")
        return self.warps
