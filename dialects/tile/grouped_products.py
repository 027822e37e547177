"""Grouped products with scales, and dual grouped products.

    tile.grouped_scaled_matmul     c[r,N] = f(sum_k a[r,k] * sa[r,k/B] * b[g,N,k] * sb[g,N,k/B])
    tile.grouped_blockwise_matmul  c[r,N] = f(sum_q sa[r,q] * sb[g,N,q] * sum_k a[r,k] * b[g,N,k])
    tile.grouped_dual_matmul       c[r,N] = f(sum_k a[r,k] * b[g,N,k], sum_k a[r,k] * b2[g,N,k])
    tile.gathered_dual_matmul      the same of the rows of a that have the numbers rows[r]

for every row r of group g, as `tile.grouped_matmul` cuts them.

    tile.group_atoms               where the atoms of a group's scales begin
    tile.group_scales              the scales of a group's rows, of a view or tensor map

Scales of a that lie row by row, or along its rows, are those of all rows. Atoms are of 128 rows of
one group: each group has ⌈count / 128⌉ of them along its rows, and they follow one another (torch
2.13, `scaled_grouped_mm` with SWIZZLE_32_4_4). There is room for as many as any offsets need.
"""

from typing import Any

from ..dtypes import BLOCKWISE_FORMS
from ..mlir import ext, ir
from ..tile_types import TensorMapType, Tile
from ..verify import refuse
from .blockwise import BlockwiseMatmulOp
from .duals import DualMatmulOp
from .groups import (
    GatheredMatmulOp,
    GroupedMatmulOp,
    GroupRowsOp,
    rows_of_atoms,
    verify_group_rows,
    verify_numbers,
    verify_offsets,
)
from .program import MatmulOp
from .scales import ScaledMatmulOp

BY_ROWS, BY_COLUMNS, BY_ATOMS = "rows", "columns", "atoms"
FORMS = (BY_ROWS, BY_COLUMNS, BY_ATOMS)
"""Whether rows of a view of scales are those of a, or its columns are, or rows of atoms."""


class GroupedScaledMatmulOp(ScaledMatmulOp, name="grouped_scaled_matmul"):
    """`c[r,N] = f(sum_k a[r,k] * a_scales[r,k/B] * b[g,N,k] * b_scales[g,N,k/B])`, r of group g.

    Like `tile.scaled_matmul` of a matrix `a` and a stack `b` with a matrix for each group. Atoms of
    `a_scales` are those of one group after the other.
    """

    offsets: ext.Operand[ir.RankedTensorType]

    def _verify_extents(self) -> bool:
        return verify_group_rows(self)

    def _verify_scales(self, name: str, rows: int, k: int) -> bool:
        shape = list(getattr(self, f"{name}_scales").type.shape)
        if name == "a" and len(shape) >= 5:
            rows = rows_of_atoms(rows, self.offsets.type.shape[0])
        elif name == "a" and shape[0] != rows:
            rule = "a_scales must be those of single rows, since groups begin at any row"
            return refuse(self, f"{rule}, got {shape} for {rows}; repeat them")
        return ScaledMatmulOp._verify_scales(self, name, rows, k)


class GroupedBlockwiseMatmulOp(BlockwiseMatmulOp, name="grouped_blockwise_matmul"):
    """`c[r,N] = f(sum_q a_scales[r,q] * b_scales[g,N,q] * sum_k a[r,k] * b[g,N,k])`, r of group g.

    Like `tile.blockwise_matmul` of a matrix `a` and a stack `b` with a matrix for each group.
    """

    offsets: ext.Operand[ir.RankedTensorType]

    def _verify_extents(self) -> bool:
        if self.a_form.value != BLOCKWISE_FORMS[0]:
            rule = f"a_form must be {BLOCKWISE_FORMS[0]!r}, since groups begin at any row"
            return refuse(self, f"{rule}, got {self.a_form.value!r}; repeat the scales")
        return verify_group_rows(self)


class GroupedDualMatmulOp(DualMatmulOp, name="grouped_dual_matmul"):
    """`c[r,N] = f(sum_k a[r,k] * b[g,N,k], sum_k a[r,k] * b2[g,N,k])` for every row r of group g.

    Like `tile.dual_matmul` of a matrix `a` and two stacks with a matrix for each group.
    """

    offsets: ext.Operand[ir.RankedTensorType]

    def _verify_extents(self) -> bool:
        return verify_group_rows(self)


class GatheredDualMatmulOp(GroupedDualMatmulOp, name="gathered_dual_matmul"):
    """`c[r,N] = f(sum_k a[s,k] * b[g,N,k], sum_k a[s,k] * b2[g,N,k])` with s = rows[r].

    Like `tile.grouped_dual_matmul`, with the rows of `a` that `rows` names for each row r of group
    g.
    """

    rows: ext.Operand[ir.RankedTensorType]

    def _verify_extents(self) -> bool:
        return verify_numbers(self) and verify_group_rows(self)


GATHERED = (GatheredMatmulOp, GatheredDualMatmulOp)
GROUPED_PRODUCTS = (GroupedScaledMatmulOp, GroupedBlockwiseMatmulOp, GroupedDualMatmulOp)


def groups_rows(matmul: MatmulOp) -> bool:
    """Whether rows are grouped, and no K."""
    if isinstance(matmul, GroupedMatmulOp):
        return not matmul.of_depth
    return isinstance(matmul, GROUPED_PRODUCTS)


class GroupAtomsOp(Tile.Operation, name="group_atoms"):
    """`first`: the number of rows of atoms in the groups before `group`, according to `offsets`.

    A group of m rows has ⌈m / 128⌉ rows of atoms.
    """

    group: ext.Operand[ir.IndexType]
    offsets: ext.Operand[ir.MemRefType]
    extent: ir.IntegerAttr
    first: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        if self.extent.value < 1:
            return refuse(self, f"extent must be at least 1, got {self.extent.value}")
        return verify_offsets(self)


class GroupScalesOp(GroupRowsOp, name="group_scales"):
    """`part`: the scales of `count` rows of a group, from line `first` of `whole` on.

    `form` says what a line is: "rows" for a row of a view of scales [rows, blocks], "columns" for a
    column of one [blocks, rows], and "atoms" for a row of atoms. Loads past the last row may return
    what lies there.
    """

    form: ir.StringAttr

    def verify_invariants(self) -> bool:
        if self.form.value not in FORMS:
            return refuse(self, f"form must be one of {FORMS}, got {self.form.value!r}")
        whole: Any = self.whole.type
        if isinstance(whole, TensorMapType) and self.form.value != BY_ATOMS:
            rule = "form must be 'atoms' of a tensor map: boxes begin at multiples of 16 bytes"
            return refuse(self, f"{rule}, got {self.form.value!r}; take it of the view")
        atoms = self.form.value == BY_ATOMS
        if isinstance(whole, ir.MemRefType) and (whole.rank == 5) != atoms:
            rule = "form must be 'atoms' of views of atoms, and of no other"
            return refuse(self, f"{rule}, got {self.form.value!r} of {whole}")
        return GroupRowsOp.verify_invariants(self)
