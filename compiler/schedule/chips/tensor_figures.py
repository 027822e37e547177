"""Figures of chips with tensor memory, from published measurements of a B200.

SEMI: SemiAnalysis, Blackwell microbenchmarks. MICRO: two collections of B200 microbenchmarks, by
Modal and by others. TRACE: the traces inside kernels v5 and v6 that gau-nernst's learn-cuda keeps,
in steps of 32 ns, taken at about 1.9 GHz. SIGLIP: a public write-up of a kernel for that model.
Two figures that no one measured alone are read from published times of whole kernels, and say so.
"""

from __future__ import annotations

from dataclasses import fields

from ....dialects.record import record
from .figure import Figure

SEMI, MICRO, TRACE = "SemiAnalysis", "B200 microbenchmarks", "traces of v5 and v6"
KERNELS = "read from published times of kernels"


@record
class Power:
    """The power that the tensor cores would draw at the highest clock without a pause, as a share
    of the limit.

    `random`: operands of random bits, in runs of some milliseconds; `quiet`: operands of which few
    bits change, such as an identity matrix; `sustained`: random bits for seconds.
    """

    random: Figure
    quiet: Figure
    sustained: Figure


@record
class TensorFigures:
    """The figures of kernels with tcgen05.mma, in addition to `ChipFigures`."""

    mma_batch: Figure
    mma_latency: Figure
    pair_latency: Figure
    peer_signal: Figure
    load_queue: Figure
    latencies_at: Figure
    step_turn: Figure
    row_rate: Figure
    cold_fill: Figure
    cta_turnover: Figure
    read_rate: Figure
    launch: Figure
    threads: Figure
    idle_power: Figure
    power: Power

    def table(self) -> dict[str, Figure]:
        """All figures by name."""
        every = {each.name: getattr(self, each.name) for each in fields(self)}
        power = {f"power_{name}": each for name, each in vars(every.pop("power")).items()}
        return every | power


B200 = TensorFigures(
    mma_batch=Figure(12, "cycles", f"{SEMI}: MMAs up to a commit, beyond their own cycles"),
    mma_latency=Figure(
        136, "cycles", f"{SEMI}: the last of one CTA's MMAs until its mbarrier is seen"
    ),
    pair_latency=Figure(170, "cycles", f"{SEMI}: the same of a pair's"),
    peer_signal=Figure(
        181, "cycles", "arXiv 2501.12084: shared memory of a peer (Hopper); agrees with TRACE"
    ),
    load_queue=Figure(
        490, "cycles", f"{TRACE}: loads of a ring take 0.16 and 0.45 us more than the quickest"
    ),
    latencies_at=Figure(1.9, "GHz", f"{TRACE}: by cycles of MMAs and the clock's steps of 32 ns"),
    step_turn=Figure(
        109, "cycles", f"{MICRO}: an mbarrier's arrival and wait, 88.5, and 128 threads meet, 20.7"
    ),
    row_rate=Figure(1, "rows/cycle", f"{KERNELS}: boxes 16 and 128 bytes wide, v1a and v2a"),
    cold_fill=Figure(1200, "cycles", f"{TRACE}: first loads 1.47 us, later 0.83 us"),
    cta_turnover=Figure(2490, "cycles", f"{TRACE}: 1.31 us from a CTA's end to the next's start"),
    read_rate=Figure(
        8, "elements/cycle", "SIGLIP: 128x256 sums to shared memory in 4100 to 4760 cycles"
    ),
    launch=Figure(2, "us", "nvbench, a kernel that does nothing, in a row of them"),
    threads=Figure(2048, "threads", "CUDA programming guide: resident on a multiprocessor"),
    idle_power=Figure(
        0.3,
        "W/W",
        "beside tensor cores, of the limit: an idle clock of v2a, a loaded one of v6",
        True,
    ),
    power=Power(
        random=Figure(1.95, "W/W", "1.51 to 1.60 GHz of v5 and v6: traces and times, short runs"),
        quiet=Figure(1.1, "W/W", "1.83 to 1.9 GHz of kernels 6 to 8: their times and operands"),
        sustained=Figure(3.3, "W/W", "1.29 to 1.38 GHz: learn-cuda's README, 4096x4096x4096"),
    ),
)
