"""What a run-time K costs against one that the compiler knew, in gradients of weights.

    python benchmarks/dynamic_k.py compile FOLDER [--target sm_90a] [--shapes 768x768x8192,…]
    python benchmarks/dynamic_k.py measure FOLDER [--rounds 9] [--json PATH]

A gradient of M×N has K rows of both operands in memory. `compile` needs no GPU. For each M and N of
the shapes it writes FOLDER/MxN.any.zip, one bundle for any K, as `tilewright compile --k dynamic`
makes it, and for each shape two kernels of it alone: FOLDER/MxNxK.static.zip with the schedule that
is chosen for it, and FOLDER/MxNxK.same.zip with the passes of the bundle's kernel for such a K.

`measure` needs torch and a GPU, and no compiler: these and cuBLAS take turns on the same inputs, in
CUDA graphs with a small kernel between, each is held to float64 first, and the table has the median
microseconds. Beside `same` stands what the run-time K costs by itself, beside `static` what sharing
kernels costs, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from contenders import bundles_of

GRADIENTS = {
    (768, 768): (512, 1024, 2048, 4096, 8192, 16384, 65536),
    (768, 3072): (2048, 8192),
    (3072, 768): (2048, 8192),
    (200, 136): (256, 1024, 4096, 8192, 32768, 131072),
    (1024, 4096): (4096, 16384),
    (4096, 4096): (1024, 4096, 16384),
}
SHAPES = ",".join(f"{m}x{n}x{k}" for (m, n), ks in GRADIENTS.items() for k in ks)
KINDS = ("static", "same", "any")
CUBLAS = "cuBLAS"


def main() -> None:
    options = parse_options()
    {"compile": compile_all, "measure": measure_all}[options.do](options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("do", choices=("compile", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", help="chip or GPU (default sm_90a)")
    parser.add_argument("--shapes", default=SHAPES, help="MxNxK,…")
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile (default 2)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the rows")
    return parser.parse_args()


def sizes_of(shape: str) -> list[int]:
    return [int(size) for size in shape.split("x")]


def bundle_of_any(shape: str) -> str:
    """The name of the bundle that takes a shape's product with any K."""
    m, n, _ = sizes_of(shape)
    return f"{m}x{n}.any.zip"


def compile_all(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    shapes = options.shapes.split(",")
    weights = {bundle_of_any(shape): shape for shape in shapes}
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for line in pool.map(compile_any, weights.values(), [options] * len(weights)):
            print(line, flush=True)
        each = list(product(shapes, ("static", "same")))
        for line in pool.map(compile_one, *zip(*each, strict=True), [options] * len(each)):
            print(line, flush=True)


def compile_any(shape: str, options: argparse.Namespace) -> str:
    """Write the bundle for any K; how many kernels it has."""
    from tilewright.compiler.buckets import compile_buckets
    from tilewright.compiler.bundle_writer import write_several
    from tilewright.compiler.spec import DEPTH_HINT, MatmulSpec

    m, n, _ = sizes_of(shape)
    spec = MatmulSpec(m, n, DEPTH_HINT, dynamic_k=True, a_major="m", b_major="n")
    kernels = compile_buckets(spec, target=options.target)
    write_several(options.folder / bundle_of_any(shape), kernels)
    return f"{bundle_of_any(shape)}  {len(kernels)} kernels"


def compile_one(shape: str, kind: str, options: argparse.Namespace) -> str:
    """Write a kernel of one shape; its passes."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.runtime import read_bundle

    m, n, k = sizes_of(shape)
    pipeline = None
    if kind == "same":
        shared = read_bundle(options.folder / bundle_of_any(shape))
        pipeline = shared.at(k).manifest["pipeline"]
    spec = MatmulSpec(m, n, k, a_major="m", b_major="n")
    compiled = compile_matmul(spec, target=options.target, pipeline=pipeline)
    as_bundle(compiled, options.folder / f"{shape}.{kind}.zip")
    return f"{shape}.{kind}  {compiled.pipeline}"


def measure_all(options: argparse.Namespace) -> None:
    from tilewright.runtime.launch.comparison import machine
    from tilewright.runtime.launch.devices import why_no_gpu

    if reason := why_no_gpu():
        sys.exit(f"error: {reason}")
    rows = []
    shapes = [path.name.partition(".")[0] for path in bundles_of(options.folder, "*.static.zip")]
    print("| shape | cuBLAS [µs] | static | same | any K | any K / static | any K / same |")
    print("|---" * 7 + "|")
    for shape in sorted(shapes, key=sizes_of):
        rows.append({"shape": shape, "us": measure(shape, options)})
        print(line(**rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    for name in ("static", "same"):
        costs = [row["us"]["any"] / row["us"][name] for row in rows]
        mean = statistics.geometric_mean(costs)
        print(f"beside {name}: {mean:.3f} of its time on average, at most {max(costs):.3f}")


def measure(shape: str, options: argparse.Namespace) -> dict[str, float]:
    """Median microseconds of all contenders for one shape, taken in turns."""
    from gpu import torch_product

    from tilewright.runtime import load
    from tilewright.runtime.gpu.graphs import APART, measure_in_graphs
    from tilewright.runtime.launch.comparison import check, count_sets, make_set

    paths = [options.folder / f"{shape}.{kind}.zip" for kind in ("static", "same")]
    kernels = [load(path) for path in (*paths, options.folder / bundle_of_any(shape))]
    tensors = kernels[0].manifest["tensors"]
    sets = [make_set(tensors, seed) for seed in range(count_sets(tensors))]

    def launch(kernel: Any, number: int) -> None:
        a, b, c = sets[number]
        kernel(a, b, out=c)

    calls: dict[str, Any] = {
        kind: lambda number, kernel=kernel: launch(kernel, number)
        for kind, kernel in zip(KINDS, kernels, strict=True)
    }
    products = [torch_product(*each) for each in sets]
    calls[CUBLAS] = lambda number: products[number]()
    for name, call in calls.items():
        check(f"{shape} {name}", call, sets[-1], len(sets) - 1)
    return measure_in_graphs(calls, len(sets), options.rounds, (APART,))[APART]


def line(shape: str, us: dict[str, float]) -> str:
    times = " | ".join(f"{us[name]:.2f}" for name in (CUBLAS, *KINDS))
    costs = " | ".join(f"{us['any'] / us[name]:.3f}" for name in ("static", "same"))
    return f"| {shape.replace('x', '×')} | {times} | {costs} |"


if __name__ == "__main__":
    main()
