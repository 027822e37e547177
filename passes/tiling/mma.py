"""Checks that a tile fits the MMA of the target."""

from __future__ import annotations

from ...dialects import legality, split_legality
from ...dialects.dtypes import DType, operand_dtype
from ...dialects.layout import UNIT_BYTES
from ...dialects.target import Target
from ...dialects.tile import MatmulOp
from ...dialects.tile.duals import DualMatmulOp
from ..base import refused, require


def check_tile(
    matmul: MatmulOp, tile: tuple[int, int, int], target: Target, swap: bool = False
) -> None:
    """Refuse a tile that no MMA shape, TMA box or memory of `target` can hold.

    With `swap` its columns are rows of A.
    """
    m, n, k = tile
    dtype = operand_type(matmul, target)
    broken = legality.operand_type(target, dtype.name)
    require(matmul, broken, "compile for one of them, or convert A and B", "tiling: ")
    require(matmul, legality.tile_rows(target, m))
    require(matmul, legality.tile_columns(target, m, n, dtype.is_integer))
    require(matmul, legality.tile_depth(target, k, dtype.k_per_mma, dtype.name))
    require(matmul, legality.added_depth(target, k), "tile K by 128", "tiling: ")
    require(matmul, split_legality.split_depth(target, k), "tile K so", "tiling: ")
    _check_majors(matmul, dtype, target)
    if isinstance(matmul, DualMatmulOp):
        broken = legality.dual_tile(target, m, n, dtype.is_integer)
        require(matmul, broken, "take another tile", "tiling: ")
    _check_rows(matmul, n // matmul.products, dtype, swap)
    _check_memories(matmul, tile, dtype, target)


def operand_type(matmul: MatmulOp, target: Target) -> DType:
    """A's type; B's has the same size and MMA."""
    element = str(matmul.a.type.element_type)
    dtype = operand_dtype(element, target.mma.name)
    if dtype is None:
        rule = f"{target.mma.name} of {target.chip} multiplies no {element}"
        raise refused(matmul, f"tiling: {rule}; use mma=fma")
    return dtype


def _check_majors(matmul: MatmulOp, dtype: DType, target: Target) -> None:
    """Refuse operands that the target's MMA can't read as they lie."""
    if dtype.bytes in target.mma.mn_major_bytes:
        return
    second = [("B", matmul.b2_major.value)] if isinstance(matmul, DualMatmulOp) else []
    for name, major in (("A", matmul.a_major.value), ("B", matmul.b_major.value), *second):
        if major == "mn":
            raise refused(
                matmul,
                f"{name} must have K contiguous for {dtype.name} on {target.chip}, got "
                f"{'M' if name == 'A' else 'N'}; transpose it before the kernel",
            )


def _check_rows(matmul: MatmulOp, n: int, dtype: DType, swap: bool) -> None:
    """A tile N that is contiguous must be whole 16-byte units."""
    unit = UNIT_BYTES // dtype.bytes
    majors = {(matmul.a_major if swap else matmul.b_major).value}
    if isinstance(matmul, DualMatmulOp):
        majors.add(matmul.b2_major.value)
    if "mn" in majors and n % unit:
        operand = "M-major A" if swap else "N-major B"
        raise refused(matmul, f"tile N must be a multiple of {unit} for {operand}, got {n}")


def _check_memories(
    matmul: MatmulOp, tile: tuple[int, int, int], dtype: DType, target: Target
) -> None:
    m, n, _ = tile
    require(matmul, legality.tile_memory(target, tile, dtype.bytes), "make the tile smaller")
    require(matmul, legality.accumulator_registers(target, m, n), "make the tile smaller")
    require(matmul, legality.accumulator_columns(target, m, n), "make the tile smaller")
