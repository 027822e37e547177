"""How fast silu(x·Gᵀ) * (x·Uᵀ) is in one kernel, beside two kernels, torch and Inductor.

    python benchmarks/swiglu.py compile FOLDER [--target sm_90a] [--shapes 8192x14336x4096,…]
    python benchmarks/swiglu.py run FOLDER [--rounds 15] [--json PATH] [--no-inductor]

`compile` needs no GPU, but torch to trace the epilogue. It writes FOLDER/MxNxK.VARIANT.zip: one
kernel by each of the schedules below, where "chosen" is the compiler's, "kept" the same with both
sums as outputs in bf16, as training keeps them, and the plain product of "two", which is launched
for G and for U. `run` needs no compiler: `runtime` importable as
tilewright.runtime, torch, numpy and cuda-python. Outputs are compared with torch's in float32
first. Each contender is captured in a CUDA graph of several calls; contenders take turns, and times
are medians. TFLOP/s count both products.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from contenders import captured, comparison_parser, measured, parsed, timed, write_bundle

SHAPES = ("8192x14336x4096", "8192x8192x8192", "4096x11008x4096", "512x14336x4096")
STATIC = "warp-specialization,persistence{order=grouped group=8}"
HEAD = "tma-insertion{box=3d},swizzle-selection,epilogue-staging{columns=32 buffers=2}"
VARIANTS = {
    "chosen": None,
    "128x256": f"tiling{{tile=128x256x64}},{HEAD},pipelining{{stages=4}},{STATIC}",
    "128x256-2x1": f"tiling{{tile=128x256x64}},{HEAD},clustering{{shape=2x1 pair=false}},"
    f"pipelining{{stages=4}},{STATIC}",
    "256x128": f"tiling{{tile=256x128x64}},{HEAD},clustering{{shape=2x1 pair=false}},"
    f"pipelining{{stages=4}},{STATIC}",
    "ping-pong": f"tiling{{tile=128x128x64}},{HEAD},pipelining{{stages=5}},{STATIC},ping-pong",
    "ping-pong-64x256": f"tiling{{tile=64x256x64}},{HEAD},pipelining{{stages=4}},{STATIC},"
    "ping-pong",
}
TWO, KEPT = "two", "kept"


def main() -> int:
    options = parse_options()
    if options.what == "compile":
        return compile_all(options)
    return measured(options, measure)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, ",".join(SHAPES), of_shapes="MxNxK,… of one product")
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    run = "rounds", "json", "no_inductor"
    return parsed(parser, compile=("target", "shapes"), run=run)


def swiglu(gate: Any, up: Any) -> Any:
    """The epilogue."""
    import torch

    return torch.nn.functional.silu(gate) * up


def kept_swiglu(gate: Any, up: Any) -> Any:
    """The epilogue that keeps what a backward pass needs."""
    import torch

    return swiglu(gate, up), gate.to(torch.bfloat16), up.to(torch.bfloat16)


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes and variants; 1 where one is refused."""
    from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.spec import MatmulSpec

    options.folder.mkdir(parents=True, exist_ok=True)
    made = []
    for shape in options.shapes.split(","):
        m, n, k = map(int, shape.split("x"))

        def source(function: Any, m: int = m, n: int = n, k: int = k) -> LinalgText:
            spec, frame = MatmulSpec(m, n, k, products=2), Frame.of([m, n], 0)
            spec, epilogue, *_ = import_epilogue(spec, frame, function, [])
            return LinalgText(spec.mlir_text(epilogue), "swiglu", ("a", "g", "u"))

        sources = {name: (source(swiglu), pipeline) for name, pipeline in VARIANTS.items()}
        sources[KEPT] = source(kept_swiglu), None
        sources[TWO] = MatmulSpec(m, n, k), None
        made += [
            write_bundle(each, options.folder / f"{shape}.{name}.zip", options.target, pipeline)
            for name, (each, pipeline) in sources.items()
        ]
    return int(not all(made))


def measure(shape: str, kernels: dict[str, Any], options: argparse.Namespace) -> list[Any]:
    """Compare every contender with torch in float32, then time all."""
    import torch

    m, n, k = map(int, shape.split("x"))
    torch.manual_seed(0)
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    g, u = (torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5 for _ in "gu")
    wanted = swiglu(x.float() @ g.float().T, x.float() @ u.float().T)
    calls = contenders(kernels, (x, g, u), not options.no_inductor)
    right = {}
    for name, call in calls.items():
        error = (call().float() - wanted).abs().max().item() / wanted.abs().max().item()
        right[name] = error < 2**-6
    times = timed({name: captured(call) for name, call in calls.items()}, options.rounds)
    operations, rows = 4 * m * n * k, []
    for name, us in sorted(times.items(), key=lambda pair: pair[1]):
        tera, against = operations / us / 1e6, times["eager"] / us
        mark = "" if right[name] else "  WRONG"
        print(f"{shape:18} {name:18} {us:9.1f} us {tera:7.1f} TF {against:6.3f}x{mark}")
        row = {"shape": shape, "name": name, "us": us, "tflops": tera}
        rows.append(row | {"against_eager": against, "right": right[name]})
    return rows


def contenders(
    kernels: dict[str, Any], operands: tuple[Any, Any, Any], inductor: bool
) -> dict[str, Callable[[], Any]]:
    """One kernel of each schedule, two of ours and an elementwise one, torch, and Inductor."""
    import torch

    x, g, u = operands
    linear = torch.nn.functional.linear

    def torchs(x: Any, g: Any, u: Any) -> Any:
        return swiglu(linear(x, g), linear(x, u))

    found: dict[str, Callable[[], Any]] = {"eager": lambda: torchs(x, g, u)}
    if inductor:
        compiled = torch.compile(torchs, mode="max-autotune-no-cudagraphs")
        found["inductor"] = lambda: compiled(x, g, u)
    for name, kernel in kernels.items():
        if name == TWO:
            found[name] = lambda kernel=kernel: swiglu(kernel(x, g), kernel(x, u))
        elif name == KEPT:
            found[name] = lambda kernel=kernel: kernel(x, g, u)[0]
        else:
            found[name] = lambda kernel=kernel: kernel(x, g, u)
    return found


if __name__ == "__main__":
    sys.exit(main())
