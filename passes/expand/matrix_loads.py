"""Pieces of other operands, read as the matrices that stmatrix stores.

    tile.apply_epilogue {                  %four = tile.load_matrices %piece, row, column
      tile.staged_element %piece }    →    %pair = llvm.shufflevector %four
    … of four pairs                        tile.apply_epilogue { tile.held_element %pair }  …

One ldmatrix of a lane's address takes the place of four loads, each of an address of its own.
"""

from __future__ import annotations

from typing import Any

from ...dialects import llvm
from ...dialects.mlir import ir
from ...dialects.tile.ahead import StagedElementOp
from ...dialects.tile.pieces import PAIR, ApplyEpilogueOp, LoadMatricesOp
from ...dialects.verify import can_write_matrices
from .reads import hold


def load_matrices(applied: list[ApplyEpilogueOp], at: dict[str, Any]) -> None:
    """What the epilogues of two or four pairs read, whose matrices begin at a row and a column."""
    reads: dict[Any, dict[int, list[StagedElementOp]]] = {}
    for number, op in enumerate(applied):
        for element in op.epilogue.blocks[0].operations:
            if isinstance(element, StagedElementOp) and _comes_as_matrices(element):
                reads.setdefault(element.piece, {}).setdefault(number, []).append(element)
    for piece, elements in reads.items():
        type_, pair = (
            ir.VectorType.get([count], piece.type.element) for count in (PAIR * len(applied), PAIR)
        )
        with ir.InsertionPoint(applied[0]), applied[0].location:
            values = LoadMatricesOp(piece=piece, values=type_, **at).values
            pairs = [
                llvm.shufflevector(pair, values, values, list(range(first, first + PAIR)))
                for first in range(0, PAIR * len(applied), PAIR)
            ]
        for number, found in elements.items():
            for element in found:
                hold(element, pairs[number])


def _comes_as_matrices(element: StagedElementOp) -> bool:
    return element.axes.value == "mn" and can_write_matrices(element.piece.type.layout)
