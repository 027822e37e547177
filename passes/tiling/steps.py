"""One K step of a tile: the tiles of A and B to load, and their MMA."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dialects.layout import LINEAR, TileLayout
from ...dialects.mlir import arith, ir
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import LoadOp, MatmulOp, MmaOp
from ...dialects.tile.blockwise import BlockwiseMatmulOp
from ...dialects.tile.duals import DualMatmulOp, DualMmaOp
from ...dialects.tile.scales import ScaledMatmulOp
from ...dialects.tile.sums import DualLaneMmaOp, LaneMmaOp, ViewMmaOp
from ...dialects.tile.weights import WeightMatmulOp
from ...dialects.tile_types import SmemType, element_bytes
from ..duals import B2
from ..weights import weight_mma, weight_scales, weights_per_byte
from .blockwise import blockwise_mma
from .operands import Operands, block_scales
from .scaled import multiply, scaled_mma_of
from .threads import GLOBAL_OPERANDS


class TileChoice(NamedTuple):
    """How a product is cut: `tile` is M, N and K of a tile in elements, as the MMA sees them.

    reads: "tiles", or what the threads of an fma read in their place. swap: the MMA's A is B.
    lanes: threads that share an element's K.
    """

    matmul: MatmulOp
    tile: tuple[int, int, int]
    reads: str
    target: Target
    swap: bool
    lanes: int = 1


class Step(NamedTuple):
    """A step of the loop along K: its `number`, that of the `first`, and what it adds to."""

    acc: ir.Value
    number: ir.Value
    first: ir.Value

    def sums(self) -> dict[str, ir.Value]:
        """The accumulator, and whether it has sums by now."""
        later = arith.cmpi(arith.CmpIPredicate.ne, self.number, self.first)
        return {"acc": self.acc, "accumulate": later}


def emit_step(tiling: TileChoice, operands: Operands, step: Step) -> None:
    """The loads and the MMA of a step."""
    if isinstance(tiling.matmul, ScaledMatmulOp):
        _scaled_step(tiling.matmul, tiling, operands, step)
    elif tiling.reads == GLOBAL_OPERANDS:
        _view_step(tiling, operands, step)
    else:
        _tile_step(tiling, operands, step)


def _view_step(tiling: TileChoice, operands: Operands, step: Step) -> None:
    """Threads read the views; of two products the second B's, too."""
    views = {"a": operands.a, "b": operands.b, "depth": attribute_of(tiling.tile[2])}
    where = step.sums() | _places(operands, step) | views
    if tiling.lanes == 1:
        ViewMmaOp(**where)
    elif B2 in operands.beside:
        DualLaneMmaOp(**where, b2=operands.beside[B2], lanes=attribute_of(tiling.lanes))
    else:
        LaneMmaOp(**where, lanes=attribute_of(tiling.lanes))


def _scaled_step(
    matmul: ScaledMatmulOp, tiling: TileChoice, operands: Operands, step: Step
) -> None:
    """The MMA takes the scales of blocks itself."""
    scales, sides = [operands.beside[name] for name in block_scales(matmul)], list(matmul.sides)
    if tiling.swap:
        scales.reverse()
        sides.reverse()
    where = step.sums() | _places(operands, step)
    views = [operands.a, operands.b, *scales]
    multiply(matmul, sides, views, tiling.tile, scaled_mma_of(matmul, tiling.target), where)


def _tile_step(tiling: TileChoice, operands: Operands, step: Step) -> None:
    """A tile of A, of B and, of two products, of the second B."""
    matmul, (m, n, k), beside = tiling.matmul, tiling.tile, operands.beside
    layout = LINEAR if tiling.target.threads_multiply else "none"
    rows, packed = n // matmul.products, [1, weights_per_byte(matmul)]
    majors = [matmul.a_major.value, matmul.b_major.value]
    if tiling.swap:
        packed.reverse()
        majors.reverse()
    shapes = (m, k // packed[0]), (rows, k // packed[1])
    row, column, number = operands.row, operands.column, step.number
    tiles = {
        "a": _load(operands.a, majors[0], shapes[0], row, number, layout),
        "b": _load(operands.b, majors[1], shapes[1], column, number, layout),
    }
    if isinstance(matmul, DualMatmulOp):
        major = matmul.b2_major.value
        tiles["b2"] = _load(beside[B2], major, (rows, k), column, number, layout)
    where = step.sums() | tiles
    if isinstance(matmul, BlockwiseMatmulOp):
        scales = [beside[name] for name in block_scales(matmul)]
        blockwise_mma(matmul, scales, where | _places(operands, step), tiling.swap)
    elif isinstance(matmul, WeightMatmulOp):
        scales = [beside[name] for name in weight_scales(matmul)]
        of_weights = {"j": row if tiling.swap else column, "k": number}
        weight_mma(matmul, scales, where | of_weights, tiling.swap)
    else:
        (DualMmaOp if "b2" in tiles else MmaOp)(**where)


def _places(operands: Operands, step: Step) -> dict[str, ir.Value]:
    return {"i": operands.row, "j": operands.column, "k": step.number}


def _load(
    view: ir.Value[ir.MemRefType], major: str, shape: tuple[int, int], i: Any, j: Any, swizzle: str
) -> ir.Value:
    element = view.type.element_type
    layout = TileLayout(*shape, element_bytes(element), major, swizzle)
    return LoadOp(tile=SmemType.of(layout, element), view=view, i=i, j=j).tile
