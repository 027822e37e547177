"""Sends operand tiles through a one-slot pipe that the CTA's threads fill by their own copies.

    for %k {                              %ring = pipe.create
      %ta = load %a[%i, %k]               for %k {
      %tb = load %b[%j, %k]        →        %sa, %sb = pipe.acquire %ring
      mma %acc, %ta, %tb }                  copy %a[%i, %k] → %sa …    pipe.commit %ring
                                            %ta, %tb = pipe.wait %ring
                                            mma %acc, %ta, %tb         pipe.release %ring }

It is what `tma-insertion` does, for chips without TMA. (`pipe.tile`, which takes a slot's tiles
apart, is left out of the picture.)
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

    Threads copy with cp.async as much as rows are aligned to at once, up to 16 bytes; rows that are
    aligned to less than 4 bytes are loaded into registers and stored from there.
    """

    name: ClassVar[str] = "copy-insertion"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        pipe_operands(kernel, target_of(module), self.name, lambda _: None)
        log.did("operand tiles copied by threads")
