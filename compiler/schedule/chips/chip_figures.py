"""The figures of each chip for the estimate of a schedule, with sources.

The number of multiprocessors is the target's.
"""

from __future__ import annotations

from dataclasses import fields, replace

from ....dialects.errors import OptionError
from ....dialects.target import Target
from .figure import Figure
from .figure_sets import UNUSED, ChipFigures, PartFigures, SplitFigures
from .tensor_figures import B200, MICRO, SEMI, TRACE, TensorFigures

PARTS = "fitted to an H200's 492 kernels in parts over the grid, within 8 % (root mean square)"
H200 = "as an H200's, where it was measured"
BLACKWELL = ChipFigures(
    clock=Figure(1.965, "GHz", f"{SEMI}: the highest of a B200"),
    mma_rate=Figure(8192, "FLOP/cycle", f"{SEMI}: 8153, an MMA of 128 rows of 16-bit operands"),
    shared_rate=Figure(128, "B/cycle", f"{SEMI}: an MMA of 128x64 takes 48 cycles to read both"),
    l2_rate=Figure(90, "B/cycle", f"{MICRO}: 13,300 for 148; public notes: 80 to 95 for one alone"),
    copy_rate=Figure(2, "copies/cycle", f"by threads, of 4 or 8 bytes: {H200}", True),
    shift_rate=Figure(
        11, "B/cycle", f"by threads, rows of an odd number of elements: {H200}", True
    ),
    l2_total_rate=Figure(13300, "B/cycle", f"{MICRO}: 21.2 TB/s at 1.587 GHz"),
    copy_step=Figure(350, "cycles", f"until copies are there and handed over: {H200}", True),
    l2_size=Figure(132.6e6, "B", f"{SEMI}: 126.5 MiB"),
    written=Figure(1, "B/B", "C lies in L2 until it is written back", True),
    dram_rate=Figure(7.2e6, "B/us", f"{SEMI}: TMA loads of 64 KiB on each multiprocessor"),
    tma_latency=Figure(
        800, "cycles", f"{MICRO}: 375 from L2, 1130 from DRAM; {TRACE}: from 790 on under load"
    ),
    cta_start=Figure(
        730, "cycles", f"{TRACE}: barriers and tensor memory, 0.58 us with a cluster's"
    ),
    cluster_start=Figure(362, "cycles", f"{TRACE}: two signals between peers"),
    tmem_rate=Figure(512, "B/cycle", "128 lanes of 32 bits", True),
    direct_store_rate=Figure(102, "B/cycle", f"{TRACE}: 128x256 read and stored in 2.5 us"),
    tma_store_rate=Figure(82, "B/cycle", "SIGLIP: 64 KiB in 640 to 1070 cycles"),
    epilogue_rate=Figure(25, "instructions/cycle", f"of what an epilogue computes: {H200}", True),
    packed=Figure(
        0.67, "-", "PTX of an element beside sm_90a's: GELU 10.0 of 14.5, SiLU 4.5 of 6.5"
    ),
    beside_rate=Figure(6.5, "B/cycle", f"a residual read by threads: {H200}", True),
    dram_share=Figure(0.23, "us/us", f"{H200}, and an H100's 0.227", True),
    piece_latency=Figure(1130, "cycles", f"{MICRO}: a load by TMA from DRAM"),
    vector_latency=Figure(293, "cycles", f"{MICRO}: a load from L2; from L1 39"),
    clc_query=Figure(1650, "cycles", "a public write-up: an attempt and its wait; no tile is less"),
    clusters_at_once={
        ctas: Figure(at_once, "clusters", f"{SEMI}: of 4, 8 and 16 CTAs on one B200")
        for ctas, at_once in ((4, 33), (8, 15), (16, 7))
    },
    parts=PartFigures(
        write=Figure(10.8, "B/cycle", H200, True),
        read=Figure(187, "B/cycle", H200, True),
        meet=Figure(4350, "cycles", H200, True),
    ),
    tensor=B200,
)
SHEET = "dense 16-bit operands with f32 sums, data sheet"
# Chips that multiply by mma.sync: nothing was measured.
AMPERE = ChipFigures(
    clock=Figure(1.41, "GHz", "NVIDIA A100 white paper, boost clock"),
    mma_rate=Figure(2048, "FLOP/cycle", f"312 TFLOP/s at 108 x 1.41 GHz (NVIDIA A100): {SHEET}"),
    shared_rate=Figure(128, "B/cycle", "CUDA programming guide, 32 banks of 4 bytes"),
    l2_rate=Figure(47, "B/cycle", "5120 bytes a cycle of L2, of 108 (NVIDIA A100 white paper)"),
    copy_rate=Figure(4, "copies/cycle", "cp.async of 4, 8 or 16 bytes", True),
    shift_rate=Figure(11, "B/cycle", "by threads, rows of an odd number of elements", True),
    l2_total_rate=Figure(5120, "B/cycle", "NVIDIA A100 white paper"),
    l2_size=Figure(40e6, "B", "NVIDIA A100 white paper"),
    dram_rate=Figure(1.555e6, "B/us", "NVIDIA A100 of 40 GB, HBM2"),
    tma_latency=Figure(600, "cycles", "a load from L2 until it is there", True),
    cta_start=Figure(500, "cycles", "until the first load", True),
    cluster_start=Figure(500, "cycles", "cluster barriers at both ends", True),
    direct_store_rate=Figure(32, "B/cycle", "stores of 16 or 32 bytes a thread", True),
    tma_store_rate=Figure(64, "B/cycle", "what threads stage and store", True),
    epilogue_rate=Figure(25, "instructions/cycle", "of what an epilogue computes", True),
)
FITTED = "fitted to an H200's times (benchmarks/estimate/fit_estimate.py)"
# What is not here is as above.
HOPPER = replace(
    AMPERE,
    clock=Figure(1.98, "GHz", "an H200 under its power limit, nvidia-smi"),
    mma_rate=Figure(
        4096, "FLOP/cycle", "16-bit operands: 989 TFLOP/s (NVIDIA H200) at 132 x 1.83 GHz"
    ),
    l2_size=Figure(60e6, "B", "H200, cudaDeviceProp.l2CacheSize"),
    dram_rate=Figure(4.5e6, "B/us", "an H200: 4.3e6 in a copy from device to device, of 4.8e6"),
    tma_latency=Figure(2050, "cycles", f"{FITTED}: rings of 2 to 12 stages"),
    cta_start=Figure(490, "cycles", f"{FITTED}: several CTAs after another, or one persistent"),
    l2_rate=Figure(89.6, "B/cycle", f"{FITTED}; ncu calls 127 the port's peak"),
    l2_total_rate=Figure(6070, "B/cycle", f"{FITTED}: of requests, whoever asks together"),
    answered_together=Figure(0.446, "B/B", f"{FITTED}: clusters of 1x2, and as many CTAs alone"),
    unaligned_line=Figure(
        3.6, "cycles", f"{FITTED}: K 2040 takes 4.9 times the requests of K 2048, says ncu"
    ),
    narrow_row=Figure(
        1.4, "cycles", "H200: MN-major tiles of 48, 80, 96 and 160 columns, K of 2048 to 8192"
    ),
    second_line=Figure(0.0275, "cycles", f"{FITTED}: clusters of 1 to 8, K of 1000 to 1024"),
    outside_share=Figure(0.128, "cycles", f"{FITTED}: last tiles that hang over M or N"),
    shared_twice=Figure(
        1000, "cycles", f"{FITTED}: clusters of 1x4, 1x8, 2x2 and 2x4; once, not in each step"
    ),
    shared_row=Figure(0.745, "cycles", f"{FITTED}: few rows, K of 400 to 2400, clusters of 1 to 8"),
    first_wave=Figure(1, "us/us", f"{FITTED}: orders along M and N"),
    asked_again=Figure(
        0.6, "B/B", f"{FITTED}: the same tiles alone and in clusters, orders along M and N"
    ),
    few_columns=Figure(
        0.06,
        "B/B",
        "an H100: 28 shapes of 1 to 16 rows, exchanged and not; two on an H200 say more",
    ),
    copy_step=Figure(30, "cycles", "an H200: 128x96 to 128x128 by K 64, K 1004 to 2500"),
    second_share=Figure(0.33, "cycle/cycle", f"{FITTED}: tiles of 64x64 to 256x160"),
    direct_store_rate=Figure(2.5, "B/cycle", f"{FITTED}: staged stores and those by threads"),
    epilogue_rate=Figure(
        25, "instructions/cycle", f"{FITTED}: silu(gate) * up, two consumers together and in turns"
    ),
    second_sum=Figure(
        0.6, "cycles", "an H200: silu(gate) * up by 128x256 and in turns, K 4096 and 8192"
    ),
    code_bytes=Figure(
        2**17, "B", "an H100: kernels of 103 kB are as fast as their instructions, of 177 kB not"
    ),
    code_rate=Figure(
        3.8, "B/cycle", "an H100: gradients of GELU in turns, tiles of 128x128 and 64x256"
    ),
    beside_rate=Figure(
        6.5, "B/cycle", "an H200: a residual read by threads, 5 to 9 in four shapes"
    ),
    piece_latency=Figure(1700, "cycles", "an H200: residuals of 3 shapes in tiles of 128x256"),
    vector_latency=Figure(250, "cycles", "a bias read by threads, once a piece", True),
    staged_piece=Figure(43, "cycles", f"{FITTED}: pieces of 16, 32 and 64 columns"),
    tma_store_rate=Figure(47, "B/cycle", f"{FITTED}: a TMA store from shared memory"),
    store_request=Figure(4.5, "cycles", f"{FITTED}: tiles of 16 to 64 columns, 64 and 128 rows"),
    step_least=Figure(270, "cycles", f"{FITTED}: tiles of few columns, K of 64 and 128"),
    group_walk=Figure(3500, "cycles", "an H200: 128 groups, 128x256 tiles and 128x128 in turns"),
    together_share=Figure(
        0.005, "us/us", "an H200 with rests: five epilogues of twelve shapes, tiles of 128x256"
    ),
    computed_share=Figure(
        0.8, "-", "an H200: GELU by 128x256, whose pieces are computed while others are stored"
    ),
    next_tile=Figure(540, "cycles", f"{FITTED}: several small tiles a CTA, or larger ones"),
    dram_share=Figure(0.23, "us/us", f"{FITTED}: also orders along M and grouped by 8"),
    multicast=Figure(0, "B/B", "an H200: no tile was faster for it, what arrives is the limit"),
    copy_rate=Figure(2.6, "copies/cycle", "an H200: the same by 8 bytes, where L1 has 92 KB"),
    shift_rate=Figure(11, "B/cycle", "an H200: 22 kernels of K 2041 to 4093, 10 to 13"),
    cluster_start=Figure(341, "cycles", f"{FITTED}: the same tiles in clusters and alone"),
    cluster_doubled=Figure(82.7, "cycles", f"{FITTED}: clusters of 2 to 8"),
    split=SplitFigures(
        first_rate=Figure(2490, "B/cycle", f"{FITTED}: rows that one CTA at a time asks for"),
        l2_rate=Figure(6600, "B/cycle", f"{FITTED}: rows that others ask for, too"),
        multicast=Figure(1, "B/B", f"{FITTED}: the same, in clusters of 1x2 to 4x1"),
        latency=Figure(0.4, "cycles/CTA", f"{FITTED}: K split in 2 to 8"),
        rate=Figure(14.7, "B/cycle", f"{FITTED}: f32 sums, distributed shared memory"),
        share=Figure(0.236, "cycle/cycle", f"{FITTED}: K of 2000 to 16000 split in 2 to 8"),
        store=Figure(3.71, "B/cycle", f"{FITTED}: threads store their part of a tile"),
        beside=Figure(1.6, "B/cycle", "an H200: parts of 2 to 13 kB in 17 shapes, most 1.3 to 2"),
        start=Figure(816, "cycles", f"{FITTED}: K split in 2 to 8, and not"),
    ),
    parts=PartFigures(
        write=Figure(10.8, "B/cycle", f"{PARTS}: f32 sums of tiles of 64x64 to 256x128"),
        read=Figure(187, "B/cycle", f"{PARTS}: two to 11 parts, which CTAs share"),
        meet=Figure(4350, "cycles", f"{PARTS}: fences, atomics, and a share's sums"),
    ),
    clusters_at_once={
        ctas: Figure(at_once, "clusters", "H200, cuOccupancyMaxActiveClusters")
        for ctas, at_once in ((2, 66), (3, 39), (4, 30), (5, 22), (6, 17), (7, 15), (8, 15))
    },
    gpcs={
        size: Figure(number, "GPCs", "an H200: %smid of clusters; 8 more take none of over 2 CTAs")
        for size, number in ((18, 2), (16, 5), (8, 1))
    },
)
SMALL_AMPERE = replace(
    AMPERE,
    clock=Figure(1.74, "GHz", "NVIDIA A40 data sheet, boost clock"),
    mma_rate=Figure(1024, "FLOP/cycle", f"149.7 TFLOP/s at 84 x 1.74 GHz (NVIDIA A40): {SHEET}"),
    l2_rate=Figure(32, "B/cycle", "from L2 to one multiprocessor", True),
    l2_total_rate=Figure(84 * 32, "B/cycle", "from L2 to all multiprocessors", True),
    l2_size=Figure(6e6, "B", "NVIDIA GA102 white paper"),
    dram_rate=Figure(0.696e6, "B/us", "NVIDIA A40, GDDR6"),
)
ADA = replace(
    SMALL_AMPERE,
    clock=Figure(2.52, "GHz", "NVIDIA L40S data sheet, boost clock"),
    mma_rate=Figure(1024, "FLOP/cycle", f"362 TFLOP/s at 142 x 2.52 GHz (NVIDIA L40S): {SHEET}"),
    l2_total_rate=Figure(142 * 32, "B/cycle", "from L2 to all multiprocessors", True),
    l2_size=Figure(96e6, "B", "NVIDIA AD102 white paper"),
    dram_rate=Figure(0.864e6, "B/us", "NVIDIA L40S, GDDR6"),
)
SMALL_BLACKWELL = replace(
    ADA,
    clock=Figure(2.617, "GHz", "NVIDIA RTX PRO 6000 Blackwell, boost clock"),
    mma_rate=Figure(
        1024, "FLOP/cycle", f"503.8 TFLOP/s at 188 x 2.617 GHz (RTX PRO 6000): {SHEET}"
    ),
    l2_total_rate=Figure(188 * 32, "B/cycle", "from L2 to all multiprocessors", True),
    l2_size=Figure(128e6, "B", "NVIDIA RTX PRO 6000 Blackwell"),
    dram_rate=Figure(1.792e6, "B/us", "NVIDIA RTX PRO 6000 Blackwell, GDDR7"),
)
FIGURES = {
    "sm_100a": BLACKWELL,
    "sm_90a": HOPPER,
    "sm_80": AMPERE,
    "sm_86": SMALL_AMPERE,
    "sm_89": ADA,
    "sm_120a": SMALL_BLACKWELL,
}
H100 = "an H100 SXM of 80 GB"
ITS_TIMES = "fitted to an H100's times (benchmarks/estimate/fit_estimate.py --target h100)"
assert HOPPER.split is not None and HOPPER.parts is not None  # above
AN_H200S = f"{FITTED}, before clusters met without a release"
MET = f"{ITS_TIMES}, less what releases took at both meetings of a cluster"

