"""GPUs by name: peak compute and bandwidth, as data with sources.

Rates are dense, with sums in f32 or s32. NVIDIA's white papers state them for a whole board; here
they are per multiprocessor and cycle, so that multiprocessors × rate × boost clock is the white
paper's figure. `stated` keeps that figure for the test that compares them. GeForce boards multiply
floats at half the rate of workstation and server boards of the same chip.
"""

from __future__ import annotations

from ....dialects.record import record

GA100 = "NVIDIA A100 Tensor Core GPU Architecture, table 1"
GA102 = "NVIDIA Ampere GA102 GPU Architecture, table of the GeForce RTX 3090"
ADA = "NVIDIA Ada GPU Architecture, tables of its GPUs"
GB202 = "NVIDIA RTX Blackwell GPU Architecture, table of the GeForce RTX 5090"
GB202_PRO = "NVIDIA RTX Blackwell PRO GPU Architecture, table of the RTX PRO 6000"
SHARES = {"f16": 1.0, "tf32": 0.5, "f8": 2.0, "i8": 2.0}
GEFORCE_SHARES = {"f16": 1.0, "tf32": 0.5, "f8": 2.0, "i8": 4.0}
"""Rates of the tensor core relative to that of 16-bit operands."""


@record
class Board:
    """A GPU. `clock`: boost clock in GHz; `mma`: FLOP per cycle and multiprocessor with 16-bit
    operands; `memory`: bytes per second.

    `lanes`: multiply-adds of threads by type, per cycle and multiprocessor. `l2`: bytes per cycle
    of the whole chip, None where no figure was found; `l2_source`: its source, if that is not
    `source`. `stated`: 10¹² operations per second by unit.
    """

    gpu: str
    chip: str
    multiprocessors: int
    clock: float
    mma: int
    shares: dict[str, float]
    lanes: dict[str, int]
    memory: float
    memory_kind: str
    source: str
    stated: dict[str, float]
    l2: float | None = None
    l2_source: str = ""

    def rates(self) -> dict[str, float]:
        """FLOP per second of the tensor core by type."""
        cycles = self.multiprocessors * self.clock * 1e9
        return {name: share * self.mma * cycles for name, share in self.shares.items()}


def _without(shares: dict[str, float], *names: str) -> dict[str, float]:
    return {name: share for name, share in shares.items() if name not in names}


_GA100_LANES = {"f32": 64, "f64": 32, "f16": 256, "bf16": 128}
_LANES = {"f32": 128, "f64": 2, "f16": 128, "bf16": 128}
_A100 = Board(
    "NVIDIA A100 SXM, 40 GB",
    "sm_80",
    108,
    1.41,
    2048,
    {**_without(SHARES, "f8"), "f64": 1 / 16},
    _GA100_LANES,
    1.555e12,
    "HBM2",
    GA100,
    {"f16": 312, "tf32": 156, "i8": 624, "f64": 19.5, "threads f32": 19.5},
    5120,
)
BOARDS = {
    "a100": _A100,
    "a100-80gb": Board(
        **{
            **vars(_A100),
            "gpu": "NVIDIA A100 SXM, 80 GB",
            "memory": 2.039e12,
            "memory_kind": "HBM2e",
            "source": f"{GA100}; memory: NVIDIA A100 data sheet",
        }
    ),
    "a40": Board(
        "NVIDIA A40",
        "sm_86",
        84,
        1.74,
        1024,
        _without(SHARES, "f8"),
        _LANES,
        0.696e12,
        "GDDR6",
        "NVIDIA A40 data sheet",
        {"f16": 149.7, "tf32": 74.8, "i8": 299.3, "threads f32": 37.4},
    ),
    "a10": Board(
        "NVIDIA A10",
        "sm_86",
        72,
        1.695,
        1024,
        _without(SHARES, "f8"),
        _LANES,
        0.6e12,
        "GDDR6",
        "NVIDIA A10 data sheet",
        {"f16": 125, "tf32": 62.5, "i8": 250, "threads f32": 31.2},
    ),
    "rtx3090": Board(
        "GeForce RTX 3090",
        "sm_86",
        82,
        1.695,
        512,
        _without(GEFORCE_SHARES, "f8"),
        _LANES,
        0.936e12,
        "GDDR6X",
        GA102,
        {"f16": 71, "tf32": 35.6, "i8": 284, "threads f32": 35.6},
    ),
    "l40s": Board(
        "NVIDIA L40S",
        "sm_89",
        142,
        2.52,
        1024,
        SHARES,
        _LANES,
        0.864e12,
        "GDDR6",
        "NVIDIA L40S data sheet",
        {"f16": 362.05, "tf32": 183, "f8": 733, "threads f32": 91.6},
    ),
    "l4": Board(
        "NVIDIA L4",
        "sm_89",
        58,
        2.04,
        1024,
        SHARES,
        _LANES,
        0.3e12,
        "GDDR6",
        f"{ADA}; NVIDIA L4 data sheet",
        {"f16": 121, "tf32": 60, "f8": 242.5, "i8": 242.5, "threads f32": 30.3},
    ),
    "rtx4090": Board(
        "GeForce RTX 4090",
        "sm_89",
        128,
        2.52,
        512,
        GEFORCE_SHARES,
        _LANES,
        1.008e12,
        "GDDR6X",
        ADA,
        {"f16": 165.2, "tf32": 82.6, "f8": 330.3, "i8": 660.6, "threads f32": 82.6},
        1945.6,
        "measured by github.com/smallscientist1/cuda_microbenchmark, cp.async of what is in L2",
    ),
    "rtx-pro-6000": Board(
        "RTX PRO 6000 Blackwell",
        "sm_120a",
        188,
        2.617,
        1024,
        {**SHARES, "f4": 4.0},
        _LANES,
        1.792e12,
        "GDDR7",
        GB202_PRO,
        {"f16": 503.8, "tf32": 251.9, "f8": 1007.6, "f4": 2015.2, "threads f32": 126},
    ),
    "rtx5090": Board(
        "GeForce RTX 5090",
        "sm_120a",
        170,
        2.407,
        512,
        {**GEFORCE_SHARES, "f4": 8.0},
        _LANES,
        1.792e12,
        "GDDR7",
        GB202,
        {"f16": 209.5, "tf32": 104.8, "f8": 419, "i8": 838, "f4": 1676, "threads f32": 104.8},
    ),
}
"""The boards of each chip; the first is the one that the chip's target stands for."""


def board_of(chip: str) -> Board | None:
    """The board that a chip's target stands for; None if it is not in the table."""
    return next((board for board in BOARDS.values() if board.chip == chip), None)


def runs_on(target: str, chip: str) -> bool:
    """Whether a GPU of a chip runs PTX for a target: that of the same chip, and PTX without a
    letter for older chips.

    PTX ISA, .target: PTX for sm_NN runs on that chip and all later ones, PTX for sm_NNa on that
    chip alone.
    """
    plain = target.removeprefix("sm_")
    later = chip.removeprefix("sm_").rstrip("af")
    return target == chip or (plain.isdigit() and int(plain) <= int(later))
