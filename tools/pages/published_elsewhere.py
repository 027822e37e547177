"""Writes docs/appendix/blackwell-published.md: times that others published of a B200, and ours.

python -m tilewright.tools.pages.published_elsewhere > docs/appendix/blackwell-published.md

No figure of the estimate was fitted to these times, but two of its terms were compared with them
before they were kept (`HEADER`). Where a source says tile, stages and clusters, the prediction is
of that kernel. Elsewhere it is of the schedule that is chosen here, which is held to the fastest
kernel of a library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from ..command_line.own_process import as_process, print_document
from ..ladder.timed_kernels import Timed

if TYPE_CHECKING:
    from ...compiler.schedule.estimates.scaled_estimate import ScaledSchedule

CHIP = "sm_100a"
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Source:
    """Where times stand, how they were taken, and the kind of operands they mean."""

    name: str
    url: str
    how: str
    inputs: str = "random"


@dataclass(frozen=True)
class Elsewhere:
    """A published time: of a kernel by its passes, of one with block scales by its schedule, or
    of the fastest one of a library where neither is known."""

    source: Source
    kernel: str
    dtype: str
    shape: Shape
    us: float
    c_dtype: str = "bf16"
    passes: str = ""
    scaled: ScaledSchedule | None = None

    @property
    def is_known(self) -> bool:
        """Whether the source says what the kernel is."""
        return bool(self.passes) or self.scaled is not None


def _us(shape: Shape, tflops: float) -> float:
    m, n, k = shape
    return 2 * m * n * k / tflops / 1e6


def _cube(size: int) -> Shape:
    return size, size, size


GLUON = Source(
    "Gluon",
    "https://github.com/triton-lang/triton/pull/9697",
    "an example of Triton's Gluon and cuBLAS, `do_bench_cudagraph`; its code says tile and stages",
)
NVJET = Source(
    "Triton, tutorial 10",
    "https://github.com/triton-lang/triton/pull/9044",
    "cuBLAS 13.1 under Proton, clocks unlocked; the kernel's name says tile and stages",
)
HELION = Source(
    "Helion",
    "https://github.com/pytorch/helion/pull/2756",
    "time on the device of a tuned kernel; the description says tile, stages and pairs",
)
CUTE = Source(
    "2 CTA GEMM",
    "S. Veitner, *2 CTA GEMM on B200*, veitner.bearblog.dev, 2026-01-04",
    "kernels in the CuTe DSL, 1000 runs, operands of -2 to 1; the code says tile and stages",
)
PROFILER = Source(
    "CUTLASS profiler",
    "https://github.com/vllm-project/vllm/pull/20071",
    "kernels of CUTLASS one after another, started by the host; the table says the tile",
)
LONG = Source(
    "Triton beside cuBLAS",
    "https://github.com/tmoreau89/triton, python/triton_cublas_bench/RESULTS.md",
    "cuBLAS 13.0, each for 10 s after 10 s of warming up",
    "sustained",
)
LAYERS = Source(
    "vLLM",
    "https://github.com/vllm-project/vllm/pull/19566",
    "layers of Llama 3.1 in a CUDA graph: bf16 by cuBLAS, fp8 by CUTLASS kernels that were tuned",
)
SMALL = Source(
    "FlashInfer, FP16",
    "https://github.com/NVIDIA/cutlass/issues/2923",
    "cuBLAS, CUPTI, L2 flushed",
)
FOUR_BIT = Source(
    "FlashInfer, FP4",
    "https://github.com/flashinfer-ai/flashinfer/pull/2540",
    "the fastest of cuDNN, CUTLASS, TensorRT-LLM and the CuTe DSL",
)
PYPTX = Source(
    "pyptx",
    "https://github.com/patrick-toulme/pyptx, docs/performance.md",
    "20 launches in a row, `randn`; the code says tile and stages, and that C is f32",
)
MULTICTA = Source(
    "Gluon, tutorial 14",
    "https://github.com/triton-lang/triton, python/tutorials/gluon/14-multicta.py",
    "f16 by `do_bench` for a second; the code says tile and stages, and not which Blackwell GPU",
    "sustained",
)
SCALED_ROWS = Source(
    "Helion, scaled_mm",
    "https://github.com/pytorch/helion/pull/2987 and 3377",
    "CUDA graphs, L2 flushed, scales of rows and columns: the fastest of Helion, CUTLASS and torch",
)

_COPIED = "tma-insertion,swizzle-selection"
_PAIR, _STAGED = "clustering{shape=2x1 pair=true}", "epilogue-staging{columns=32 buffers=2}"


def _gluon(size: int, dtype: str, one: float, two: float, cublas: float) -> Iterator[Elsewhere]:
    """Gluon's kernels: a single CTA stages a tile of C as a whole, a pair in pieces of 64
    columns."""
    from ...compiler.schedule.estimates.scaled_estimate import ScaledSchedule

    shape, k = _cube(size), 128 if dtype == "mxfp8" else 256
    for name, tflops, pair, columns, stages in (
        ("1 CTA, 128x256", one, False, 256, 3),
        ("2 CTAs, 256x256", two, True, 64, 5),
    ):
        schedule = ScaledSchedule((128, 256, k), pair, columns, stages=stages)
        us = _us(shape, tflops)
        yield Elsewhere(GLUON, f"{name}, {stages} stages", dtype, shape, us, "f16", "", schedule)
    yield Elsewhere(GLUON, "cuBLAS", dtype, shape, _us(shape, cublas), "f16")


def _known() -> Iterator[Elsewhere]:
    from ...compiler.schedule.estimates.scaled_estimate import ScaledSchedule

    yield from _gluon(8192, "mxfp8", 2525.9, 2895.0, 2894.5)
    yield from _gluon(16384, "mxfp8", 2409.3, 2755.0, 2647.7)
    yield from _gluon(32768, "mxfp8", 2468.7, 2632.9, 2587.0)
    yield from _gluon(8192, "nvfp4", 4781.9, 5730.0, 5589.8)
    yield from _gluon(16384, "nvfp4", 4837.0, 5562.0, 4313.6)
    yield from _gluon(32768, "nvfp4", 4723.3, 5362.4, 4933.4)
    nvjet = ScaledSchedule((128, 256, 128), True, 32, stages=6)
    name, us = "nvjet 128x256, 2 CTAs, 6 stages", _us(_cube(8192), 2849.882)
    yield Elsewhere(NVJET, name, "mxfp8", _cube(8192), us, "f16", "", nvjet)
    text = f"tiling{{tile=128x128x128}},{_COPIED},{_STAGED},{_PAIR},pipelining{{stages=8}}"
    text += ",warp-specialization,persistence{scheduler=static order=grouped group=8}"
    yield Elsewhere(HELION, "256x128, 2 CTAs, 8 stages", "e4m3", _cube(4096), 52.6, passes=text)
    tail = "pipelining{stages=4},warp-specialization"
    for name, tflops, more in (("1 CTA", 1323.19, ""), ("2 CTAs", 1399.98, f"{_PAIR},")):
        text, us = f"tiling{{tile=128x256x64}},{_COPIED},{more}{tail}", _us(_cube(8192), tflops)
        yield Elsewhere(CUTE, f"{name}, 4 stages", "bf16", _cube(8192), us, passes=text)
    yield from _known_of_tutorials()
    text = f"tiling{{tile=64x64x128}},{_COPIED},{_STAGED},pipelining{{stages=9}}"
    for n, k, tflops in PROFILED:
        shape = 32, n, k
        us = _us(shape, tflops)
        tail = f"{text},warp-specialization"
        yield Elsewhere(PROFILER, "64x64x128", "e4m3", shape, us, passes=tail)


def _known_of_tutorials() -> Iterator[Elsewhere]:
    text = f"tiling{{tile=128x256x64}},{_COPIED},pipelining{{stages=4}},warp-specialization"
    for shape, tflops, _ in PYPTX_RUNS:
        if tflops:
            us = _us(shape, tflops)
            yield Elsewhere(PYPTX, "1 CTA, 4 stages", "bf16", shape, us, "f32", text)
    text = f"tiling{{tile=128x256x64}},{_COPIED},epilogue-staging{{columns=32 buffers=4}},{_PAIR}"
    text += ",pipelining{stages=6},warp-specialization"
    text += ",persistence{scheduler=clc order=grouped group=16}"
    for k, tflops, _ in MULTICTA_RUNS:
        shape = 8192, 8192, k
        us = _us(shape, tflops)
        yield Elsewhere(MULTICTA, "2 CTAs, 6 stages", "f16", shape, us, "f16", text)


PROFILED = (
    *((2560, 8192, 109.044), (4096, 4096, 104.88), (14336, 8192, 281.366), (8192, 7168, 255.43)),
    *((4096, 14336, 205.877), (8192, 2048, 106.808), (28672, 4096, 297.854), (6144, 4096, 157.006)),
)
PYPTX_RUNS = (  # TFLOP/s of its kernel, 0 where launches by Python decide, and of cuBLAS
    *((_cube(2048), 0, 1006), (_cube(4096), 1194, 1532), ((4096, 8192, 8192), 1240, 1652)),
    *(((8192, 4096, 8192), 1315, 1648), (_cube(8192), 1240, 1610)),
)
MULTICTA_RUNS = (  # K, TFLOP/s of the tutorial and of cuBLAS
    *((512, 1096.31, 1190.98), (1024, 1306.07, 1344.48), (2048, 1379.80, 1374.48)),
    *((4096, 1444.26, 1431.93), (8192, 1302.33, 1347.82), (16384, 1292.40, 1371.82)),
)
SCALED_RUNS = (
    *((1, 4096, 4096, 6.97), (1, 256, 4096, 4.49), (2, 4096, 4096, 7.19), (2, 256, 4096, 5.14)),
    *((2, 4096, 2048, 5.65), (2, 6144, 4096, 8.42), (8, 4096, 4096, 7.24), (8, 256, 4096, 5.18)),
    *((8, 4096, 2048, 5.71), (8, 6144, 4096, 8.46), (16, 4096, 4096, 7.01), (16, 256, 4096, 4.95)),
    *((16, 4096, 2048, 5.57), (64, 4096, 2048, 6.07), (64, 2048, 2048, 5.41)),
    *((64, 12288, 2048, 8.99), (64, 2048, 6144, 8.38), (64, 6144, 4096, 8.44)),
    *((64, 4096, 4096, 7.60), (64, 24576, 4096, 22.24), (64, 4096, 12288, 15.17)),
    *((64, 10240, 5120, 15.94), (512, 4096, 2048, 7.82), (512, 2048, 2048, 6.55)),
    (4096, 4096, 4096, 46.48),
)
LONG_RUNS = (  # K, TFLOP/s of f16 and of e4m3
    *((128, 493, 647), (256, 845, 1102), (384, 1073, 1521), (512, 1222, 1950)),
    *((640, 1313, 2300), (768, 1342, 2608), (896, 1373, 2730), (1024, 1389, 2770)),
)
LAYER_RUNS = (  # rows, TFLOP/s of bf16 and of e4m3
    *((1, 2.7357, 5.8636), (16, 72.858, 93.512), (64, 286.30, 368.74), (128, 561.33, 612.35)),
    *((256, 892.90, 993.06), (512, 1335.79, 1906.16), (1024, 1362.67, 2354.26)),
)
SMALL_RUNS = (
    *((8, 5.02), (32, 4.86), (64, 4.93), (128, 5.06), (256, 5.26), (512, 5.92), (1024, 7.14)),
)
FOUR_BIT_RUNS = (
    *((1, 512, 7168, 9.312), (1, 896, 1024, 4.176), (1, 1024, 7168, 9.600)),
    *((1, 1280, 8192, 10.448), (256, 512, 7168, 7.776), (256, 896, 1024, 4.000)),
    *((256, 1024, 7168, 7.984), (256, 4608, 7168, 10.464), (256, 7168, 256, 4.128)),
    *((256, 7168, 512, 4.479), (256, 7168, 2304, 7.040), (256, 7168, 4608, 9.184)),
)


def _of_libraries() -> Iterator[Elsewhere]:
    for k, half, byte in LONG_RUNS:
        shape = 8192, 8192, k
        for dtype, tflops in (("f16", half), ("e4m3", byte)):
            yield Elsewhere(LONG, "cuBLAS", dtype, shape, _us(shape, tflops), "f16")
    for m, half, byte in LAYER_RUNS:
        shape = m, 4096, 4096
        yield Elsewhere(LAYERS, "cuBLAS", "bf16", shape, _us(shape, half))
        yield Elsewhere(LAYERS, "CUTLASS", "e4m3", shape, _us(shape, byte))
    for m, us in SMALL_RUNS:
        yield Elsewhere(SMALL, "cuBLAS", "f16", (m, 2048, 1024), us, "f16")
    for shape, _, tflops in PYPTX_RUNS:
        yield Elsewhere(PYPTX, "cuBLAS", "bf16", shape, _us(shape, tflops))
    for k, _, tflops in MULTICTA_RUNS:
        shape = 8192, 8192, k
        yield Elsewhere(MULTICTA, "cuBLAS", "f16", shape, _us(shape, tflops), "f16")
    for *shape, us in SCALED_RUNS:
        m, n, k = map(int, shape)
        yield Elsewhere(SCALED_ROWS, "the fastest", "e4m3", (m, n, k), us)
    for *shape, us in FOUR_BIT_RUNS:
        m, n, k = map(int, shape)
        yield Elsewhere(FOUR_BIT, "the fastest", "nvfp4", (m, n, k), us)


def every_time() -> list[Elsewhere]:
    """All that are used, source by source."""
    return [*_known(), *_of_libraries()]


def predicted_us(one: Elsewhere) -> float:
    """Microseconds by the estimate: of the published kernel, else of the chosen schedule."""
    if one.passes:
        from ..ladder.speeds import predicted_as_timed

        kinds = one.source.inputs, one.dtype, one.c_dtype
        timed = Timed(one.passes, one.source.name, one.shape, None, *kinds)
        found = predicted_as_timed(timed, CHIP)
        assert found is not None  # of a chip whose MMAs it knows
        return found.total_us
    return _predicted_scaled(one) if one.dtype in ("mxfp8", "nvfp4") else _predicted_choice(one)


def _predicted_scaled(one: Elsewhere) -> float:
    from ...compiler.schedule.estimates.scaled_estimate import scaled_estimate
    from ...compiler.schedule.kinds.scaled_schedule import mma_of_spec, scaled_schedule
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import find_target

    spec, target = MatmulSpec(*one.shape, one.dtype, one.dtype, one.c_dtype), find_target(CHIP)
    schedule = one.scaled or scaled_schedule(spec, target)
    inputs = one.source.inputs
    how = {"inputs": inputs, "overlaps": one.scaled is None}  # Gluon's example 04 never does
    return scaled_estimate(spec, target, mma_of_spec(spec), schedule, **how).total_us


def _predicted_choice(one: Elsewhere) -> float:
    from ...compiler.schedule.estimates.tensor_estimate import tensor_estimate
    from ...compiler.schedule.estimates.tensor_steps import CHOSEN
    from ...compiler.schedule.problem import Problem
    from ...compiler.schedule.search.choice import choose_schedule
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import find_target

    spec, target = MatmulSpec(*one.shape, one.dtype, one.dtype, one.c_dtype), find_target(CHIP)
    schedule = choose_schedule(spec, target)
    problem = Problem.of(spec, target).seen_by(schedule)
    traits = replace(CHOSEN, inputs=one.source.inputs)
    return tensor_estimate(problem, schedule, target, traits).total_us


HEADER = """# Times of a B200 that others published, and the estimate

