"""Peak compute and bandwidth of a chip, with sources: the roofs of a roofline.

The tensor-core rate is that of the chip's own MMA: tcgen05.mma, wgmma or mma.sync. The clock and
the number of multiprocessors are those of the estimate's figures, or of a board (`boards.py`). For
a B200 the clock is the one that its data sheet uses, since the estimate's is the highest clock
without load.
"""

from __future__ import annotations

from ....dialects.errors import OptionError
from ....dialects.record import record
from ....dialects.target import GPUS, TARGETS, Target
from .boards import BOARDS, SHARES, Board, board_of, runs_on
from .chip_figures import figures
from .figure import Figure

TENSOR, THREADS = "tensor core", "threads"
HBM, L2, SHARED, TENSOR_MEMORY = "HBM", "L2", "shared memory", "tensor memory"
LEVELS = (HBM, L2, SHARED, TENSOR_MEMORY)
FAMILIES = {
    "f16": "f16", "bf16": "f16", "tf32": "tf32", "f64": "f64",
    "f8f6f4": "f8", "mxf8f6f4": "f8", "e4m3": "f8", "e5m2": "f8", "e3m2": "f8", "e2m3": "f8",
    "mxf4": "f4", "mxf4nvf4": "f4", "i8": "i8", "s8": "i8", "u8": "i8",
}  # fmt: skip
"""Types of tensor-core operands that have the same rate."""
LANES = {"f32": 128, "f64": 64, "f16": 256, "bf16": 256}
GUIDE = "CUDA C++ Programming Guide, arithmetic throughput: results a cycle of a multiprocessor"


@record
class Ceilings:
    """`compute`: operations per second by (unit, type); `memory`: bytes per second by level."""

    chip: str
    gpu: str
    multiprocessors: int
    compute: dict[tuple[str, str], Figure]
    memory: dict[str, Figure]

    def rate(self, unit: str, type_: str) -> Figure | None:
        """The rate of a unit on operands of a type; None if it is not known."""
        return self.compute.get((unit, FAMILIES.get(type_, type_) if unit == TENSOR else type_))


NAMES = {"sm_100a": "NVIDIA B200", "sm_90a": "NVIDIA H200", "h100": "NVIDIA H100 SXM, 80 GB"}
CHIP_OF = {name: each.chip for name, each in (GPUS | BOARDS).items()}
"""The chip of each GPU that can be named."""
HBM_RATES = {
    "sm_100a": Figure(8.0e12, "B/s", "NVIDIA B200, HBM3e"),
    "sm_90a": Figure(4.8e12, "B/s", "NVIDIA H200, HBM3e"),
    "h100": Figure(3.35e12, "B/s", "NVIDIA H100 SXM, HBM3"),
}
L2_RATES = {"sm_100a": Figure(21e12, "B/s", "Chips and Cheese, B200: loads of what is in L2")}
"""Measured L2 rates; where a chip has none, the ports of all multiprocessors bound it."""
DOUBLE_RATES = {
    "sm_100a": Figure(40e12, "FLOP/s", "NVIDIA B200, f64 on tensor cores"),
    "sm_90a": Figure(67e12, "FLOP/s", "NVIDIA H100 and H200, f64 on tensor cores"),
}
RATED_CLOCKS = {
    "sm_100a": Figure(
        1.85, "GHz", "what 2.25 PFLOP/s of dense bf16 (NVIDIA B200) means at 8192 FLOP a cycle"
    )
}
L2_SHARE, SHARED_RATE = 32, 128


def ceilings_of(chip: str, gpu: str | None = None) -> Ceilings:
    """The ceilings of a GPU that runs PTX for a chip: the chip's usual GPU unless one is named.

    A target that is a GPU has its own ceilings. PTX for sm_90, without the letter, is compared with
    those of sm_90a. `OptionError` names the GPUs that are known.
    """
    if gpu is not None:
        return _ceilings_on(chip, gpu)
    if chip in GPUS:
        return _of_target(GPUS[chip])
    chip = f"{chip}a" if f"{chip}a" in TARGETS else chip
    if chip not in TARGETS:
        known = ", ".join(TARGETS)
        raise OptionError(f"target: ceilings must be those of {known}, got {chip!r}; name one")
    board = board_of(chip)
    return _of_target(TARGETS[chip]) if board is None else _of_board(board)


