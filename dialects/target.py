"""What a chip can hold and run: limits that passes check, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .errors import OptionError

TENSOR_MEMORY, REGISTERS = "tensor memory", "registers"
THREAD, WARPGROUP = "thread", "warpgroup"
MBARRIER, WAIT_GROUP = "mbarrier", "wait_group"
WARP_THREADS, WARPGROUP_WARPS = 32, 4
WARPGROUP_THREADS = WARPGROUP_WARPS * WARP_THREADS


@dataclass(frozen=True)
class MmaUnit:
    """How a CTA multiplies tiles: one of the MMAs of a chip.

    `name` is the instruction (PTX ISA). `accumulators` says where it keeps results, in tensor
    memory or in registers of the threads that issue it; `issuer` whether one thread issues it or
    all of a warpgroup, and `completion` what tells that it is done: an mbarrier (tcgen05.commit)
    or, to the issuers alone, a wait for a group of them (wgmma.wait_group). `descriptor_version` is
    what shared-memory descriptors carry in bits 46 to 48. With `pairs` two CTAs can share an MMA
    (.cta_group::2), whose N is a multiple of `pair_n_step`, so that each half is one of 16.

    `m` lists the M of one MMA of one CTA; its N goes from `Target.mma_n_step` to `n_max` in that
    step (PTX ISA, shapes of .kind::f16; 16 for M=128 is the subset that every published kernel
    stays in). `mn_major_bytes` are the sizes of elements that it reads MN-major from the layouts of
    `dialects.layout` (PTX ISA, wgmma: 16 bits only; tcgen05: 32 bits need a swizzle of their own).
    Where accumulators are in registers, a thread of one, two or three warpgroups may hold up to
    `accumulator_registers_max` of them, so that ptxas has enough for the rest without spills.
    """

    name: str
    accumulators: str
    issuer: str
    completion: str
    m: tuple[int, ...]
    mn_major_bytes: tuple[int, ...]
    n_max: int = 256
    descriptor_version: int = 0
    pairs: bool = False
    pair_n_step: int = 32
    accumulator_registers_max: tuple[int, ...] = (128, 160, 96)


TCGEN05 = MmaUnit(
    "tcgen05.mma",
    TENSOR_MEMORY,
    THREAD,
    MBARRIER,
    m=(64, 128),
    mn_major_bytes=(1, 2),
    descriptor_version=0b001,
    pairs=True,
)
WGMMA = MmaUnit("wgmma.mma_async", REGISTERS, WARPGROUP, WAIT_GROUP, m=(64,), mn_major_bytes=(2,))
MMAS = (TCGEN05.name, WGMMA.name)


@dataclass(frozen=True)
class Target:
    """Limits of one chip.

    `shared_bytes` is the most dynamic plus static shared memory of one CTA (227 KiB: 228 KiB a
    multiprocessor less 1 KiB that the system keeps). Tensor memory has `tmem_columns` columns of
    128 lanes of 32 bits (PTX ISA, Tensor Memory). `box_max` is the largest extent of a TMA box in
    any dimension, in elements (cuTensorMapEncodeTiled). `multiprocessors` is how many a B200
    (sm_100a) or an H200 (sm_90a) has, a default that the launch may differ from. A cluster has up
    to `cluster_max` CTAs (more than 8 need the launch's leave). A multiprocessor has `registers`,
    which setmaxnreg moves between warpgroups.

    `mma` is what the kernel at hand multiplies by: the chip's own, where no pass has taken one of
    `other_mmas` instead (`using`).

    With `cluster_waits_acquire` a wait for a barrier of a cluster acquires what other CTAs wrote
    before they arrived. Without, only the async proxy moves data between CTAs, which the barrier's
    completion orders by itself; acquiring the cluster's writes would drop L1 at every wait.
    `launch_control` is for cluster launch control. With `dependent_launch` kernels wait for the
    grids before them by themselves, where nothing else is said.
    """

    chip: str
    ptx_feature: str
    mma: MmaUnit
    other_mmas: tuple[MmaUnit, ...] = ()
    cluster_waits_acquire: bool = True
    launch_control: bool = True
    dependent_launch: bool = False
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

    def using(self, name: str) -> Target:
        """The chip as a kernel uses it that multiplies by the MMA called `name`.

        `OptionError` names those that the chip has.
        """
        if name == self.mma.name:
            return self
        units = (self.mma, *self.other_mmas)
        for unit in self.other_mmas:
            if unit.name == name:
                others = tuple(each for each in units if each is not unit)
                return replace(self, mma=unit, other_mmas=others)
        known = ", ".join(unit.name for unit in units)
        raise OptionError(f"mma: {self.chip} has none called {name!r}; use one of {known}")

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
        these read; else the hardware releases it when they are done."""
        return self.mma.completion == WAIT_GROUP

    @property
    def releases_by_warp(self) -> bool:
        """Whether every warp that awaited MMAs releases their operands; else one commit does."""
        return self.awaits_mmas

    def mma_warpgroups(self, tile_m: int, tile_n: int) -> int | None:
        """Warpgroups that share the rows of a tile's accumulator, None when too many are needed.

        An accumulator in tensor memory is read by one.
        """
        if self.has_tensor_memory:
            return 1
        for count, most in enumerate(self.mma.accumulator_registers_max, 1):
            registers = tile_m * tile_n // (count * WARPGROUP_THREADS)
            whole = tile_m % (count * self.mma.m[0]) == 0
            if whole and registers <= most:
                return count
        return None

    def accumulator_limits(self) -> str:
        """`accumulator_registers_max` in words."""
        by_count = enumerate(self.mma.accumulator_registers_max, 1)
        limits = ", ".join(f"{most} in {count}" for count, most in by_count)
        return f"the accumulator registers of a thread ({limits} warpgroups)"

    def launch_registers(self, threads: int) -> int:
        """Registers that each of `threads` threads of a CTA starts with when it is alone on a
        multiprocessor: in steps of 8 (PTX ISA, setmaxnreg)."""
        return self.registers // threads // 8 * 8

    def mma_rows(self, tile_m: int) -> int | None:
        """M of the MMAs that cover a tile of `tile_m` rows, or None when none divides it."""
        return max((m for m in self.mma.m if tile_m % m == 0), default=None)

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
        return 8 if m == 64 and not (integers and n > 32) else 16


TARGETS = {
    target.chip: target
    for target in (
        Target("sm_100a", "+ptx88", TCGEN05),
        Target(
            "sm_90a",
            "+ptx88",
            WGMMA,
            cluster_waits_acquire=False,
            launch_control=False,
            dependent_launch=True,
            multiprocessors=132,
        ),
    )
}


def find_target(name: str) -> Target:
    """The target called `name`; `OptionError` names the known ones otherwise."""
    if name not in TARGETS:
        raise OptionError(f"target: unknown chip {name!r}; use one of {', '.join(TARGETS)}")
    return TARGETS[name]
