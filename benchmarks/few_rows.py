"""How fast products of few rows are by lanes and by tiles, beside torch, Inductor and a copy.

    python benchmarks/few_rows.py compile FOLDER [--target h100] [--shapes MxNxK,…]
    python benchmarks/few_rows.py run FOLDER [--rounds 15] [--json PATH] [--no-inductor]

A shape is MxNxK, or Mx2xNxK of silu(x·Gᵀ) * (x·Uᵀ). `compile` writes FOLDER/SHAPE.tiles.zip, by
the best schedule of a tensor core, and of rows that lanes take FOLDER/SHAPE.lanes.zip, by that of
`compiler/schedule/kinds/lane_schedule.py`. `run` compares each output with float64, on a poisoned
one, and times all in CUDA graphs with a small kernel behind each launch (runtime/gpu/graphs.py),
with weights that together exceed L2 three times. `copy` is torch's of half of the weights to the
other half, which moves as many bytes as reading all. Inductor compiles with max-autotune.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from contenders import comparison_parser, measured, parsed, write_bundle

SHAPES = (
    "1x1024x4096,1x4096x4096,1x6144x4096,1x28672x4096,1x2x14336x4096,1x4096x14336,1x1024x8192,"
    "1x8192x8192,"
    "1x8192x28672,1x5120x5120,1x2304x768,1x768x3072,1x128256x4096,2x4096x4096,2x28672x4096,4x1024x4096"
)
WEIGHTS_BYTES = 160e6  # of all sets together
DEVIATION = 1 / 64  # of weights, so that functions of the sums have something to do


def main() -> int:
    options = parse_options()
    if options.what == "compile":
        return compile_all(options)
    return measured(options, measure)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, SHAPES, of_shapes="MxNxK or Mx2xNxK,…")
    parser.set_defaults(target="h100")
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    run = "rounds", "json", "no_inductor"
    return parsed(parser, compile=("target", "shapes"), run=run)


def sizes_of(shape: str) -> tuple[int, int, int, int]:
    """M, products, N and K."""
    m, *products, n, k = map(int, shape.split("x"))
    return m, *(products or [1]), n, k


def swiglu(gate: Any, up: Any) -> Any:
    """The epilogue of two products."""
    import torch

    return torch.nn.functional.silu(gate) * up


def compile_all(options: argparse.Namespace) -> int:
    """Both kernels of all shapes; 1 where one is refused."""
    from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.schedule.kinds.lane_schedule import lane_schedule, lanes_take
    from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
    from tilewright.compiler.spec import MatmulSpec

    options.folder.mkdir(parents=True, exist_ok=True)
    made = []
    for shape in options.shapes.split(","):
        m, products, n, k = sizes_of(shape)
        spec: MatmulSpec = MatmulSpec(m, n, k, products=products)
        source: Any = spec
        if products == 2:
            spec, epilogue, *_ = import_epilogue(spec, Frame.of([m, n], 0), swiglu, [])
            source = LinalgText(spec.mlir_text(epilogue), "swiglu", ("a", "g", "u"))
        target = target_for(spec, options.target)
        kinds: dict[str, Any] = {"tiles": choose_schedule}
        if lanes_take(spec):
            kinds["lanes"] = lane_schedule
        for name, choose in kinds.items():
            path = options.folder / f"{shape}.{name}.zip"
            made.append(write_bundle(source, path, options.target, choose(spec, target).pipeline()))
    return int(not all(made))


def measure(shape: str, kernels: dict[str, Any], options: argparse.Namespace) -> list[Any]:
    """Compare every contender with float64, then time all."""
    import torch

    from tilewright.runtime.gpu.graphs import APART, measure_in_graphs

    m, products, n, k = sizes_of(shape)
    weights = products * n * k * 2
    sets = [tensors(m, products, n, k, seed) for seed in range(2 + int(WEIGHTS_BYTES / weights))]
    calls = contenders(kernels, sets, options)
    x, *bs, out = sets[0]
    sums = [x.double() @ b.double().T for b in bs]
    wanted = swiglu(*sums) if products == 2 else sums[0]
    right = {}
    for name, call in calls.items():
        out.fill_(torch.nan)
        given = call(0)
        error = ((given if name == "inductor" else out).double() - wanted).norm() / wanted.norm()
        right[name] = name == "copy" or error.item() < 2**-7
    times = measure_in_graphs(calls, len(sets), options.rounds, (APART,))[APART]
    rows = []
    for name, us in sorted(times.items(), key=lambda pair: pair[1]):
        mark = "" if right[name] else "  WRONG"
        print(f"{shape:18} {name:10} {us:8.2f} us {weights / us / 1e6:6.2f} TB/s{mark}")
        rows.append({"shape": shape, "name": name, "us": us, "right": right[name]})
    return rows


def tensors(m: int, products: int, n: int, k: int, seed: int) -> list[Any]:
    """x, the weights and a result."""
    import torch

    torch.manual_seed(seed)
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    weights = [torch.randn(n, k, **kind) * DEVIATION for _ in range(products)]
    return [torch.randn(m, k, **kind), *weights, torch.empty(m, n, **kind)]


def contenders(
    kernels: dict[str, Any], sets: list[list[Any]], options: argparse.Namespace
) -> dict[str, Callable[[int], Any]]:
    """Calls of the number of a set."""
    import torch

    def ours(kernel: Any, number: int) -> Any:
        *given, out = sets[number]
        return kernel(*given, out=out)

    def copy(number: int) -> Any:
        for weights in sets[number][1:-1]:
            half = weights.numel() // 2
            weights.view(-1)[:half].copy_(weights.view(-1)[half : 2 * half])

    found: dict[str, Callable[[int], Any]] = {
        name: partial(ours, kernel) for name, kernel in kernels.items()
    }
    if len(sets[0]) == 3:
        found["torch.mm"] = lambda number: torch.mm(
            sets[number][0], sets[number][1].T, out=sets[number][2]
        )
    if not options.no_inductor:
        linear = torch.nn.functional.linear

        def product(x: Any, *weights: Any) -> Any:
            sums = [linear(x, each) for each in weights]
            return swiglu(*sums) if len(sums) == 2 else sums[0]

        torch._dynamo.reset()
        compiled = torch.compile(product, mode="max-autotune-no-cudagraphs", dynamic=False)
        found["inductor"] = lambda number: compiled(*sets[number][:-1])
    return {**found, "copy": copy}  # the last to be called: it changes the weights


if __name__ == "__main__":
    sys.exit(main())
