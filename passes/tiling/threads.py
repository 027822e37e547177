"""Checks of `tiling` on products on CUDA cores: MMA, threads and limits."""

from __future__ import annotations

from ...dialects import legality, weight_legality
from ...dialects.dtypes import FMA, THREAD_DTYPES, DType, operand_dtype, split_by
from ...dialects.mlir import ir
from ...dialects.target import WARP_THREADS, Target
from ...dialects.tile import MatmulOp
from ...dialects.tile.blockwise import BlockwiseMatmulOp
from ...dialects.tile.scales import ScaledMatmulOp
from ...dialects.tile.sums import LANES
from ...dialects.tile.weights import WeightMatmulOp
from ...dialects.verify import logical_shape
from ..base import MMA_ATTRIBUTE, parse_positive, refused, require, target_of, use_mma
from ..weights import choose_weight_mma
from .blockwise import choose_blockwise_mma

OPERANDS = ("tiles", "whole", "global")
GLOBAL_OPERANDS = OPERANDS[2]
THREADS_MAX, THREADS_BY_DEFAULT = 1024, 256


def parse_threads(text: str) -> int | None:
    """`auto`, or a number of whole warps."""
    if text == "auto":
        return None
    threads = parse_positive(text)
    if threads % WARP_THREADS or not WARP_THREADS <= threads <= THREADS_MAX:
        raise ValueError(text)
    return threads


def parse_lanes(text: str) -> int:
    """1, or how many threads may share an element."""
    lanes = parse_positive(text)
    if lanes not in (1, *LANES):
        raise ValueError(text)
    return lanes


def choose_mma(module: ir.Module, matmul: MatmulOp, name: str) -> Target:
    """Let the module's kernel multiply as the option says, or as the module and its types do."""
    named = target_of(module).mma.name if MMA_ATTRIBUTE in module.operation.attributes else None
    if isinstance(matmul, BlockwiseMatmulOp):
        return choose_blockwise_mma(module, matmul, named if name == "auto" else name)
    if isinstance(matmul, WeightMatmulOp):
        return choose_weight_mma(module, matmul, named if name == "auto" else name)
    if name == "auto":
        scaled = isinstance(matmul, ScaledMatmulOp)
        if not scaled and named is None and not _takes(matmul, target_of(module).mma.name):
            use_mma(module, FMA)
    elif named not in (None, name) and not _splits_alike(named, name):
        rule = f"tiling: the module asks for {MMA_ATTRIBUTE} {named!r}, got mma={name}"
        raise refused(matmul, f"{rule}; take one of them out")
    else:
        use_mma(module, name)
    target = target_of(module)
    require(matmul, weight_legality.has_weights(target), "leave mma out", "tiling: ")
    return target


def _splits_alike(one: str, other: str) -> bool:
    """Whether two MMAs split f32 into the same terms: a module that names one asks for no other
    numbers than the other one's."""
    return split_by(one) is not None and split_by(one) == split_by(other)


def _takes(matmul: MatmulOp, mma: str) -> bool:
    return operand_dtype(str(matmul.a.type.element_type), mma) is not None


def thread_tile(
    matmul: MatmulOp, tile: tuple[int, int, int], operands: str
) -> tuple[int, int, int]:
    """The tile, whose K is all of K where threads keep whole operands."""
    m, n, k = tile
    if operands != "whole":
        return tile
    _, whole = logical_shape(matmul.a.type, matmul.a_major.value)
    return m, n, -(-whole // k) * k


def threads_for(tile: tuple[int, int, int], lanes: int = 1) -> int:
    """One for each element of C, or so many lanes for each of a row, up to what a block has by
    default, in whole warps."""
    elements = tile[0] * tile[1] if lanes == 1 else tile[1] * lanes
    return min(THREADS_BY_DEFAULT, -(-elements // WARP_THREADS) * WARP_THREADS)


def check_thread_tile(
    matmul: MatmulOp, tile: tuple[int, int, int], threads: int, operands: str, target: Target
) -> None:
    """Refuse a tile that the registers of the threads or the shared memory of a CTA can't hold."""
    dtype = _dtype_of(matmul)
    require(
        matmul,
        legality.thread_registers(target, tile, threads, dtype.accumulator_bytes),
        "make the tile smaller or take more threads",
    )
    if operands != GLOBAL_OPERANDS:
        cure = "use operands=tiles" if operands == "whole" else "make the tile smaller"
        require(matmul, legality.tile_memory(target, tile, dtype.bytes), cure)


def check_lanes(
    matmul: MatmulOp,
    tile: tuple[int, int, int],
    threads: int,
    option: tuple[str, int],
    target: Target,
) -> None:
    """Refuse lanes that share elements of what they don't read from memory themselves, and tiles
    that their registers can't hold. `option`: what they read, and how many share an element."""
    operands, lanes = option
    if operands != GLOBAL_OPERANDS:
        rule = f"tiling: lanes share elements of operands={GLOBAL_OPERANDS}, got {operands}"
        raise refused(matmul, f"{rule}; take those, or leave lanes out")
    broken = legality.lanes(target, tile, threads, lanes, matmul.products, _dtype_of(matmul))
    require(matmul, broken, "take another tile, or leave lanes out", "tiling: ")


def _dtype_of(matmul: MatmulOp) -> DType:
    """The type that threads multiply."""
    element = str(matmul.a.type.element_type)
    dtype = operand_dtype(element, FMA)
    if dtype is None:
        takes = ", ".join(THREAD_DTYPES)
        raise refused(matmul, f"tiling: mma=fma multiplies {takes}, got {element}; use another mma")
    return dtype
