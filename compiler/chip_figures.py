"""Figures of each chip that a schedule's estimate uses; each says where it comes from.

The number of multiprocessors is the target's.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.target import Target


@dataclass(frozen=True)
class Figure:
    """One number about the chip: its value, unit and source; `assumed` when nobody states it."""

    value: float
    unit: str
    source: str
    assumed: bool = False


BLACKWELL = {
    "clock": Figure(
        1.85, "GHz", "what 2.25 PFLOP/s of dense bf16 (NVIDIA B200) means at 8192 FLOP a cycle"
    ),
    "mma_rate": Figure(
        8192,
        "FLOP/cycle",
        "one multiprocessor, an MMA of 128 rows of 16-bit operands; takes the clock above",
        True,
    ),
    "shared_rate": Figure(128, "B/cycle", "CUDA programming guide, 32 banks of 4 bytes"),
    "l2_rate": Figure(64, "B/cycle", "from L2 to one multiprocessor", True),
    "copy_rate": Figure(16, "B/cycle", "threads that copy what TMA can't address", True),
    "l2_size": Figure(126e6, "B", "B200, cudaDeviceProp.l2CacheSize"),
    "dram_rate": Figure(8e6, "B/us", "NVIDIA B200, HBM3e"),
    "tma_latency": Figure(1400, "cycles", "a TMA load until its barrier completes", True),
    "cta_start": Figure(2000, "cycles", "barriers, tensor memory, tensor maps", True),
    "cluster_start": Figure(500, "cycles", "cluster barriers at both ends", True),
    "tmem_rate": Figure(512, "B/cycle", "four warps of tcgen05.ld", True),
    "direct_store_rate": Figure(32, "B/cycle", "stores of 16 or 32 bytes a thread", True),
    "tma_store_rate": Figure(64, "B/cycle", "a TMA store from shared memory", True),
    "step_issue": Figure(0, "cycles", "between two steps: hidden by a role that only issues", True),
    "dram_share": Figure(0, "us/us", "of the shorter of work and DRAM, what is not hidden", True),
    "multicast": Figure(1, "B/B", "of what the peers would load again, what is saved", True),
    "clc_query": Figure(200, "cycles", "reading a cluster launch control response, a tile", True),
}
# What is not here is as above; a chip has no figures for what it does not have.
_BLACKWELL_ONLY = ("tmem_rate", "clc_query")
HOPPER = {name: each for name, each in BLACKWELL.items() if name not in _BLACKWELL_ONLY} | {
    "clock": Figure(
        1.83, "GHz", "what 989 TFLOP/s of dense bf16 (NVIDIA H200) means at 4096 FLOP a cycle"
    ),
    "mma_rate": Figure(
        4096, "FLOP/cycle", "one multiprocessor, 16-bit operands; takes the clock above", True
    ),
    "l2_size": Figure(60e6, "B", "H200, cudaDeviceProp.l2CacheSize"),
    "dram_rate": Figure(3.5e6, "B/us", "an H200: what products of few rows reach, of 4.8e6"),
    "tma_latency": Figure(1000, "cycles", "a TMA load until its barrier completes", True),
    "cta_start": Figure(1500, "cycles", "barriers, tensor maps", True),
    "l2_rate": Figure(
        48, "B/cycle", "an H200, tiles of 64x32 to 128x128: 43 to 55 where all load at once"
    ),
    "direct_store_rate": Figure(
        8, "B/cycle", "an H200: 128x256 tiles of bf16 take 4 to 6 us more than staged ones"
    ),
    "step_issue": Figure(
        90, "cycles", "an H200, 64x64 tiles: what 32 steps of K 128 save over 64 of K 64, a step"
    ),
    "dram_share": Figure(
        0.12, "us/us", "an H200, 16384 cubed: 5% between orders along M and grouped by 8"
    ),
    "multicast": Figure(0, "B/B", "an H200: no tile was faster for it, what arrives is the limit"),
    "copy_rate": Figure(20, "B/cycle", "an H200, cp.async of 8 bytes: rows of 2200 and 8200 bytes"),
    "split_latency": Figure(
        750, "cycles/CTA", "an H200, 64x64 and 64x128 tiles split in 2, 3 and 4: K 4096 and 8192"
    ),
    "split_rate": Figure(32, "B/cycle", "f32 sums through distributed shared memory", True),
    **{
        f"clusters_of_{ctas}": Figure(at_once, "clusters", "H200, cuOccupancyMaxActiveClusters")
        for ctas, at_once in ((2, 66), (3, 39), (4, 30), (8, 15))
    },
    "cluster_start": Figure(1400, "cycles", "an H200, 1024x1024x1024: 0.8 us more with clusters"),
}
FIGURES = {"sm_100a": BLACKWELL, "sm_90a": HOPPER}


def figure(target: Target, name: str) -> float:
    """The value of one of the chip's FIGURES."""
    return FIGURES[target.chip][name].value
