"""How much the estimate for Blackwell owes to each published kernel: leaves one out at a time.

    python benchmarks/estimate/published_left_out.py

The figures that are read from times of whole kernels are found anew from all kernels but one
(least squares of the logarithms, within what is known of each), and the one is predicted with
them. A figure that holds for the others only would show here. Takes seconds, needs no GPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator
from statistics import median

from tilewright.compiler.schedule.chips import chip_figures
from tilewright.compiler.schedule.chips import tensor_figures as tensor
from tilewright.compiler.schedule.chips.figure import Figure
from tilewright.tools.ladder.published import PUBLISHED
from tilewright.tools.ladder.speeds import predicted_as_timed
from tilewright.tools.ladder.timed_kernels import TIMED

# Least, most and step of each: latencies from L2 to DRAM, rows of a microbenchmark's port, clocks
# of 1.45 to 1.9 GHz.
RANGES = {
    "tma_latency": (400, 1120, 40),
    "row_rate": (0.8, 1.3, 0.05),
    "random": (1.4, 2.6, 0.1),
    "quiet": (0.6, 1.8, 0.1),
}
ROUNDS = 2

Values = dict[str, float]


def main() -> None:
    """A line for each kernel, and the median and the most of all."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    errors = []
    for name in TIMED:
        values = fitted([other for other in TIMED if other != name])
        error = math.exp(errors_of([name], values)[0]) - 1
        errors.append(abs(error))
        found = ", ".join(f"{key} {value:g}" for key, value in values.items())
        print(f"{name:8} {100 * error:+6.1f} %   with {found}")
    print(f"median {100 * median(errors):.1f} %, most {100 * max(errors):.1f} %")


def fitted(names: list[str]) -> Values:
    """The values that predict these kernels best, one figure at a time."""
    values = {key: (low + high) / 2 for key, (low, high, _) in RANGES.items()}
    for _ in range(ROUNDS):
        for key in RANGES:
            tried = ({**values, key: value} for value in steps(key))
            values = min(tried, key=lambda each: sum(e * e for e in errors_of(names, each)))
    return values


def steps(key: str) -> Iterator[float]:
    """The values that are tried for a figure."""
    low, high, step = RANGES[key]
    return (low + step * at for at in range(round((high - low) / step) + 1))


def errors_of(names: list[str], values: Values) -> list[float]:
    """Logarithms of predicted over published speed, with other figures."""
    figure = {key: Figure(value, "", "") for key, value in values.items()}
    power = dataclasses.replace(tensor.B200.power, random=figure["random"], quiet=figure["quiet"])
    parts = dataclasses.replace(tensor.B200, row_rate=figure["row_rate"], power=power)
    kept = chip_figures.FIGURES["sm_100a"]
    chip_figures.FIGURES["sm_100a"] = dataclasses.replace(
        kept, tma_latency=figure["tma_latency"], tensor=parts
    )
    predicted_as_timed.cache_clear()
    try:
        return [math.log(speed(name) / PUBLISHED[name].tflops) for name in names]
    finally:
        chip_figures.FIGURES["sm_100a"] = kept
        predicted_as_timed.cache_clear()


def speed(name: str) -> float:
    """10¹² operations a second, as estimated."""
    found = predicted_as_timed(TIMED[name], "sm_100a")
    assert found is not None  # each is described
    m, n, k = TIMED[name].shape
    return 2 * m * n * k / found.total_us / 1e6


if __name__ == "__main__":
    main()
