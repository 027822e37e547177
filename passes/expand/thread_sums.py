"""What each thread has of an accumulator where it multiplies by itself, and how it stores that.

tile.store %acc, %c, %i, %j     %row, %column = tile.sums_place %acc
                          →     for each of the thread's rows
                                  %values = tile.sums_row %acc
                                  if row < rows of c
                                    tile.write_row %values, %c, row, %j * N + %column
"""

from __future__ import annotations

from ...dialects.mlir import ir
from ...dialects.sm_types import attribute_of
from ...dialects.thread_tiles import ThreadTile
from ...dialects.tile import KernelOp, MmaOp, StoreOp
from ...dialects.tile_sums import HasSumsOp, SumsPlaceOp, SumsRowOp, ViewMmaOp
from ...dialects.tile_types import AccumulatorType, element_bytes
from ..build import as_i32, less, when
from .rows import rows_of_store, write_row

MMAS = MmaOp | ViewMmaOp


def share_of(kernel: KernelOp, acc: ir.Value[AccumulatorType]) -> ThreadTile:
    """How the threads of a kernel share an accumulator, in the groups that its MMAs read."""
    share = ThreadTile.of(*acc.type.shape, kernel.threads.value)
    assert share is not None  # check_shares lets no other tile through
    users = (use.owner.opview for use in acc.uses)
    mma = next(op for op in users if isinstance(op, MMAS))
    if isinstance(mma, ViewMmaOp):
        return share
    a, b = mma.a.type.layout, mma.b.type.layout
    return share.grouped(a.major, b.major, element_bytes(mma.a.type.element))


def expand_shares(kernel: KernelOp, store: StoreOp) -> None:
    """Write out one store: each of a thread's rows by itself, where the view has it."""
    share, (m, n) = share_of(kernel, store.acc), store.acc.type.shape
    with ir.InsertionPoint(store), store.location:
        height = rows_of_store(kernel, store)
        has = HasSumsOp(acc=store.acc).has if share.threads < kernel.threads.value else None
        place = SumsPlaceOp(acc=store.acc)
        row, column = as_i32(store.i) * m + place.row, as_i32(store.j) * n + place.column
        with when(has):
            for number, start in enumerate(share.row_starts()):
                at, every = row + start, share.columns * share.n_group
                values = ir.VectorType.get([share.n], store.acc.type.element)
                read = SumsRowOp(acc=store.acc, number=attribute_of(number), values=values).values
                with when(None if height is None else less(at, height)):
                    write_row(store, read, at, column, share.n_group, every)
    store.operation.erase()