OF_GPUS = {
    "h100": replace(
        HOPPER,
        l2_size=Figure(50e6, "B", f"{H100}, cudaDeviceProp.l2CacheSize"),
        dram_rate=Figure(3.35e6, "B/us", f"{H100}, data sheet; {ITS_TIMES} at no less"),
        l2_total_rate=Figure(5070, "B/cycle", ITS_TIMES),
        answered_together=Figure(0.64, "B/B", f"{ITS_TIMES}: CTAs that start one after the other"),
        answered_apart=Figure(0.7, "power", f"{ITS_TIMES}: grids of 8x8 to 64x2, both orders"),
        tma_latency=Figure(2308, "cycles", ITS_TIMES),
        second_line=Figure(0.037, "cycles", f"{ITS_TIMES}: L2 serves fewer rows than an H200's"),
        outside_share=Figure(0.103, "cycles", ITS_TIMES),
        second_share=Figure(0.321, "cycle/cycle", ITS_TIMES),
        cluster_start=Figure(300, "cycles", MET),
        cluster_doubled=Figure(288, "cycles", f"{ITS_TIMES}: clusters of 2 to 8, K of 250 to 1000"),
        unaligned_line=Figure(3, "cycles", ITS_TIMES),
        shared_row=Figure(0.6, "cycles", ITS_TIMES),
        dram_share=Figure(0.227, "us/us", ITS_TIMES),
        shared_twice=Figure(550, "cycles", ITS_TIMES),
        step_least=Figure(194, "cycles", ITS_TIMES),
        next_tile=Figure(250, "cycles", ITS_TIMES),
        together_share=UNUSED,
        group_turns=Figure(0.12, "us/us", f"{H100}: ragged groups of 512 rows, K 5120 to 14336"),
        beside_rate=Figure(
            4, "B/cycle", f"{H100}: a residual of seven shapes, read by threads and brought by TMA"
        ),
        split=replace(
            HOPPER.split,
            first_rate=Figure(1984, "B/cycle", f"{ITS_TIMES}, beside what L2 takes for them"),
            l2_rate=Figure(9300, "B/cycle", AN_H200S),
            share=Figure(1, "cycle/cycle", "an H100 was fitted with nothing overlapped"),
            multicast=Figure(0.905, "B/B", ITS_TIMES),
            rate=Figure(20, "B/cycle", AN_H200S),
            store=Figure(2.5, "B/cycle", "as threads store what is not split"),
            start=Figure(1500, "cycles", MET),
        ),
    )
}
"""The figures of a GPU that differ from those of its chip's usual GPU."""


