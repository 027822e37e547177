"""What the provider of torch.compile costs the host for models, in CPU seconds, without a GPU.

    python benchmarks/host/model_compile_time.py [--target sm_90a] [--only gpt2] [--processes 0]
    python benchmarks/host/model_compile_time.py --profile      where this process spends it

Models are those of examples/, in their real sizes on torch's meta device. torch traces them before
the clock starts, as it does for Inductor alone. Then, for each graph of a model:

    products    how many there are, and how many different kernels are compiled for them
    own         CPU seconds of this process: regions are found, schedules chosen and kernels
                compiled, of either as many as a helper does
    helpers     CPU seconds of the processes that choose and compile with it, and of ptxas
    wall        seconds of all that
    again       CPU seconds of the same with every kernel in the cache, as in a process that only
                traces the model anew

A GPU would then race each region against Inductor's kernels, which is not measured here. Each model
runs in a process of its own, --repeat times; the least of each figure is printed.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import gc
import json
import os
import platform
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
COLUMNS = ("own", "helpers", "wall", "again")
CACHES = type(functools.lru_cache(len))
MODELS = ("gpt2 step", "gpt2 any tokens", "llama prefill", "llama decode", "llama any tokens")


def main() -> None:
    options = parse_options()
    if options.model:
        print(json.dumps(measured(options.model, options)))
        return
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(f"CPU s, {options.target}, least of {options.repeat}, {machine}\n")
    print(f"| model | products | kernels | {' | '.join(COLUMNS)} |")
    print("|---" * (3 + len(COLUMNS)) + "|")
    for name in MODELS:
        if options.only in name:
            runs = [in_a_process(name) for _ in range(options.repeat)]
            cells = " | ".join(f"{min(run[column] for run in runs):.2f}" for column in COLUMNS)
            found = runs[0]
            print(f"| {name} | {found['products']} | {found['count']} | {cells} |", flush=True)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--processes", type=int, default=0, help="0 for as many as processors")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="print where this process spends it")
    parser.add_argument("--model", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def in_a_process(name: str) -> dict[str, Any]:
    """The figures of one model; what it says beside them is shown."""
    with tempfile.TemporaryDirectory() as folder:
        known = {**os.environ, "TILEWRIGHT_CACHE": folder}
        words = [sys.executable, __file__, *sys.argv[1:], "--model", name]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=known)
    *said, last = done.stdout.splitlines()
    print(*said, sep="\n", end="\n" if said else "")
    return json.loads(last)


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model in this process, whose cache is empty."""
    graphs = graphs_of_model(name)
    provide(graphs[:0], options)  # imports what it needs
    profiler = cProfile.Profile() if options.profile else None
    if profiler is not None:
        profiler.enable()
    before, begun = used(), time.perf_counter()
    products, kernels = provide(graphs, options)
    after, ended = used(), time.perf_counter()
    if profiler is not None:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)
    forget()
    middle = used()
    provide(graphs, options)
    own, helpers = (end - start for start, end in zip(before, after, strict=True))
    again = sum(used()) - sum(middle)
    return {"products": products, "count": kernels, "own": own, "helpers": helpers,
            "wall": ended - begun, "again": again}  # fmt: skip


def provide(graphs: list[Any], options: argparse.Namespace) -> tuple[int, int]:
    """Find the regions of graphs and compile their kernels: how many products, how many kernels."""
    from tilewright.compiler.inductor.graph_pass import compiled_regions
    from tilewright.compiler.inductor.settings import Settings
    from tilewright.compiler.inductor.symbols import numbered

    settings = Settings("emulator", options.target, processes=options.processes)
    count, kernels = 0, set()
    for graph in graphs:
        graphs_of_numbers = numbered(graph)
        seen = graphs_of_numbers.first if graphs_of_numbers else graph
        products = [each for each in products_of(seen) if each.is_static()]
        found, _ = compiled_regions(graph, products, options.target, settings, graphs_of_numbers)
        count += len(products)
        kernels |= {key for each in found for key in each.prepared.jobs}
    return count, len(kernels)


def products_of(graph: Any) -> list[Any]:
    """The products of a graph on any device."""
    from tilewright.compiler.inductor.products import Product, product_of

    return [found for node in graph.nodes if isinstance(found := product_of(node), Product)]


def forget() -> None:
    """Drop what this process remembers of kernels and schedules."""
    for cached in [each for each in gc.get_objects() if type(each) is CACHES]:
        if str(getattr(cached, "__module__", "")).startswith("tilewright."):
            cached.cache_clear()


def used() -> tuple[float, float]:
    """CPU seconds of this process and of those that it has waited for."""
    usage = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own, children = (each.ru_utime + each.ru_stime for each in usage)
    return own, children


def graphs_of_model(name: str) -> list[Any]:
    """The graphs that torch makes of a model, of sizes or of symbols."""
    import torch

    from tilewright.compiler.inductor.collect import graphs_of

    sys.path.insert(0, str(EXAMPLES))
    import gpt2
    import llama_block

    any_tokens, tokens = name.endswith("any tokens"), 16 if name == "llama decode" else 1024
    with torch.device("meta"):
        if name.startswith("gpt2"):
            sizes = gpt2.Sizes(**{**vars(gpt2.SMALL), "layers": 2})
            model = gpt2.GPT(sizes).bfloat16().requires_grad_(not any_tokens)
            given = torch.zeros(8, tokens, dtype=torch.int64)
        else:
            sizes = llama_block.LLAMA_3_8B
            model = llama_block.Block(sizes).bfloat16().requires_grad_(False)
            given = torch.empty(1, tokens, sizes.hidden, dtype=torch.bfloat16)
    if any_tokens:
        torch._dynamo.mark_dynamic(given, 1)
    return graphs_of(model, (given,), name.endswith("step"))


if __name__ == "__main__":
    main()
