"""The fastest product of any tool, and what fused kernels could gain if they were as fast.

    python benchmarks/fastest_products.py run FOLDER [--shapes 4096x4096x4096,…] [--cublaslt 8]
                                                     [--rounds 5] [--rest 0] [--json PATH]
                                                     [--fused FUSED.json]

FOLDER is one that `epilogues.py compile` has written. Of each shape its plain kernel, further ones
of the same product in FOLDER/MxNxK.plain.NAME.zip, torch's product and those of so many algorithms
that cublasLt's heuristics propose take turns by the clock `apart`, as in `epilogues.py run`.
FUSED.json is what `epilogues.py run --clocks apart --json FUSED.json` has written with the same
`--rest`. The last line then compares the fastest of eager, cublasLt and Inductor of each of its
cases with the fastest product, or with the fused kernel where that took less: an upper bound of
what any fused kernels reach while no tool has a faster product.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contenders import add_rest, bundles_of, comparison_parser, parsed, reported
from cublaslt_algorithms import algorithms
from epilogue_functions import is_near
from epilogues import PLAIN, PRODUCT, SHAPES, best, free


def main() -> int:
    options = parse_options()
    rows = [
        measure(shape, options)
        for shape in options.shapes.split(",")
        if (options.folder / f"{shape}.{PLAIN}.zip").exists()
    ]
    if options.fused:
        print(bound(rows, json.loads(options.fused.read_text())))
    return reported(rows, options.json)


def parse_options() -> Any:
    parser = comparison_parser(__doc__, SHAPES, ("run",), rounds=5)
    parser.add_argument("--cublaslt", type=int, default=8, help="its algorithms (default 8)")
    parser.add_argument("--fused", type=Path, metavar="PATH", help="rows of epilogues.py run")
    add_rest(parser)
    return parsed(parser, run=("shapes", "cublaslt", "rounds", "rest", "json", "fused"))


def measure(shape: str, options: Any) -> dict[str, Any]:
    """The microseconds of every product of a shape, which is also printed."""
    import torch

    from tilewright.runtime.gpu.graphs import APART, measure_in_graphs

    m, n, k = map(int, shape.split("x"))
    torch.manual_seed(0)
    on = {"device": "cuda", "dtype": torch.bfloat16}
    x, w = torch.randn(m, k, **on), torch.randn(n, k, **on) / k**0.5
    calls = products(shape, options, x, w)
    wanted = x.float() @ w.float().T
    wrong = sorted(name for name, call in calls.items() if not is_near(call(0), wanted))
    us = measure_in_graphs(calls, 1, options.rounds, (APART,), options.rest)[APART]
    fastest = min(us, key=lambda name: us[name])
    told = "  ".join(f"{name} {each:.1f}" for name, each in us.items())
    wrongs = f"  WRONG: {', '.join(wrong)}" if wrong else ""
    print(f"{shape:18} {fastest} / {PLAIN} {us[fastest] / us[PLAIN]:.3f}  {told}{wrongs}")
    return {"shape": shape, "us": us, "right": not wrong}


def products(shape: str, options: Any, x: Any, w: Any) -> dict[str, Callable[[int], Any]]:
    """Ours, torch's and cublasLt's launches of x times w transposed."""
    import torch

    from tilewright.runtime import load

    found: dict[str, Callable[[int], Any]] = {PRODUCT: lambda _: torch.nn.functional.linear(x, w)}
    for path in bundles_of(options.folder, f"{shape}.{PLAIN}*.zip"):
        call = load(path)
        found[path.stem.partition(".")[2]] = lambda _, call=call: call(x, w)
    for number, call in enumerate(algorithms(x, w, options.cublaslt)):
        found[f"cublaslt{number}"] = call
    return found


def bound(rows: list[dict[str, Any]], fused: list[dict[str, Any]]) -> str:
    """What the fastest others take beside the fastest products, in words."""
    least = {row["shape"]: min(row["us"].values()) for row in rows}
    ratios = [
        best(row) / min(least[row["shape"]], free(row)) for row in fused if row["shape"] in least
    ]
    if not ratios:
        return "no case of the fused rows has a shape of these"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"best / fastest product of {len(ratios)}: geometric mean {mean:.3f}"


if __name__ == "__main__":
    sys.exit(main())
