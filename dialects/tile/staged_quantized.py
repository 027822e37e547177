"""The staged store of a C with block scales.

tile.staged_quantized  the same as `tile.store_quantized`, elements through shared memory by TMA
"""

from ..mlir import ext, ir
from ..ragged_maps import plain_box
from ..store_legality import staged_blocks
from ..tile_types import TensorMapType, bits_of
from ..verify import refuse, tile_of_c, verify_epilogue
from .program import StagedStoreOp
from .quantized import verify_format


class StagedQuantizedOp(StagedStoreOp, name="staged_quantized"):
    """`view[i*M + r, j*N + c] = f(acc[r,c]) / scale` through shared memory by TMA, and the scales.

    A piece holds the bytes of the elements, and `to` is a map of the bytes of C. Threads store the
    scales, as in `tile.store_quantized`. The region returns f32, which becomes an `element`.
    """

    scales: ext.Operand[ir.MemRefType]
    block: ir.IntegerAttr
    rounding: ir.StringAttr
    element: ir.TypeAttr

    def verify_invariants(self) -> bool:
        form = verify_format(self, self.element.value, self.scales.type.element_type)
        if form is None:
            return False
        smem, bits = self.staging.type.tiles[0], bits_of(self.element.value)
        layout, (m, row_bytes) = smem.layout, stored_tile(self)
        if bits_of(smem.element) != 8 or layout.mn != m or row_bytes % layout.k:
            rule = f"staging must hold {m} rows of a divisor of {row_bytes} bytes"
            return refuse(self, f"{rule}, got {smem}")
        broken = staged_blocks(layout.k, bits, form.block)
        if broken or self.write.value != "rows":
            return refuse(self, broken or f"write must be 'rows', got {self.write.value!r}")
        box = plain_box(self.to.type) if isinstance(self.to.type, TensorMapType) else self.to.type
        if box != [layout.k, m]:
            return refuse(self, f"must store by a map with boxes of {[layout.k, m]}, got {box}")
        f32 = ir.F32Type.get()
        return verify_epilogue(self, self.epilogue, self.acc.type.element, f32)


def stored_tile(store: StagedStoreOp) -> tuple[int, int]:
    """Rows of a tile of C, and what TMA stores of one: columns, of block-scaled elements bytes."""
    m, n = tile_of_c(store)
    in_bytes = isinstance(store, StagedQuantizedOp)
    return m, n * bits_of(store.element.value) // 8 if in_bytes else n