def _ceilings_on(chip: str, gpu: str) -> Ceilings:
    if gpu not in CHIP_OF:
        raise OptionError(f"gpu: unknown name {gpu!r}; use one of {', '.join(CHIP_OF)}")
    if not runs_on(chip, CHIP_OF[gpu]):
        able = [name for name, each in CHIP_OF.items() if runs_on(chip, each)]
        rule = f"gpu: must run PTX for {chip}"
        raise OptionError(
            f"{rule}, got {gpu}, an {CHIP_OF[gpu]}; use one of {', '.join(able) or 'none'}"
        )
    return _of_board(BOARDS[gpu]) if gpu in BOARDS else _of_target(GPUS[gpu])


def _of_target(target: Target) -> Ceilings:
    """The ceilings of a chip for which the estimate has figures."""
    compute, memory = _compute(target), _memory(target)
    gpu = NAMES[target.gpu or target.chip]
    return Ceilings(target.chip, gpu, target.multiprocessors, compute, memory)


def _clock(target: Target) -> float:
    return float(RATED_CLOCKS.get(target.chip, figures(target).clock))


def _compute(target: Target) -> dict[tuple[str, str], Figure]:
    chip = figures(target)
    cycles = target.multiprocessors * _clock(target) * 1e9
    words = f"{target.multiprocessors} multiprocessors at {_clock(target):g} GHz"
    found = {}
    for name, share in (SHARES | ({"f4": 4.0} if target.has_tensor_memory else {})).items():
        rate = share * chip.mma_rate
        source = f"{words}, {rate:g} a cycle: {chip.mma_rate.source}"
        found[TENSOR, name] = Figure(rate * cycles, "FLOP/s", source)
    found[TENSOR, "f64"] = DOUBLE_RATES[target.chip]
    for name, lanes in LANES.items():
        rate = 2 * lanes * cycles
        found[THREADS, name] = Figure(rate, "FLOP/s", f"{words}, {lanes} multiply-adds: {GUIDE}")
    return found


def _memory(target: Target) -> dict[str, Figure]:
    chip = figures(target)
    cycles = target.multiprocessors * _clock(target) * 1e9
    ports = f"{float(chip.l2_rate):g} bytes a cycle of a multiprocessor: {chip.l2_rate.source}"
    shared = f"{float(chip.shared_rate):g} bytes a cycle: {chip.shared_rate.source}"
    found = {
        HBM: HBM_RATES[target.gpu or target.chip],
        L2: L2_RATES.get(target.chip) or Figure(chip.l2_rate * cycles, "B/s", ports),
        SHARED: Figure(chip.shared_rate * cycles, "B/s", shared),
    }
    if chip.tmem_rate is not None:
        words = f"{float(chip.tmem_rate):g} bytes a cycle, 128 lanes of 32 bits: assumed"
        found[TENSOR_MEMORY] = Figure(chip.tmem_rate * cycles, "B/s", words, True)
    return found


def _of_board(board: Board) -> Ceilings:
    """The ceilings of a GPU whose figures are those of its white paper."""
    cycles = board.multiprocessors * board.clock * 1e9
    words = f"{board.multiprocessors} multiprocessors at {board.clock:g} GHz"
    found = {}
    for name, rate in board.rates().items():
        each = board.shares[name] * board.mma
        source = f"{words}, {each:g} a cycle, dense, sums of 32 bits: {board.source}"
        found[TENSOR, name] = Figure(rate, "FLOP/s", source)
    for name, lanes in board.lanes.items():
        source = f"{words}, {lanes} multiply-adds: {board.source}; {GUIDE}"
        found[THREADS, name] = Figure(2 * lanes * cycles, "FLOP/s", source)
    memory = {
        HBM: Figure(board.memory, "B/s", f"{board.memory_kind}: {board.source}"),
        L2: _l2_of(board),
        SHARED: Figure(SHARED_RATE * cycles, "B/s", f"{SHARED_RATE} bytes a cycle: 32 banks"),
    }
    return Ceilings(board.chip, board.gpu, board.multiprocessors, found, memory)


def _l2_of(board: Board) -> Figure:
    clock = board.clock * 1e9
    if board.l2 is None:
        words = f"{L2_SHARE} bytes a cycle of a multiprocessor: assumed"
        return Figure(board.multiprocessors * L2_SHARE * clock, "B/s", words, True)
    source = board.l2_source or board.source
    return Figure(board.l2 * clock, "B/s", f"{board.l2:g} bytes a cycle: {source}")
