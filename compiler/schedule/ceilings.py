"""What a whole chip can compute and move at best, each with its source: the roofs of a roofline.

Tensor cores are those of the chip's own MMA: tcgen05.mma, wgmma or mma.sync. Clock and
multiprocessors are those of the estimate's figures.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.errors import OptionError
from ...dialects.target import TARGETS, Target
from .chip_figures import Figure, figures

TENSOR, THREADS = "tensor core", "threads"
HBM, L2, SHARED, TENSOR_MEMORY = "HBM", "L2", "shared memory", "tensor memory"
LEVELS = (HBM, L2, SHARED, TENSOR_MEMORY)
FAMILIES = {
    "f16": "f16", "bf16": "f16", "tf32": "tf32", "f64": "f64",
    "f8f6f4": "f8", "mxf8f6f4": "f8", "e4m3": "f8", "e5m2": "f8", "e3m2": "f8", "e2m3": "f8",
    "mxf4": "f4", "mxf4nvf4": "f4", "i8": "i8", "s8": "i8", "u8": "i8",
}  # fmt: skip
"""Types of tensor-core operands that have one rate."""
RATIOS = {"f16": 1.0, "tf32": 0.5, "f8": 2.0, "i8": 2.0, "f4": 4.0}
"""Rates beside that of 16 bits, as the data sheets of the H200 and the B200 have them."""
LANES = {"f32": 128, "f64": 64, "f16": 256, "bf16": 256}
OTHER_LANES = {
    "sm_80": {"f32": 64, "f64": 32, "bf16": 128},
    "sm_86": {"f64": 2, "bf16": 128},
    "sm_89": {"f64": 2, "bf16": 128},
    "sm_120a": {"f64": 2},
}
GUIDE = "CUDA C++ Programming Guide, arithmetic throughput: results a cycle of a multiprocessor"


@dataclass(frozen=True)
class Ceilings:
    """compute: operations a second by (unit, type); memory: bytes a second by level."""

    chip: str
    multiprocessors: int
    compute: dict[tuple[str, str], Figure]
    memory: dict[str, Figure]

    def rate(self, unit: str, type_: str) -> Figure | None:
        """Of a unit on operands of a type, None where it is not known."""
        return self.compute.get((unit, FAMILIES.get(type_, type_) if unit == TENSOR else type_))


HBM_RATES = {
    "sm_100a": Figure(8.0e12, "B/s", "NVIDIA B200, HBM3e"),
    "sm_90a": Figure(4.8e12, "B/s", "NVIDIA H200, HBM3e"),
    "sm_80": Figure(1.555e12, "B/s", "NVIDIA A100 of 40 GB, HBM2"),
    "sm_86": Figure(0.696e12, "B/s", "NVIDIA A40, GDDR6"),
    "sm_89": Figure(0.864e12, "B/s", "NVIDIA L40S, GDDR6"),
    "sm_120a": Figure(1.792e12, "B/s", "NVIDIA RTX PRO 6000 Blackwell, GDDR7"),
}
L2_RATES = {
    "sm_100a": Figure(21e12, "B/s", "Chips and Cheese, B200: loads of what is in L2"),
    "sm_90a": Figure(8930 * 1.98e9, "B/s", "fitted to an H200's times: 8930 bytes a cycle"),
    "sm_80": Figure(5120 * 1.41e9, "B/s", "NVIDIA A100 white paper: 5120 bytes a cycle"),
    "sm_86": Figure(84 * 32 * 1.74e9, "B/s", "32 bytes a cycle of a multiprocessor", True),
    "sm_89": Figure(142 * 32 * 2.52e9, "B/s", "32 bytes a cycle of a multiprocessor", True),
    "sm_120a": Figure(188 * 32 * 2.617e9, "B/s", "32 bytes a cycle of a multiprocessor", True),
}
DOUBLE_RATES = {
    "sm_100a": Figure(40e12, "FLOP/s", "NVIDIA B200, f64 on tensor cores"),
    "sm_90a": Figure(67e12, "FLOP/s", "NVIDIA H200, f64 on tensor cores"),
    "sm_80": Figure(19.5e12, "FLOP/s", "NVIDIA A100, f64 on tensor cores"),
}


def ceilings_of(chip: str) -> Ceilings:
    """The ceilings of a chip; `OptionError` names those that have any."""
    if chip not in TARGETS:
        known = ", ".join(TARGETS)
        raise OptionError(f"target: ceilings must be those of {known}, got {chip!r}; name one")
    target = TARGETS[chip]
    return Ceilings(chip, target.multiprocessors, _compute(target), _memory(target))


def _compute(target: Target) -> dict[tuple[str, str], Figure]:
    chip = figures(target)
    cycles = target.multiprocessors * float(chip.clock) * 1e9
    words = f"{target.multiprocessors} multiprocessors at {float(chip.clock):g} GHz"
    found = {}
    for name, ratio in RATIOS.items():
        if name == "f4" and not target.has_tensor_memory:
            continue
        if name == "f8" and "e4m3" not in target.mma.operands:
            continue
        rate = ratio * chip.mma_rate
        source = f"{words}, {rate:g} a cycle: {chip.mma_rate.source}"
        found[TENSOR, name] = Figure(rate * cycles, "FLOP/s", source)
    if target.chip in DOUBLE_RATES:
        found[TENSOR, "f64"] = DOUBLE_RATES[target.chip]
    for name, lanes in (LANES | OTHER_LANES.get(target.chip, {})).items():
        rate = 2 * lanes * cycles
        found[THREADS, name] = Figure(rate, "FLOP/s", f"{words}, {lanes} multiply-adds: {GUIDE}")
    return found


def _memory(target: Target) -> dict[str, Figure]:
    chip = figures(target)
    cycles = target.multiprocessors * float(chip.clock) * 1e9
    shared = f"{float(chip.shared_rate):g} bytes a cycle: {chip.shared_rate.source}"
    found = {
        HBM: HBM_RATES[target.chip],
        L2: L2_RATES[target.chip],
        SHARED: Figure(chip.shared_rate * cycles, "B/s", shared),
    }
    if chip.tmem_rate is not None:
        words = f"{float(chip.tmem_rate):g} bytes a cycle, 128 lanes of 32 bits: assumed"
        found[TENSOR_MEMORY] = Figure(chip.tmem_rate * cycles, "B/s", words, True)
    return found
