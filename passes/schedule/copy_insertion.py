"""Loads operand tiles through a one-slot pipe that the CTA's threads fill.

    for %k {                              %ring = pipe.create
      %ta = load %a[%i, %k]               for %k {
      %tb = load %b[%j, %k]        →        %sa, %sb = pipe.acquire %ring
      mma %acc, %ta, %tb }                  copy %a[%i, %k] → %sa …    pipe.commit %ring
                                            %ta, %tb = pipe.wait %ring
                                            mma %acc, %ta, %tb         pipe.release %ring }

This is the counterpart of `tma-insertion` for chips without TMA. (`pipe.tile`, which extracts the
tiles of a slot, is omitted above.)
"""

from __future__ import annotations

from typing import ClassVar

from ...dialects.mlir import ir
from ...dialects.record import record
from ..base import PassLog, target_of, the_kernel
from .tma_insertion import pipe_operands


@record
class CopyInsertion:
    """`tile.load` → `tile.copy` into a one-slot pipe.

    Threads copy with cp.async, up to 16 bytes at once as the alignment of rows allows. Rows aligned
    to less than 4 bytes are loaded into registers and stored from there.
    """

    name: ClassVar[str] = "copy-insertion"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        pipe_operands(kernel, target_of(module), self.name, lambda _: None)
        log.did("operand tiles copied by threads")
