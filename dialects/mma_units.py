"""The MMA units of the chips, as data: how a CTA multiplies tiles."""

from __future__ import annotations

from dataclasses import replace

from ..runtime.ptx_sizes import WARP_THREADS
from .dtypes import (
    DTYPES,
    SCALED_KINDS,
    SPLIT_MMAS,
    TENSOR_DTYPES,
    THREAD_DTYPES,
    TILE_SPLITS,
)
from .record import record
from .terms import MOVED_UP, PLAIN, ROUNDED, TermForm

TENSOR_MEMORY, REGISTERS = "tensor memory", "registers"
THREAD, WARP, WARPGROUP = "thread", "warp", "warpgroup"
EACH_THREAD = "each thread"
MBARRIER, WAIT_GROUP, ISSUED = "mbarrier", "wait_group", "issued"
PRODUCT_SLOTS = 2  # in tensor memory: threads add one product while MMAs make the next


@record
class MmaUnit:
    """How a CTA multiplies tiles: one of the MMAs of a chip.

    `name` is the instruction (PTX ISA), with a suffix if threads do a part of the work.
    `accumulators` says where it keeps results: in tensor memory, or in registers of the threads
    that issue it. `issuer` says whether one thread issues it, all of a warp, all of a warpgroup, or
    each thread for its own elements. `completion` says how completion is signalled: by an mbarrier
    (tcgen05.commit), by a wait of the issuers (wgmma.wait_group), or not at all if it is complete
    when `issued`. `descriptor_version` is the value of bits 46 to 48 of shared-memory descriptors;
    without descriptors, threads load operands into registers (`fragments`). With `pairs` two CTAs
    can share an MMA (.cta_group::2), whose N is a multiple of `pair_n_step`, so that each half is a
    multiple of 16, or of half of it on request (`legality.pair_step`).
    `operands` are the types that it multiplies, `scaled_kinds` its kinds with block scales
    (`dialects.dtypes.SCALED_KINDS`).

    `m` lists the values of M of one MMA of one CTA in ascending order; N ranges from
    `Target.mma_n_step` to `n_max` in that step (PTX ISA, shapes of .kind::f16; for M=128 only
    multiples of 16 are used, as in all published kernels). `mn_major_bytes` are the sizes of
    elements that it can read MN-major from the layouts of `dialects.layout` (PTX ISA, wgmma: 16
    bits only; tcgen05: 32 bits need a special swizzle). If accumulators are in registers, a thread
    of one, two or three warpgroups may hold up to `accumulator_registers_max` of them, so that
    ptxas does not spill; a thread of warps of mma.sync up to the first number. With `spreads_rows`
    as many warpgroups share a tile as its rows allow, else as few as have enough registers.

    If threads accumulate the product of every two tiles in f32, `products` says where the MMA
    leaves it. With `splits` threads split both f32 tiles into terms, which it multiplies; the form
    says which of them they write to shared memory (`dialects.terms`).
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
    fragments: bool = False
    spreads_rows: bool = False
    operands: tuple[str, ...] = TENSOR_DTYPES
    scaled_kinds: tuple[str, ...] = ()
    products: str = ""
    splits: TermForm | None = None

    @property
    def threads_load(self) -> bool:
        """Whether threads load operands from shared memory themselves; else MMAs alone read it."""
        widens = any(self.name in names for names in WIDENED.values())
        return widens or self.completion == ISSUED or self.splits is not None


TCGEN05 = MmaUnit(
    "tcgen05.mma",
    TENSOR_MEMORY,
    THREAD,
    MBARRIER,
    m=(64, 128),
    mn_major_bytes=(1, 2),
    descriptor_version=0b001,
    pairs=True,
    scaled_kinds=SCALED_KINDS,
)
WGMMA = MmaUnit("wgmma.mma_async", REGISTERS, WARPGROUP, WAIT_GROUP, m=(64,), mn_major_bytes=(2,))
# The same where one warpgroup holds sums of up to 128x192: of two that take turns each has 240
# registers a thread, and ptxas spilled none in kernels with epilogues.
WGMMA_WIDE = replace(WGMMA, name="wgmma.mma_async+wide", accumulator_registers_max=(192, 160, 96))
# The same where each product of tiles is summed apart, and threads add it to sums in f32: a tensor
# core has 14 bits for sums of 8-bit floats. Threads hold both, of the product 64 rows at a time;
# ptxas spilled from 112 of each on, with two warpgroups, where a load warp keeps 40 registers a
# thread and not 24 (`held_registers`), and with scales beside them.
FLOAT_DTYPES = tuple(name for name in TENSOR_DTYPES if not DTYPES[name].is_integer)
WGMMA_ADDED = replace(
    WGMMA,
    name="wgmma.mma_async+fma",
    accumulator_registers_max=(128, 224, 128),
    operands=FLOAT_DTYPES,
    products=REGISTERS,
)
# Both where A are narrow weights, which threads of one warpgroup widen into registers while MMAs of
# the others run, and so leave three warpgroups fewer for sums.
WGMMA_WIDENED = replace(WGMMA, name="wgmma.mma_async+cvt", spreads_rows=True)
WGMMA_WIDENED_ADDED = replace(
    WGMMA_ADDED,
    name="wgmma.mma_async+cvt+fma",
    accumulator_registers_max=(128, 192, 96),
    spreads_rows=True,
)
# WGMMA_ADDED with the product in tensor memory, twice: threads add one while MMAs make the next.
# A warpgroup holds 64 rows of the sums (PTX ISA, tcgen05.ld: each warp reads a quarter of lanes).
TCGEN05_ADDED = replace(
    TCGEN05,
    name="tcgen05.mma+fma",
    accumulators=REGISTERS,
    issuer=WARPGROUP,
    accumulator_registers_max=(128, 128),
    scaled_kinds=(),
    operands=FLOAT_DTYPES,
    products=TENSOR_MEMORY,
)
# Both where A are narrow weights: threads widen them into tensor memory, from where MMAs take them.
# Without groups MMAs add to one product, which threads read at last.
TCGEN05_WIDENED = replace(TCGEN05_ADDED, name="tcgen05.mma+cvt", pairs=False)
TCGEN05_WIDENED_ADDED = replace(TCGEN05_WIDENED, name="tcgen05.mma+cvt+fma")
# PTX ISA, mma: m16n8k4 to m16n8k32 by type, fp8 from sm_89 on. Of MN-major operands ldmatrix.trans
# loads those of 16 bits, plain loads the others.
MMA_SYNC = MmaUnit(
    "mma.sync", REGISTERS, WARP, ISSUED, m=(16,), mn_major_bytes=(1, 2, 4), fragments=True
)
MMA_SYNC_WITHOUT_FP8 = replace(
    MMA_SYNC, operands=tuple(name for name in TENSOR_DTYPES if name not in ("e4m3", "e5m2"))
)
# sm_120a has block scales too, which lie in registers (PTX ISA, block scaling for mma.sync).
MMA_SYNC_SCALED = replace(MMA_SYNC, scaled_kinds=SCALED_KINDS)
# f32 as the sums of two tf32, whose products are three MMAs, or of three bf16, of nine (sm_80 has
# both types). Fragments and their parts take registers that sums leave.
MMA_SYNC_SPLIT = tuple(
    replace(MMA_SYNC, name=mma, operands=(name,), accumulator_registers_max=(64,))
    for name, mma in SPLIT_MMAS.items()
)
# The same of whole tiles: threads split them, and add the products, as those of TCGEN05_ADDED and
# WGMMA_ADDED. Of wgmma they hold the product under way and A's terms, too: ptxas spilled from 192
# columns of two warpgroups on, and from 64 of three.
TCGEN05_SPLIT = replace(
    TCGEN05_ADDED,
    name="tcgen05.mma+bf16x9",
    pairs=False,
    mn_major_bytes=(4,),
    operands=("bf16x9",),
    splits=MOVED_UP,
)
TCGEN05_ROUNDED = replace(
    TCGEN05_SPLIT, name="tcgen05.mma+3xtf32", operands=("3xtf32",), splits=ROUNDED
)
WGMMA_SPLIT = replace(
    WGMMA_ADDED,
    name="wgmma.mma_async+bf16x9",
    mn_major_bytes=(4,),
    accumulator_registers_max=(128, 128, 48),
    operands=("bf16x9",),
    spreads_rows=True,
    splits=PLAIN,
)
# Plain fma of each thread (PTX ISA, fma): any shape, any layout.
FMA = MmaUnit(
    "fma",
    REGISTERS,
    EACH_THREAD,
    ISSUED,
    m=(1,),
    mn_major_bytes=(1, 2, 4, 8),
    accumulator_registers_max=(128,),
    operands=THREAD_DTYPES,
)
ADDED = "+fma"
"""The MMA of a chip whose products threads add, whichever it is."""
WIDENED = {
    False: (TCGEN05_WIDENED.name, WGMMA_WIDENED.name),
    True: (TCGEN05_WIDENED_ADDED.name, WGMMA_WIDENED_ADDED.name),
}
"""MMAs whose A are weights that threads widen, by whether threads add the products of groups."""
MMAS = (
    TCGEN05.name, TCGEN05_ADDED.name, TCGEN05_WIDENED.name, TCGEN05_WIDENED_ADDED.name,
    WGMMA.name, WGMMA_WIDE.name, WGMMA_ADDED.name, WGMMA_WIDENED.name, WGMMA_WIDENED_ADDED.name,
    MMA_SYNC.name, *SPLIT_MMAS.values(), *TILE_SPLITS, FMA.name,
)  # fmt: skip


WARP_COUNTS = (1, 2, 4, 8, 16)
WARP_N = 8  # of one mma.sync


def warp_grid(m: int, n: int, mma: MmaUnit, products: int = 1) -> tuple[int, int] | None:
    """(warps along M, along N) that share a tile, None where none can.

    Four where the tile has as many MMAs, more where the accumulators need it. Of the same number
    those that read the least: a warp reads its rows of A and its columns of B; of these, squares.
    Of several products, whose sums lie side by side, each warp has as many columns of each.
    """
    for warps in (4, 8, 16, 2, 1):
        grids = [(along_m, warps // along_m) for along_m in WARP_COUNTS if along_m <= warps]
        fitting = [grid for grid in grids if fits_warps(m, n, grid, mma, products)]
        if fitting:
            return min(fitting, key=lambda grid: (m // grid[0] + n // grid[1], n // grid[1] % 16))
    return None


def fits_warps(m: int, n: int, grid: tuple[int, int], mma: MmaUnit, products: int = 1) -> bool:
    """Whether each warp of a grid has whole MMAs, and registers for their sums."""
    whole = m % (grid[0] * mma.m[0]) == 0 and n % (grid[1] * products * WARP_N) == 0
    registers = m * n // (grid[0] * grid[1] * WARP_THREADS)
    return whole and registers <= mma.accumulator_registers_max[0]
