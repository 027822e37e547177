"""Limits of each chip that passes check, as data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from ..runtime.ptx_sizes import WARP_THREADS
from .errors import OptionError
from .mma_units import (
    ADDED,
    EACH_THREAD,
    FMA,
    MBARRIER,
    MMA_SYNC,
    MMA_SYNC_SCALED,
    MMA_SYNC_SPLIT,
    MMA_SYNC_WITHOUT_FP8,
    REGISTERS,
    TCGEN05,
    TCGEN05_ADDED,
    TCGEN05_ROUNDED,
    TCGEN05_SPLIT,
    TCGEN05_WIDENED,
    TCGEN05_WIDENED_ADDED,
    TENSOR_MEMORY,
    THREAD,
    WAIT_GROUP,
    WARP,
    WARP_COUNTS,
    WGMMA,
    WGMMA_ADDED,
    WGMMA_SPLIT,
    WGMMA_WIDE,
    WGMMA_WIDENED,
    WGMMA_WIDENED_ADDED,
    WIDENED,
    MmaUnit,
    warp_grid,
)
from .record import record
from .tables import Table

__all__ = [
    "GPUS",
    "TARGETS",
    "WARPGROUP_THREADS",
    "WARPGROUP_WARPS",
    "WARP_THREADS",
    "Target",
    "find_target",
    "targets_with",
]

WARPGROUP_WARPS = 4
WARPGROUP_THREADS = WARPGROUP_WARPS * WARP_THREADS


@record
class Target:
    """Limits of one chip.

    `shared_bytes` is the most dynamic plus static shared memory of one CTA (227 KiB: 228 KiB a
    multiprocessor less 1 KiB that the system keeps). Tensor memory has `tmem_columns` columns of
    128 lanes of 32 bits (PTX ISA, Tensor Memory). `box_max` is the largest extent of a TMA box in
    any dimension, in elements (cuTensorMapEncodeTiled). `multiprocessors` is how many a B200
    (sm_100a), an H200 (sm_90a), an A100 (sm_80), an A40 (sm_86), an L40S (sm_89) or an RTX PRO 6000
    Blackwell (sm_120a) has, a default that the launch may differ from. A cluster has up to
    `cluster_max` CTAs (more than 8 need the launch's leave), one where there are none. A
    multiprocessor has `registers`, which setmaxnreg moves between warpgroups. `gpu` is set where
    schedules are chosen for another GPU of the chip than these (`GPUS`); code is the same.

    `mma` is what the kernel at hand multiplies by: the chip's own, where no pass has taken one of
    `other_mmas` instead (`using`).

    `launch_control` is for cluster launch control and for preferred clusters. With
    `dependent_launch` kernels wait for the grids before them, where nothing else is said.

    `async_agents` is what sm_90 brought, so that the warps of a CTA can do different things: TMA,
    mbarriers that threads sleep at (mbarrier.try_wait) and that count bytes, elect.sync, clusters
    and griddepcontrol (PTX ISA, target notes of each). `narrow_floats` is for the conversion of
    f32 to floats of 8 bits, which sm_89 brought, `small_floats` to those of 6 and 4 bits, which
    sm_100a did (PTX ISA, cvt). `packs_f32` is for FMA of two pairs of f32 at once (PTX ISA, fma).
    With `gathers_rows` TMA copies four rows of any numbers at once (PTX ISA, tile::gather4).
    """

    chip: str
    ptx_feature: str
    mma: MmaUnit
    other_mmas: tuple[MmaUnit, ...] = ()
    launch_control: bool = True
    dependent_launch: bool = False
    async_agents: bool = True
    narrow_floats: bool = True
    small_floats: bool = True
    packs_f32: bool = True
    gathers_rows: bool = False
    shared_bytes: int = 232_448
    multiprocessor_shared_bytes: int = 233_472
    cta_reserved_shared_bytes: int = 1024
    tmem_columns: int = 512
    tmem_columns_min: int = 32
    box_max: int = 256
    multiprocessors: int = 148
    cluster_max: int = 16
    registers: int = 65_536
    tma_alignment_bytes: int = 16
    grid_x_max: int = 2**31 - 1
    grid_y_max: int = 65_535
    gpu: str = ""

    def __hash__(self) -> int:
        """The hash of the chip, which few targets share. Hashing all fields takes longer than a
        look-up."""
        return hash(self.chip)

    @property
    def name(self) -> str:
        """What `find_target` knows it by."""
        return self.gpu or self.chip

    def using(self, name: str) -> Target:
        """The chip as a kernel uses it that multiplies by the MMA called `name`, or is `ADDED`.

        `OptionError` names those that the chip has.
        """
        if name == ADDED:
            if self.added_mma is None:
                rule = "sums: two-level sums are of wgmma and tcgen05.mma"
                raise OptionError(f"{rule}, got {self.chip}; leave them out")
            name = self.added_mma.name
        if name == self.mma.name:
            return self
        return _used(self, name)

    @property
    def has_tensor_memory(self) -> bool:
        """Whether accumulators are in tensor memory, which is allocated and needs its fences."""
        return self.mma.accumulators == TENSOR_MEMORY

    @property
    def one_thread_issues(self) -> bool:
        """Whether one thread issues an MMA; else all threads of its agent do, together."""
        return self.mma.issuer == THREAD

    @property
    def issuers_store(self) -> bool:
        """Whether the agent that issues MMAs is also the epilogue's: its threads alone hold the
        results, so that it stores a tile before it starts the next."""
        return self.mma.accumulators == REGISTERS

    @property
    def awaits_mmas(self) -> bool:
        """Whether the issuers wait for their MMAs, with `tile.await_mma`, before they release what
        these read; else the hardware releases it when they are done, or threads have split it."""
        return self.mma.completion == WAIT_GROUP and self.mma.splits is None

    @property
    def adds_products(self) -> bool:
        """Whether threads add the product of each two tiles to sums in f32 (two-level sums)."""
        return bool(self.mma.products)

    @property
    def added_mma(self) -> MmaUnit | None:
        """The MMA whose products threads add, of operands as they are, if the chip has one."""
        units = (self.mma, *self.other_mmas)
        return next((unit for unit in units if unit.products and not unit.splits), None)

    def widening_mma(self, apart: bool) -> MmaUnit | None:
        """The MMA whose A are weights that threads widen, where the chip has one; `apart` where
        they add the products of groups."""
        units = (self.mma, *self.other_mmas)
        return next((unit for unit in units if unit.name in WIDENED[apart]), None)

    @property
    def uses_tensor_memory(self) -> bool:
        """Whether MMAs leave sums or products in tensor memory, which is allocated."""
        return TENSOR_MEMORY in (self.mma.accumulators, self.mma.products)

    @property
    def pairs_by_default(self) -> bool:
        """Whether a schedule may have pairs that nobody asked for: how fast threads of two CTAs
        add products is not known."""
        return self.mma.pairs and not self.adds_products

    @property
    def adds_from_tensor_memory(self) -> bool:
        """Whether threads add products that lie in tensor memory."""
        return self.mma.products == TENSOR_MEMORY

    @property
    def threads_multiply(self) -> bool:
        """Whether each thread computes elements of its own, by fma."""
        return self.mma.issuer == EACH_THREAD

    @property
    def releases_by_warp(self) -> bool:
        """Whether every warp whose MMAs are done, or that has split the operands, releases them;
        else one commit does."""
        return self.mma.completion != MBARRIER or self.mma.splits is not None

    def mma_warpgroups(self, tile_m: int, tile_n: int) -> int | None:
        """Warpgroups that share the rows of a tile's accumulator, None when too many are needed.

        An accumulator in tensor memory is read by one.
        """
        known, tile = self._warpgroups, (tile_m, tile_n)
        if tile not in known:
            known[tile] = self._warpgroups_of(tile_m, tile_n)
        return known[tile]

    @functools.cached_property
    def _warpgroups(self) -> dict[tuple[int, int], int | None]:
        """By tile: a choice of schedules asks for those of each many times."""
        return {}

    def _warpgroups_of(self, tile_m: int, tile_n: int) -> int | None:
        if self.has_tensor_memory:
            return 1
        if self.mma.issuer == WARP:
            grid = warp_grid(tile_m, tile_n, self.mma)
            return None if grid is None else -(-grid[0] * grid[1] // WARPGROUP_WARPS)
        if self.adds_from_tensor_memory:  # one MMA, of which each has 64 rows
            count = tile_m // self.mma.m[0]
            most = self.mma.accumulator_registers_max[0]
            fits = tile_m in self.mma.m and self.mma.m[0] * tile_n <= most * WARPGROUP_THREADS
            return count if fits else None
        apart = self.mma.m[0] * tile_n // WARPGROUP_THREADS if self.adds_products else 0
        limits, rows, sums = self.mma.accumulator_registers_max, self.mma.m[0], tile_m * tile_n
        counts = range(1, len(limits) + 1)
        for count in reversed(counts) if self.mma.spreads_rows else counts:
            registers = sums // (count * WARPGROUP_THREADS) + apart
            if tile_m % (count * rows) == 0 and registers <= limits[count - 1]:
                return count
        return None

    def accumulator_limits(self) -> str:
        """`accumulator_registers_max` in words."""
        if self.mma.issuer == WARP:
            most = self.mma.accumulator_registers_max[0]
            return f"{most} accumulator registers a thread of {max(WARP_COUNTS)} warps"
        by_count = enumerate(self.mma.accumulator_registers_max, 1)
        limits = ", ".join(f"{most} in {count}" for count, most in by_count)
        return f"the accumulator registers of a thread ({limits} warpgroups)"

    def launch_registers(self, threads: int) -> int:
        """Registers that each of `threads` threads of a CTA starts with when it is alone on a
        multiprocessor: in steps of 8 (PTX ISA, setmaxnreg)."""
        return self.registers // threads // 8 * 8

    def mma_rows(self, tile_m: int) -> int | None:
        """M of the MMAs that cover a tile of `tile_m` rows, or None when none divides it."""
        for m in reversed(self.mma.m):  # the largest
            if tile_m % m == 0:
                return m
        return None

    def accumulator_columns(self, tile_m: int, tile_n: int) -> int:
        """Tensor-memory columns of an f32 accumulator: N for each MMA down the tile."""
        return tile_m // (self.mma_rows(tile_m) or tile_m) * tile_n

    def shared_bytes_to_fit(self, columns: int) -> int:
        """Shared memory of a CTA that lets no more of them share a multiprocessor than can have
        `columns` of its tensor memory at once."""
        ctas = self.tmem_columns // columns + 1
        return self.multiprocessor_shared_bytes // ctas - self.cta_reserved_shared_bytes + 1

    def allocated_columns(self, columns: int) -> int:
        """Columns that tcgen05.alloc must be asked for: a power of two of at least 32."""
        allocated = self.tmem_columns_min
        while allocated < columns:
            allocated *= 2
        return allocated

    def mma_n_step(self, m: int, n: int = 0, integers: bool = False) -> int:
        """The granularity of N of one MMA with `m` rows, in elements.

        Products of integers have a coarser one from N of 32 on (PTX ISA, shapes of wgmma and of
        .kind::i8).
        """
        if self.mma.issuer == WARP:
            return 8
        return 8 if m == 64 and not (integers and n > 32) else 16

    def k_step(self, k_per_mma: int) -> int:
        """The granularity of a tile's K, where `k_per_mma` is the K of one MMA of its type.

        mma.sync also has shapes of half as much (PTX ISA, mma: m16n8k8 and others).
        """
        return k_per_mma // 2 if self.mma.issuer == WARP else k_per_mma

    def mma_warps(self, tile_m: int, tile_n: int) -> int | None:
        """Warps that hold a tile's accumulator, or read it from tensor memory."""
        if self.mma.issuer == WARP:
            grid = warp_grid(tile_m, tile_n, self.mma)
            return None if grid is None else grid[0] * grid[1]
        warpgroups = self.mma_warpgroups(tile_m, tile_n)
        return None if warpgroups is None else WARPGROUP_WARPS * warpgroups


@functools.lru_cache(64)
def _used(target: Target, name: str) -> Target:
    """With another of its MMAs; always one object, by which a search asks for what is known."""
    units = (target.mma, *target.other_mmas)
    for unit in target.other_mmas:
        if unit.name == name:
            others = tuple(each for each in units if each is not unit)
            return replace(target, mma=unit, other_mmas=others)
    known = ", ".join(unit.name for unit in units)
    raise OptionError(f"mma: {target.chip} has none called {name!r}; use one of {known}")


KIB = 1024


def _before_agents(chip: str, mma: MmaUnit, kib: int, multiprocessors: int) -> Target:
    """A chip without TMA, clusters and dependent launch, with `kib` KiB of shared memory a
    multiprocessor, 1 KiB of which the system keeps (CUDA C++ Programming Guide, "Compute
    Capabilities")."""
    return Target(
        chip,
        "+ptx88",
        mma,
        (*MMA_SYNC_SPLIT, FMA),
        launch_control=False,
        async_agents=False,
        narrow_floats=chip == "sm_89",
        small_floats=False,
        packs_f32=False,
        shared_bytes=(kib - 1) * KIB,
        multiprocessor_shared_bytes=kib * KIB,
        multiprocessors=multiprocessors,
        cluster_max=1,
    )


OWN_TARGETS = {
    target.chip: target
    for target in (
        Target(
            "sm_100a",
            "+ptx88",
            TCGEN05,
            (
                *(TCGEN05_ADDED, TCGEN05_WIDENED, TCGEN05_WIDENED_ADDED),
                *(TCGEN05_SPLIT, TCGEN05_ROUNDED),
                *(MMA_SYNC, *MMA_SYNC_SPLIT, FMA),
            ),
            dependent_launch=True,
            gathers_rows=True,
        ),
        Target(
            "sm_90a",
            "+ptx88",
            WGMMA,
            (
                *(WGMMA_WIDE, WGMMA_ADDED, WGMMA_WIDENED, WGMMA_WIDENED_ADDED, WGMMA_SPLIT),
                *(MMA_SYNC, *MMA_SYNC_SPLIT, FMA),
            ),
            launch_control=False,
            dependent_launch=True,
            small_floats=False,
            packs_f32=False,
            multiprocessors=132,
        ),
        _before_agents("sm_80", MMA_SYNC_WITHOUT_FP8, kib=164, multiprocessors=108),
        _before_agents("sm_86", MMA_SYNC_WITHOUT_FP8, kib=100, multiprocessors=84),
        _before_agents("sm_89", MMA_SYNC, kib=100, multiprocessors=142),
        Target(
            "sm_120a",
            "+ptx88",
            MMA_SYNC_SCALED,
            (*MMA_SYNC_SPLIT, FMA),
            shared_bytes=99 * KIB,
            multiprocessor_shared_bytes=100 * KIB,
            multiprocessors=188,
            cluster_max=8,
        ),
    )
}


def _check_entry(name: str, target: Target) -> None:
    """Passes find a target by its chip, so that another name would stand for another target."""
    if not isinstance(target, Target) or target.chip != name:
        got = getattr(target, "chip", type(target).__name__)
        raise OptionError(
            f"target: TARGETS[{name!r}] must be a Target with chip={name!r}, got {got}"
        )


TARGETS = Table(OWN_TARGETS, _check_entry)

GPUS = {"b200": TARGETS["sm_100a"], "h200": TARGETS["sm_90a"]} | {
    "h100": replace(TARGETS["sm_90a"], gpu="h100")
}
"""GPUs that can be named for a target: kernels are for the chip, schedules for the GPU."""


def targets_with(fact: Callable[[Target], bool]) -> str:
    """The chips of which something is true, for messages: "sm_90a, sm_100a or sm_120a"."""
    *others, last = [chip for chip, target in TARGETS.items() if fact(target)]
    return f"{', '.join(others)} or {last}" if others else last


def find_target(name: str) -> Target:
    """The target of a chip or a GPU called `name`; `OptionError` names the known ones otherwise."""
    gpu = GPUS.get(name)
    found = TARGETS.get(gpu.chip if gpu else name)
    if found is None:
        known = (*TARGETS, *GPUS)
        raise OptionError(f"target: unknown chip {name!r}; use one of {', '.join(known)}")
    if gpu is None or TARGETS.is_own(gpu.chip):
        return gpu or found
    return replace(found, gpu=gpu.gpu or found.gpu)  # of a chip that a user entered anew
