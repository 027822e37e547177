"""Special registers (PTX ISA §10): their widths and values.

The fixed ones are arrays put into the warp's registers when it starts; the moving ones (clocks)
are read through `mov` at the time of the read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..interface import Warp
from .lanes import LANE_IDS, WARP_SIZE

AXES = ("x", "y", "z")
CYCLES_PER_STEP = 4
"""Clock cycles and nanoseconds that one warp instruction anywhere in the launch advances."""
FIRST_GLOBALTIMER = 1_700_000_000_000_000_000
GRID_WORKSPACE = {"%envreg1", "%envreg2"}
"""The driver passes in them where a cooperative grid's workspace lies, upper half first."""
RESERVED_SHARED = 1024


def _same(value: int, dtype: type = np.uint32) -> np.ndarray:
    return np.full(WARP_SIZE, value, dtype)


def _tid(axis: int) -> Callable[[Warp], np.ndarray]:
    def value(warp: Warp) -> np.ndarray:
        block = warp.launch.block
        thread = LANE_IDS + np.uint32(WARP_SIZE * warp.index)
        for extent in block[:axis]:
            thread = thread // np.uint32(extent)
        return thread % np.uint32(block[axis]) if axis < 2 else thread

    return value


def _triples() -> dict[str, Callable[[Warp], tuple[int, ...]]]:
    return {
        "%ntid": lambda warp: warp.launch.block,
        "%ctaid": lambda warp: warp.cta.index,
        "%nctaid": lambda warp: warp.launch.grid,
        "%clusterid": lambda warp: warp.cta.cluster.index,
        "%nclusterid": lambda warp: tuple(
            grid // cluster
            for grid, cluster in zip(warp.launch.grid, warp.cta.cluster.shape, strict=True)
        ),
        "%cluster_ctaid": lambda warp: tuple(
            index % cluster
            for index, cluster in zip(warp.cta.index, warp.cta.cluster.shape, strict=True)
        ),
        "%cluster_nctaid": lambda warp: warp.cta.cluster.shape,
    }


def _component(triple: Callable, axis: int) -> Callable[[Warp], np.ndarray]:
    return lambda warp: _same(triple(warp)[axis])


def _lane_masks() -> dict[str, Callable[[Warp], np.ndarray]]:
    one = np.uint32(1) << LANE_IDS
    masks = {"eq": one, "lt": one - np.uint32(1), "le": one | (one - np.uint32(1))}
    masks["ge"] = ~masks["lt"]
    masks["gt"] = ~masks["le"]
    return {f"%lanemask_{name}": lambda warp, mask=mask: mask for name, mask in masks.items()}


def _scalars() -> dict[str, Callable[[Warp], np.ndarray]]:
    zero = {
        name: lambda warp: _same(0)
        for name in (
            "%smid",
            "%pm0",
            "%total_smem_hi",
            *(f"%envreg{number}" for number in range(32)),
        )
    }
    return zero | {
        "%envreg1": lambda warp: _same(warp.launch.grid_workspace >> 32),
        "%envreg2": lambda warp: _same(warp.launch.grid_workspace & 0xFFFFFFFF),
        "%laneid": lambda warp: LANE_IDS,
        "%warpid": lambda warp: _same(warp.index),
        "%nwarpid": lambda warp: _same(64),
        "%nsmid": lambda warp: _same(148),
        "%cluster_ctarank": lambda warp: _same(warp.cta.rank),
        "%cluster_nctarank": lambda warp: _same(len(warp.cta.cluster.ctas)),
        "%dynamic_smem_size": lambda warp: _same(warp.launch.dynamic_bytes),
        "%total_smem_size": lambda warp: _same(warp.launch.shared_bytes),
        "%aggr_smem_size": lambda warp: _same(warp.launch.shared_bytes + RESERVED_SHARED),
        "%reserved_smem_offset_begin": lambda warp: _same(0),
        "%reserved_smem_offset_end": lambda warp: _same(RESERVED_SHARED),
        "%reserved_smem_offset_cap": lambda warp: _same(RESERVED_SHARED),
        "%reserved_smem_offset_0": lambda warp: _same(0),
        "%reserved_smem_offset_1": lambda warp: _same(RESERVED_SHARED // 2),
    }


def _fixed() -> dict[str, tuple[int, Callable[[Warp], np.ndarray]]]:
    table = {f"%tid.{name}": (32, _tid(axis)) for axis, name in enumerate(AXES)}
    for register, triple in _triples().items():
        for axis, name in enumerate(AXES):
            table[f"{register}.{name}"] = (32, _component(triple, axis))
    table |= {name: (32, value) for name, value in (_lane_masks() | _scalars()).items()}
    table["%current_graph_exec"] = (64, lambda warp: _same(0, np.uint64))
    table["%gridid"] = (64, lambda warp: _same(1, np.uint64))
    table["%is_explicit_cluster"] = (1, lambda warp: _same(warp.launch.explicit_cluster, np.bool_))
    return table


FIXED = _fixed()
"""name → (bits, function warp → array[32])."""


def _clock(warp: Warp) -> int:
    launch = warp.launch
    launch.clock_reads += 1
    return CYCLES_PER_STEP * (launch.scheduler.steps + launch.clock_reads)


MOVING: dict[str, tuple[int, Callable[[Warp], int]]] = {
    "%clock": (32, lambda warp: _clock(warp) & 0xFFFFFFFF),
    "%clock_hi": (32, lambda warp: _clock(warp) >> 32),
    "%clock64": (64, _clock),
    "%globaltimer": (64, lambda warp: FIRST_GLOBALTIMER + _clock(warp)),
    "%globaltimer_lo": (32, lambda warp: FIRST_GLOBALTIMER + _clock(warp) & 0xFFFFFFFF),
    "%globaltimer_hi": (32, lambda warp: FIRST_GLOBALTIMER + _clock(warp) >> 32),
}
"""name → (bits, function warp → the value now)."""
