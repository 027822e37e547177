"""The schedule of a product with block scales.

A tile is 128 bytes along K, so that rows have the widest swizzle. Pairs share an MMA of 256 rows
where there are two CTAs along M. Two accumulators of 192 columns leave tensor memory for the scales
of a K step, of 256 they do not (docs/block-scales.md); fewer columns give small products more CTAs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.dtypes import DTYPES, SCALE_DTYPES, SCALED_FORMATS, ScaledMma, scaled_mma
from ...dialects.errors import CompileError
from ...dialects.target import Target
from ..spec import MatmulSpec

ROWS, ROW_BYTES = 128, 128
COLUMNS = (192, 128, 64, 32)


@dataclass(frozen=True)
class ScaledSchedule:
    """A tile of M×N×K elements of one CTA, and whether two CTAs share an MMA."""

    tile: tuple[int, int, int]
    pair: bool

    def label(self) -> str:
        """In words."""
        return f"{'x'.join(map(str, self.tile))}{', 2-CTA MMAs' if self.pair else ''}"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        shape = "shape=2x1 pair=true" if self.pair else "shape=1x1"
        return (
            f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,epilogue-staging,"
            f"clustering{{{shape}}},pipelining,warp-specialization,persistence"
        )


def mma_of_spec(spec: MatmulSpec) -> ScaledMma:
    """The kind of MMA that multiplies the operands of a spec."""
    a, b = (SCALED_FORMATS[dtype] for dtype in (spec.a_dtype, spec.b_dtype))
    found = scaled_mma(DTYPES[a.element], DTYPES[b.element], DTYPES[a.scale], a.block)
    assert found is not None and a.scale in SCALE_DTYPES  # the spec has asked
    return found


def scaled_schedule(spec: MatmulSpec, target: Target) -> ScaledSchedule:
    """The widest tile that gives every multiprocessor a CTA, else the narrowest."""
    mma = mma_of_spec(spec)
    if mma.kind not in target.mma.scaled_kinds:
        raise CompileError(f"schedule: {target.chip} multiplies no operands with block scales")
    depth = ROW_BYTES * 2 if mma.packed else ROW_BYTES
    pair = spec.m > ROWS
    tiles_m = -(-spec.m // ROWS)
    counts = {n: tiles_m * -(-spec.n // n) for n in COLUMNS}
    enough = [n for n, ctas in counts.items() if ctas >= target.multiprocessors]
    return ScaledSchedule((ROWS, enough[0] if enough else COLUMNS[-1], depth), pair)
