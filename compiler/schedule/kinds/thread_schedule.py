"""The schedule of kernels on CUDA cores: f32 in full precision, and f64.

The threads of a CTA hold a tile of C in registers. The largest tile with a CTA for every
multiprocessor is chosen, because it reads the least of A and B per product. For f32 the largest one
has 128 threads with 168 registers, three of which fit a multiprocessor. One of 256 threads and
128x128 occupies a multiprocessor alone and was slower on an H200 (docs/appendix/mma-sync.md).
"""

from __future__ import annotations

from dataclasses import replace

from ....dialects.dtypes import DTYPES, FMA
from ....dialects.record import record
from ....dialects.target import Target
from ...spec import MatmulSpec
from .lane_schedule import LaneSchedule, lane_schedule, lanes_take

STAGES = 3  # of 16 KB or less: one is multiplied, two are on their way


@record
class ThreadSchedule:
    """A tile of M×N×K elements and the threads that share it."""

    tile: tuple[int, int, int]
    threads: int
    stages: int = STAGES

    def label(self) -> str:
        """In words."""
        return f"{'x'.join(map(str, self.tile))} by fma of {self.threads} threads"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        passes = f"tiling{{tile={tile} mma={FMA} threads={self.threads}}},copy-insertion"
        return f"{passes},swizzle-selection,pipelining{{stages={self.stages}}}"


# The largest first, by bytes of a sum. 64 registers of sums leave room for operands, 8 warps hide
# the latency of what they read.
SCHEDULES = {
    4: (
        ThreadSchedule((128, 64, 16), 128),
        ThreadSchedule((64, 64, 16), 128),
        ThreadSchedule((32, 32, 32), 64),
    ),
    8: (
        ThreadSchedule((128, 64, 16), 256),
        ThreadSchedule((64, 64, 16), 128),
        ThreadSchedule((32, 32, 16), 64),
    ),
}


def is_by_threads(spec: MatmulSpec) -> bool:
    """Whether no tensor core takes the operands."""
    return not spec.is_scaled and DTYPES[spec.a_dtype].operand_kind == FMA


def candidates(spec: MatmulSpec) -> list[tuple[ThreadSchedule, int]]:
    """Each schedule, the largest tile first, with its number of CTAs for the matmul."""
    matrices = max(1, spec.batch)
    return [
        (
            _of_depth(each, spec.k),
            matrices * -(-spec.m // each.tile[0]) * -(-spec.n // each.tile[1]),
        )
        for each in SCHEDULES[DTYPES[spec.a_dtype].accumulator_bytes]
    ]


def _of_depth(schedule: ThreadSchedule, k: int) -> ThreadSchedule:
    """The schedule, with half the K of a tile if one tile would hold all of K.

    Without a loop ptxas reads the operands of the whole step ahead, and spills; for half of it it
    has registers.
    """
    m, n, depth = schedule.tile
    return schedule if k > depth else replace(schedule, tile=(m, n, depth // 2))


def thread_schedule(spec: MatmulSpec, target: Target) -> ThreadSchedule | LaneSchedule:
    """Lanes for a row or two of f32; otherwise the largest tile with a CTA for every
    multiprocessor, or the smallest tile."""
    if lanes_take(spec):
        return lane_schedule(spec, target)
    found = candidates(spec)
    enough = [each for each, ctas in found if ctas >= target.multiprocessors]
    return enough[0] if enough else found[-1][0]
