"""Predicted and published speeds of the rungs of a ladder."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .published import CUBE, PUBLISHED, Published
from .steps import changes, ladder_of
from .timed_kernels import TIMED, Timed

if TYPE_CHECKING:
    from ...compiler.schedule.estimates.estimate import Estimate
    from ...compiler.schedule.kinds.warp_schedule import WarpEstimate
    from ...compiler.spec import MatmulSpec

COLUMNS = (
    "rung",
    "what changes",
    "predicted [us]",
    "predicted [TFLOP/s]",
    "published [TFLOP/s]",
    "of cuBLAS []",
    "source",
)
LEGEND = (
    "predicted: by the compiler's estimate, in us of the preset for this spec, in TFLOP/s of the"
    " kernel that its source timed, for {shape} in bf16 (kernel5: 4096×2560×8192); published:"
    " measured by the source; - where there is none"
)


@dataclass(frozen=True)
class Speed:
    """A rung's times. predicted: of the preset for the spec of the run; at_shape: of the kernel
    that the publication timed, at its shape."""

    name: str
    predicted: Estimate | WarpEstimate | None
    at_shape: Estimate | WarpEstimate | None
    published: Published | None
    timed: Timed | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and K of what was timed."""
        if self.timed is not None:
            return self.timed.shape
        return self.published.series.shape if self.published else CUBE

    @property
    def predicted_tflops(self) -> float | None:
        """At the shape of the publication."""
        if self.at_shape is None:
            return None
        m, n, k = self.shape
        return 2 * m * n * k / self.at_shape.total_us / 1e6

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        predicted = self.predicted
        return {
            "changes": changes(self.name),
            "predicted_us": None if predicted is None else predicted.total_us,
            "bound": None if predicted is None else predicted.bound,
            "predicted_tflops": self.predicted_tflops,
            "timed": None if self.timed is None else asdict(self.timed),
            "published": None if self.published is None else self.published.as_dict(),
        }


def speed_of(name: str, spec: MatmulSpec, target: str) -> Speed:
    """What is predicted and published of a preset."""
    from ...compiler.spec import MatmulSpec

    published = PUBLISHED.get(name)
    if published is not None and published.series.chip != target:
        published = None
    timed = TIMED.get(name) if published else None
    m, n, k = published.series.shape if published else CUBE
    at_shape = (
        predicted_as_timed(timed, target)
        if timed
        else _predicted(name, MatmulSpec(m=m, n=n, k=k), target)
    )
    return Speed(name, _predicted(name, spec, target), at_shape, published, timed)


@functools.lru_cache
def predicted_as_timed(timed: Timed, target: str) -> Estimate | None:
    """What the estimate says of a kernel as others timed it, with their kind of inputs."""
    from ...compiler.pipeline import parse_pipeline
    from ...compiler.schedule.estimates.rungs import predict
    from ...compiler.schedule.problem import Problem
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import find_target

    chip, (m, n, k) = find_target(target), timed.shape
    passes = [(call.name, dict(call.options)) for call in parse_pipeline(timed.pipeline)]
    spec = MatmulSpec(m, n, k, timed.dtype, timed.dtype, timed.c_dtype)
    problem = Problem.of(spec, chip)
    return predict(
        problem, passes, chip, timed.columns, timed.inputs, timed.clock, joined=timed.joined
    )


@functools.lru_cache
def _predicted(name: str, spec: MatmulSpec, target: str) -> Estimate | WarpEstimate | None:
    from ...compiler.pipeline import all_presets, parse_pipeline
    from ...compiler.schedule.estimates.rungs import predict
    from ...compiler.schedule.kinds.warp_rungs import predict_warps
    from ...compiler.schedule.kinds.warp_schedule import is_by_warps
    from ...compiler.schedule.problem import Problem
    from ...dialects.target import find_target

    chip = find_target(target)
    if spec.a_dtype not in chip.mma.operands:
        return None  # the estimate knows no other unit than the chip's own MMA
    calls = parse_pipeline(all_presets()[name])
    passes = [(call.name, dict(call.options)) for call in calls]
    if is_by_warps(chip):
        return predict_warps(spec, passes, chip)
    return predict(Problem.of(spec, chip), passes, chip)


def speed_row(speed: Speed) -> list[str]:
    """The line of a table."""
    published = speed.published
    return [
        speed.name,
        changes(speed.name),
        "-" if speed.predicted is None else f"{speed.predicted.total_us:.3g}",
        "-" if speed.predicted_tflops is None else f"{speed.predicted_tflops:.0f}",
        "-" if published is None else f"{published.tflops:.4g}",
        "-" if published is None else f"{published.of_cublas:.3f}",
        "-" if published is None else published.source(),
    ]


def by_ladder(speeds: list[Speed]) -> dict[str, list[Speed]]:
    """The rungs of each ladder that have a bar to draw."""
    found: dict[str, list[Speed]] = {}
    for speed in speeds:
        if speed.published is not None or speed.at_shape is not None:
            found.setdefault(ladder_of(speed.name), []).append(speed)
    return found