def figures(target: Target) -> ChipFigures:
    """The figures of the target's GPU, or of its chip's usual one; OptionError if there are
    none."""
    try:
        return OF_GPUS[target.gpu] if target.gpu else FIGURES[target.chip]
    except KeyError:
        rule = f"schedule: the chip of an estimate must be one of {', '.join(FIGURES)}"
        cure = "add its figures to compiler/schedule/chips/chip_figures.py, or name a pipeline"
        raise OptionError(f"{rule}, got {target.chip}; {cure}") from None


def tensor_figures(target: Target) -> TensorFigures:
    """The figures of MMAs in tensor memory, for a chip that has it."""
    found = figures(target).tensor
    assert found is not None, f"{target.chip} has no tensor memory"
    return found


def split_figures(target: Target) -> SplitFigures:
    """The costs of split K in a cluster, for a chip where they were measured, which the rules
    require."""
    split = figures(target).split
    assert split is not None, f"what a split K costs on {target.chip} was not measured"
    return split


def part_figures(target: Target) -> PartFigures:
    """The costs of split K over the grid, for a chip where they are known, which the rules
    require."""
    parts = figures(target).parts
    assert parts is not None, f"what parts of a grid cost on {target.chip} is not known"
    return parts


def figure_table(target: Target) -> dict[str, Figure]:
    """All figures of a target by name."""
    chip_figures = figures(target)
    every = {each.name: getattr(chip_figures, each.name) for each in fields(ChipFigures)}
    if chip_figures.parts:
        every |= {f"parts_{name}": each for name, each in vars(chip_figures.parts).items()}
    if chip_figures.split:
        every |= {f"split_{name}": each for name, each in vars(chip_figures.split).items()}
    every |= {f"clusters_of_{ctas}": each for ctas, each in chip_figures.clusters_at_once.items()}
    every |= {f"gpcs_of_{size}": each for size, each in chip_figures.gpcs.items()}
    every |= chip_figures.tensor.table() if chip_figures.tensor else {}
    used = {name: each for name, each in every.items() if each is not UNUSED}
    return {name: each for name, each in used.items() if isinstance(each, Figure)}
