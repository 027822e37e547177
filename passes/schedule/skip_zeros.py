"""Skips the MMA instructions of the last K step that lie past the end of K.

    for %k {                                    for %k {
      mma %acc, %a, %b                     →      %last = %k == K / BK
    }                                             short_mma %acc, %a, %b, %last {depth} }

Loads fill tiles with zeros past the end of K, and one MMA instruction multiplies 32 bytes along K.
For K = 592 and tiles of 64 the last step has 16 elements: one instruction instead of four.

This applies to wgmma and tcgen05.mma, also for two products and for pairs. MMAs with block scales
always skip what lies past the end of K, since there are no scales.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...dialects import short_legality
from ...dialects.mlir import arith, ir
from ...dialects.record import record
from ...dialects.tile import MMAS, KernelOp, RotatedStepOp
from ...dialects.tile.short import SHORT_MMAS, SHORT_OF
from ...dialects.tile_types import integer
from ..base import PassLog, refused, require, target_of, the_kernel, walk
from ..clone import constant_of, index_constant
from ..short_steps import LastStep, last_step, step_of


@record
class SkipZeros:
    """`tile.mma` → `tile.short_mma`, if MMA instructions of the last step multiply only zeros."""

    name: ClassVar[str] = "skip-zeros"
    makes: ClassVar[tuple[str, ...]] = tuple(each.OPERATION_NAME for each in SHORT_MMAS)

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        mmas = walk(kernel, MMAS)
        require(kernel, short_legality.short_steps(target_of(module)), CURE, f"{self.name}: ")
        for step in walk(kernel, RotatedStepOp):
            rule = "skip-zeros: the step that comes last must be that with the end of K"
            raise refused(step, f"{rule}, got steps that begin elsewhere; drop k-rotation")
        depths = {_shorten(kernel, mma) for mma in mmas}
        log.did(f"{', '.join(map(str, sorted(depths)))} elements in the last step along K")


CURE = "leave skip-zeros out"


def _shorten(kernel: KernelOp, mma: Any) -> int:
    """Replace an MMA that may be of the last step; how much of K that has."""
    if isinstance(mma, SHORT_MMAS):
        raise refused(mma, f"skip-zeros: MMAs leave zeros out already; {CURE}")
    found, number = last_step(kernel, mma), step_of(mma)
    short = SHORT_OF.get(type(mma))
    if found is None or number is None or short is None:
        rule = "skip-zeros: must be tile.mma, tile.dual_mma or a pair's in one loop along all of K"
        raise refused(mma, f"{rule}, got another; {CURE}")
    k = mma.a.type.layout.k
    if found.depth >= k:
        rule = "skip-zeros: the last step along K must have MMA instructions of zeros alone"
        raise refused(mma, f"{rule}, got {found.depth} elements of {k}; {CURE}")
    known = constant_of(number)
    if known is None or known == found.number:
        _replace(mma, short, number, found)
    return found.depth


def _replace(mma: Any, short: Any, number: ir.Value, found: LastStep) -> None:
    fields = {field.name: getattr(mma, field.name) for field in type(mma)._fields}
    with ir.InsertionPoint(mma), mma.location:
        depth = integer(found.depth)
        last = arith.cmpi(arith.CmpIPredicate.eq, number, index_constant(found.number))
        short(**fields, last=last, depth=depth)
    mma.operation.erase()