The estimate for `sm_100a` was held to fifteen kernels of two publications
([ladder.md](../ladder.md#what-is-predicted)). The times below are of other authors, kernels, types
and shapes. Nothing here was measured on a kernel of this compiler.

No figure of the estimate was fitted to these times, but they are no blind test of it. Two of its
terms were compared with them before they were kept, each with and without it: the share of DRAM's
time that is not hidden, whose value is an H200's, and the room in L2 of what is written.

A prediction is of the published kernel where its tile and stages are known. Elsewhere it is of the
schedule that is chosen here, beside the fastest kernel of a library: how far apart they are says as
much of that kernel as of the estimate. A negative error means that the estimate is faster than what
was measured.
"""
NOTES = """
- **Known kernels** but those of CUTLASS's profiler are predicted within 20 %, half of them within
  7 %. Runs at 16384³ and 32768³ take 2 to 30 ms each: there the clock falls further than in the
  short runs that the predictions are of.
- **CUTLASS's profiler** starts kernels from the host. Its times below 20 µs are 2 to 4 µs longer
  than predicted, those of 25 µs agree within 11 %.
- **cuBLAS in runs of 10 s** is met within 16 % for f16, half of them within 9 %, by the clock of
  long runs. For fp8, whose tensor cores are busy for half as long, that clock is too low:
  predictions are 16 to 36 % slow.
- **Few rows** of bf16 are estimated up to 33 % slow where operands stay in L2 from run to run, as
  vLLM's do: the estimate counts them from DRAM. One row by cuBLAS takes longer than 16 do, by
  another kernel.
- **Few rows of fp8 with L2 flushed**, up to 64, are estimated up to 19 % faster than the fastest of
  three libraries. Tiles of the libraries are not known;
  the one known kernel of such shapes, CUTLASS's, is predicted within 11 % where it is long.
- **One row of nvfp4** with a long K takes libraries 69 to 82 % longer than the estimate of what is
  chosen here, which splits K over the grid.

Left out were times that a host's launches decide, times of other chips and power limits (GB200,
B300, 750 W), and kernels that their authors call untuned, such as pyptx's pairs.

Generated by `python -m tilewright.tools.pages.published_elsewhere`; a test compares it.
"""


def render() -> str:
    """The page."""
    times = [(one, predicted_us(one)) for one in every_time()]
    parts = [HEADER, *_summary(times), NOTES.strip("\n")]
    for source in dict.fromkeys(one.source for one, _ in times):
        parts += ["", f"## {source.name}", "", f"{source.url}: {source.how}.", ""]
        parts += ["| kernel | type | shape | published, µs | predicted, µs | error |"]
        parts += ["|---|---|---|---|---|---|"]
        parts += [_row(one, us) for one, us in times if one.source is source]
    return "\n".join(parts) + "\n"


def _summary(times: list[tuple[Elsewhere, float]]) -> list[str]:
    rows = ["| source | kernels | times | median error | largest |", "|---|---|---|---|---|"]
    for source in dict.fromkeys(one.source for one, _ in times):
        for known in (True, False):
            errors = [
                us / one.us - 1
                for one, us in times
                if one.source is source and one.is_known is known
            ]
            if errors:
                which = "known" if known else "a library's"
                most = max(errors, key=abs)
                cells = source.name, which, str(len(errors)), _percent(median(errors))
                rows.append(f"| {' | '.join(cells)} | {_percent(most)} |")
    return [*rows, ""]


def _row(one: Elsewhere, us: float) -> str:
    shape = "×".join(map(str, one.shape))
    error = _percent(us / one.us - 1)
    return f"| {one.kernel} | {one.dtype} | {shape} | {one.us:.1f} | {us:.1f} | {error} |"


def _percent(share: float) -> str:
    return f"{100 * share:+.0f} %"


if __name__ == "__main__":
    sys.exit(as_process(lambda: print_document(render())))
