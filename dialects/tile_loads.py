"""Ops of `tile` that bring operand tiles into shared memory: by threads or by TMA."""

from .mlir import ext, ir
from .tile_types import SmemType, TensorMapType, Tile
from .verify import refuse, verify_copy, verify_tensor_map


class LoadOp(Tile.Operation, name="load"):
    """`t[r,k] = view[i*R + r, j*K + k]`, zero outside the view; all threads copy."""

    view: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    tile: ext.Result[SmemType]

    def verify_invariants(self) -> bool:
        return verify_copy(self, self.view.type, self.tile.type)


class CopyOp(Tile.Operation, name="copy"):
    """`t[r,k] = view[i*R + r, j*K + k]` into a slot's tile, zero outside the view.

    All threads of the producer copy; `pipe.commit` publishes what they wrote. Once loops are
    written out, `whole` names those of i and j whose tiles all lie inside the view.
    """

    view: ext.Operand[ir.MemRefType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_copy(self, self.view.type, self.tile.type)


class TensorMapOp(Tile.Operation, name="tensor_map"):
    """`map`: how TMA sees `view`; becomes a kernel parameter."""

    view: ext.Operand[ir.MemRefType]
    map: ext.Result[TensorMapType]

    def verify_invariants(self) -> bool:
        return verify_tensor_map(self, self.map.type)


class TmaLoadOp(Tile.Operation, name="tma_load"):
    """`t[r,k] = view[i*R + r, j*K + k]` by TMA, zero outside the view; one thread issues.

    A view with fewer rows than a K-major tile may have boxes of its own rows only.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        layout, map_type = self.tile.type.layout, self.map.type
        if layout.swizzle != map_type.swizzle:
            return refuse(
                self,
                "tile and tensor map must have one swizzle, got "
                f"{layout.swizzle} and {map_type.swizzle}",
            )
        rank2, rank3 = [layout.span, layout.rows], [layout.span, layout.rows, layout.chunks]
        rows = [layout.span, map_type.dims[1]]
        clipped = layout.major == "k" and map_type.dims[1] < layout.rows
        own_rows = clipped and map_type.box in (rows, [*rows, 1][: 3 if layout.chunks == 1 else 2])
        if map_type.box not in (rank2, rank3) and not own_rows:
            return refuse(self, f"the box must be {rank2} or {rank3}, got {map_type.box}")
        return True

    @property
    def missing_rows(self) -> int:
        """Rows of the tile that the view does not have and the box leaves out: they are zero."""
        return self.tile.type.layout.rows - self.map.type.box[1]


class TmaMulticastOp(Tile.Operation, name="tma_multicast"):
    """`t[r,k] = view[i*R + r, j*K + k]` in `parts` CTAs of the cluster at once.

    The CTAs in a line along `axis` ("m" or "n"; with pairs, every second along M) need the same
    tile: each loads its part of the rows and TMA writes it to all of them.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    axis: ir.StringAttr
    parts: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        layout, parts = self.tile.type.layout, self.parts.value
        if self.axis.value not in ("m", "n"):
            return refuse(self, f"axis must be 'm' or 'n', got {self.axis.value!r}")
        if parts < 2 or layout.rows % (8 * parts):
            return refuse(self, f"{layout.rows} rows must be {parts} parts of whole 8 rows")
        box = [layout.span, layout.rows // parts]
        if self.map.type.box != box:
            return refuse(self, f"the box must be {box}, got {self.map.type.box}")
        return True
