"""Stores of accumulators on CUDA cores.

tile.store %acc, %c, %i, %j     %row, %column = tile.sums_place %acc
                          →     for each of the thread's rows
                                  %values = tile.sums_row %acc
                                  if row < rows of c
                                    tile.write_row %values, %c, row, %j * N + %column
"""

from __future__ import annotations

from ...dialects.mlir import ir
from ...dialects.sm.types import attribute_of
from ...dialects.tile import KernelOp, StoreOp
from ...dialects.tile.sums import HasSumsOp, SumsPlaceOp, SumsRowOp
from ...dialects.verify import tile_of_c
from ..build import as_i32, less, when
from ..thread_shares import share_of
from .rows import rows_of_store, write_row


def expand_shares(kernel: KernelOp, store: StoreOp) -> None:
    """Write out one store: each of a thread's rows by itself, where the view has it."""
    share, (m, n) = share_of(kernel, store.acc), tile_of_c(store)
    with ir.InsertionPoint(store), store.location:
        height = rows_of_store(kernel, store)
        every = share.threads == kernel.threads.value and share.lanes == 1
        has = None if every else HasSumsOp(acc=store.acc).has
        place = SumsPlaceOp(acc=store.acc)
        row, column = as_i32(store.i) * m + place.row, as_i32(store.j) * n + place.column
        with when(has):
            for number, start in enumerate(share.row_starts()):
                at, apart = row + start, share.columns * share.n_group
                values = ir.VectorType.get([share.n], store.acc.type.element)
                read = SumsRowOp(acc=store.acc, number=attribute_of(number), values=values).values
                with when(None if height is None else less(at, height)):
                    write_row(store, read, at, column, share.n_group, apart)
    store.operation.erase()
