"""How fast matmuls with fused epilogues are, beside the matmul alone, torch, cublasLt, Inductor.

    python benchmarks/epilogues.py compile FOLDER [--target sm_90a] [--shapes 4096x4096x4096,…]
                                                  [--only gelu,silu] [--math fast]
    python benchmarks/epilogues.py count FOLDER [--json PATH]
    python benchmarks/epilogues.py prepare FOLDER [--shapes …] [--only …]
    python benchmarks/epilogues.py run FOLDER [--shapes …] [--only …] [--rounds 15] [--json PATH]
                                              [--no-inductor | --processes] [--seconds 600]
                                              [--clocks chain,apart] [--rest 0 [--busy]]

`compile` needs no GPU, but torch to trace epilogues. It writes FOLDER/MxNxK.EPILOGUE.zip, bf16 with
the weight as N×K, and FOLDER/MxNxK.plain.zip. A name such as residual.turns asks for a schedule of
`WAYS`. `count` needs nvdisasm: it prints the instructions an element of C that a kernel has beyond
the plain one's, which is one element's share of the code that a thread executes once a tile, and
the bytes of all its code. `prepare` compiles Inductor's candidates and measures nothing
(`inductor_ahead`), so that `run` finds them in the caches that the environment names. `run`
needs no compiler: `runtime` importable as tilewright.runtime, torch, numpy and cuda-python. Every
contender is compared with torch in float32 first, then captured in CUDA graphs of up to 16 calls,
which take turns; times are medians. By the clock `chain` calls follow each other, by `apart` a
kernel of one element stands behind each, which is part of the time. "At no cost" and the last
lines compare the fastest other with the product alone, ours or torch's, whichever is faster: no
fused kernel gains more while products take as long as they do. Without `--rest` the GPU is never
idle, and long products run at the limit of its power; `--rest 2` leaves it alone twice as long as
each batch took, as other kernels of a model do; with `--busy` each case is then measured without
rests, too. Inductor tunes itself (max-autotune), which takes up to half a minute an epilogue and
shape. `--processes` builds each shape in a process of its own, all at the same time, and measures
one epilogue after the other when all are built. Behind `--seconds` nothing more is begun by
Inductor, and what is left is measured without it. What Inductor tunes and compiles is kept in the
folder that TORCHINDUCTOR_CACHE_DIR names, so that another run with the same measures at once.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from contenders import add_rest, bundles_of, check_known, comparison_parser, parsed, reported
from epilogue_functions import (
    CUBLASLT,
    GRADIENTS,
    TWO_OUTPUTS,
    epilogues,
    is_near,
    sizes_of,
    torchs,
)

SHAPES = (
    "2048x4096x1024,4096x4096x4096,8192x8192x2048,8192x4096x4096,2048x11008x4096,4096x14336x4096,"
    "4096x4096x14336,8192x8192x8192,1024x4096x4096,512x14336x4096,16384x4096x1024,4096x1024x4096"
)
PLAIN, PRODUCT, PING = "plain", "product", "ping"
FREE = (PLAIN, PRODUCT, "fused")
"""Contenders of which the fastest takes as long as a product whose epilogue costs nothing."""
INSTRUCTION_BYTES = 16
OTHERS = ("eager", "cublaslt", "inductor")
CLOCKS = ("chain", "apart")
FUNCTIONS = ("gelu", "gelu_tanh", "silu", *GRADIENTS, *TWO_OUTPUTS)
"""Epilogues that `--math` is about."""
VECTORS = ("threads", "ahead", "registers")
"""Ways to read vectors: the chosen schedule with this option of `epilogue-staging`."""
OWN = "own"
"""A way to load a residual: the chosen schedule without `slot-reuse`, to slots of its own."""
Alone = Callable[[], AbstractContextManager[Any]]


class Built(NamedTuple):
    """The contenders of an epilogue, and whether what they give is right."""

    shape: str
    epilogue: str
    calls: dict[str, Callable[[], Any]]
    right: bool


WAYS = {
    "threads": "128x256x64 0 4",
    "few": "128x256x64 2 4",
    "whole": "128x256x64 8 3",
    "narrow": "128x192x64 6 4",
    "turns": "128x128x64 6 5 ping-pong",
}
"""Schedules that differ in how another operand as large as C arrives: the tile, how many pieces of
it are ahead, and the stages."""


def pipeline_of(way: str, chosen: str) -> str:
    """The pipeline of one of `WAYS`, or the chosen one with vectors read in one of `VECTORS`."""
    if way in VECTORS:
        plain = re.sub(r" vectors=\w+", "", chosen)
        return re.sub(r"(epilogue-staging\{[^}]*)", rf"\1 vectors={way}", plain)
    if way == OWN:
        return chosen.replace(",slot-reuse", "")
    tile, ahead, stages, *last = WAYS[way].split()
    staging = f"epilogue-staging{{columns=32 buffers=2 ahead={ahead}}}"
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,{staging}"
    roles = f"pipelining{{stages={stages}}},warp-specialization"
    return ",".join([head, roles, "persistence{order=grouped group=8}", *last])


def main() -> int:
    options = parse_options()
    what = {"compile": compile_all, "count": count_all, "prepare": prepare_all, "run": run_all}
    return what[options.what](options)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, SHAPES, ("compile", "count", "prepare", "run"))
    parser.add_argument("--only", default=",".join(epilogues()), help="epilogues, by commas")
    parser.add_argument("--math", choices=("fast", "exact"), help="policy of the functions")
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    parser.add_argument("--processes", action="store_true", help="build shapes at the same time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for Inductor to begin in")
    parser.add_argument("--clocks", default=",".join(CLOCKS), help="by commas (default both)")
    parser.add_argument("--busy", action="store_true", help="with rests, then without them, too")
    add_rest(parser)
    compiled = "target", "shapes", "only", "math"
    run = "shapes", "only", "rounds", "json", "no_inductor", "processes", "seconds"
    run = *run, "clocks", "rest", "busy"
    prepared = "shapes", "only"
    options = parsed(parser, compile=compiled, count=("json",), prepare=prepared, run=run)
    options.until = 0 if options.no_inductor else time.time() + options.seconds
    names = [*epilogues()]
    ways = [f"{name}.{way}" for name in names for way in (*WAYS, *VECTORS, OWN)]
    check_known(parser, "--only", options.only, [*names, *ways])
    check_known(parser, "--clocks", options.clocks, CLOCKS)
    return options


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes and epilogues."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    options.folder.mkdir(parents=True, exist_ok=True)
    for shape in options.shapes.split(","):
        for each in (PLAIN, *options.only.split(",")):
            m, n, k = map(int, shape.split("x"))
            name, _, way = each.partition(".")
            source = source_of(m, n, k, name)
            kind = {"target": options.target, "math": options.math if name in FUNCTIONS else None}
            compiled = compile_matmul(source, **kind)
            if way:
                how = pipeline_of(way, compiled.pipeline)
                compiled = compile_matmul(source, **kind, pipeline=how)
            as_bundle(compiled, options.folder / f"{shape}.{each}.zip")
            print(f"{shape}.{each:12} {compiled.pipeline}", file=sys.stderr)
    return 0


def source_of(m: int, n: int, k: int, name: str) -> Any:
    """The product with an epilogue, as the compiler takes it."""
    import torch

    from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.importers.traced_function import TensorLike
    from tilewright.compiler.spec import MatmulSpec

    spec = MatmulSpec(m, n, k)
    if name == PLAIN:
        return spec
    likes = [TensorLike(size, torch.bfloat16) for size in sizes_of(name, m, n)]
    spec, made, *_ = import_epilogue(spec, Frame.of([m, n], 0), epilogues()[name], likes)
    names = ("a", "b", *(f"e{number}" for number in range(len(likes))))
    return LinalgText(spec.mlir_text(made), "matmul", names)


def count_all(options: argparse.Namespace) -> int:
    """A table of instructions for each kernel of a shape beside the plain one."""
    found = {path.stem: instructions(path) for path in bundles_of(options.folder)}
    rows = []
    for stem, (own, elements) in found.items():
        shape, _, name = stem.partition(".")
        plain, _ = found[f"{shape}.{PLAIN}"]
        more = {each: own[each] - plain[each] for each in own if own[each] != plain[each]}
        each = sum(more.values()) / elements
        special = sum(count for name, count in more.items() if name.startswith("MUFU")) / elements
        row = {"kernel": stem, "instructions": each, "mufu": special, "more": more}
        rows.append(row | {"code_bytes": own.total() * INSTRUCTION_BYTES})
        said = f"{each:6.2f} an element, {special:5.2f} of them MUFU; " if name != PLAIN else ""
        print(f"{stem:40} {said}{rows[-1]['code_bytes'] / 1000:.0f} kB")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


def instructions(path: Path) -> tuple[Counter[str], int]:
    """How often each opcode stands in the SASS, and the elements of C that a thread has of a tile.

    Code of an epilogue is unrolled: it stands once for each element. Consumers share theirs.
    """
    from tilewright.compiler.inspect_sass import disassemble, parse_kernel
    from tilewright.runtime.bundles.bundle import read_bundle

    bundle = read_bundle(path)
    sass = disassemble(bundle.cubin)
    if sass is None:
        sys.exit("error: count: needs nvdisasm; pip install 'nvidia-cuda-nvdisasm'")
    manifest = bundle.manifest
    m, n, _ = manifest["schedule"]["tile"]
    warps = {role["name"]: role["warps"] for role in manifest["names"]["roles"]}
    threads = 32 * warps.get("consumer", warps.get(PING, 0))
    program = parse_kernel(sass, manifest["entry"])
    return Counter(each.text.split()[0] for each in program), m * n // threads


def prepare_all(options: argparse.Namespace) -> int:
    """Inductor's candidates of all shapes and epilogues, by a process for each shape."""
    shapes = options.shapes.split(",")
    with ProcessPoolExecutor(len(shapes), multiprocessing.get_context("spawn")) as pool:
        for shape, count in zip(
            shapes, pool.map(prepare, shapes, repeat(options.only)), strict=True
        ):
            print(f"{shape:18} candidates of {count} epilogues", file=sys.stderr)
    return 0


def prepare(shape: str, only: str) -> int:
    """Those of a shape; of how many epilogues Inductor has some."""
    import torch
    from built_apart import own_caches
    from inductor_ahead import compiled_ahead, stop_before_measuring

    own_caches(shape)
    stop_before_measuring()
    m, n, k = map(int, shape.split("x"))
    x, w = (torch.empty(each, k, device="cuda", dtype=torch.bfloat16) for each in (m, n))
    count = 0
    for name in dict.fromkeys(each.partition(".")[0] for each in only.split(",")):
        sizes = sizes_of(name, m, n)
        beside = [torch.empty(size, device="cuda", dtype=torch.bfloat16) for size in sizes]
        count += compiled_ahead(lambda name=name, beside=beside: inductors(name, (x, w, beside)))
    return count


def run_all(options: argparse.Namespace) -> int:
    """A table of times for each shape and epilogue."""
    shapes = [
        each
        for each in options.shapes.split(",")
        if (options.folder / f"{each}.{PLAIN}.zip").exists()
    ]
    if options.processes:
        from built_apart import built_apart

        measured = built_apart(shapes, build, measure, options)
    else:
        measured = [measure(case, options) for shape in shapes for case in build(shape, options)]
    rows = [row for rows in measured for row in rows]
    for clock in dict.fromkeys(row["clock"] for row in rows):
        summarize(clock, [row for row in rows if row["clock"] == clock])
    return reported(rows, options.json)


def summarize(clock: str, rows: list[dict[str, Any]]) -> None:
    """Print the means of what others take beside the fused kernels, by one clock."""
    for row in rows:
        row["best"], row["free"] = best(row), free(row)
    pairs = [(each, "fused") for each in (PLAIN, *OTHERS, "best")]
    for against, ours in (*pairs, ("best", PLAIN), ("best", "free")):
        ratios = [row[against] / row[ours] for row in rows if against in row]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            said = f"of {len(ratios)}: geometric mean {mean:.3f}, least {min(ratios):.3f}"
            print(f"{clock}: {against} / {ours} {said}")


def build(shape: str, options: argparse.Namespace, alone: Alone = nullcontext) -> Iterator[Built]:
    """The contenders of a shape's epilogues, each compared with torch.

    What runs on the GPU does so within `alone()`; what Inductor compiles does not.
    """
    import torch

    from tilewright.runtime import load

    m, n, k = map(int, shape.split("x"))
    with alone():
        torch.manual_seed(0)
        x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5
        sums = x.float() @ w.float().T
        plain = load(options.folder / f"{shape}.{PLAIN}.zip")
    for shown in options.only.split(","):
        name = shown.partition(".")[0]
        with alone():
            sizes = sizes_of(name, m, n)
            beside = [torch.randn(size, device="cuda", dtype=torch.bfloat16) for size in sizes]
            kernel = load(options.folder / f"{shape}.{shown}.zip")
        calls = contenders(name, plain, kernel, (x, w, beside))
        if time.time() < options.until:
            calls["inductor"] = inductors(name, (x, w, beside))
        with alone():
            wanted = epilogues()[name](sums, *(each.float() for each in beside))
            right = all(
                is_near(call(), wanted)
                for contender, call in calls.items()
                if contender not in (PLAIN, PRODUCT)
            )
        yield Built(shape, shown, calls, right)


def measure(built: Built, options: argparse.Namespace) -> list[dict[str, Any]]:
    """For each clock the microseconds of every contender, and whether all outputs are right."""
    from tilewright.runtime.gpu.graphs import measure_in_graphs

    launches = {name: lambda _, call=call: call() for name, call in built.calls.items()}
    clocks, rows = options.clocks.split(","), []
    for rest, kind in ((options.rest, ""), *(((0, " busy"),) if options.busy else ())):
        found = measure_in_graphs(launches, 1, options.rounds, clocks, rest)
        rows += [as_row(built, clock + kind, taken_us) for clock, taken_us in found.items()]
    return rows


def as_row(built: Built, clock: str, taken_us: dict[str, float]) -> dict[str, Any]:
    """One row of times, which is also printed."""
    told = "  ".join(f"{each} {us:8.1f}" for each, us in taken_us.items())
    of = {"shape": built.shape, "epilogue": built.epilogue, "clock": clock}
    row = {**of, **taken_us, "right": built.right}
    ratios = [
        f"fused/plain {row['fused'] / row[PLAIN]:.3f}",
        f"best/fused {best(row) / row['fused']:.3f}",
        f"at no cost {best(row) / free(row):.3f}{'' if built.right else '  WRONG'}",
    ]
    told += "  " + "  ".join(ratios)
    print(f"{built.shape:18} {built.epilogue:16} {clock:10} {told}", flush=True)
    return row


def best(row: dict[str, Any]) -> float:
    """The microseconds of the fastest of the others."""
    return min(row[each] for each in OTHERS if each in row)


def free(row: dict[str, Any]) -> float:
    """Those of a product whose epilogue costs nothing: the least of ours with and without it, and
    of torch's."""
    return min(row[each] for each in FREE if each in row)


def contenders(
    name: str, plain: Any, kernel: Any, operands: tuple[Any, Any, list[Any]]
) -> dict[str, Callable[[], Any]]:
    """Ours with and without the epilogue, torch's operators, and cublasLt's."""
    import torch

    x, w, beside = operands
    taken = [each.squeeze(1) if each.shape[-1] == 1 else each for each in beside]
    eager = torchs(name)
    found: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: plain(x, w),
        "fused": lambda: kernel(x, w, *taken),
        "eager": lambda: eager(x, w, *beside),
        PRODUCT: lambda: torch.nn.functional.linear(x, w),
    }
    if name in CUBLASLT:
        none = torch.zeros(w.shape[0], device=w.device, dtype=w.dtype)
        found["cublaslt"] = lambda: torch._addmm_activation(none, x, w.T, **CUBLASLT[name])
    return found


def inductors(name: str, operands: tuple[Any, Any, list[Any]]) -> Callable[[], Any]:
    """The kernels that Inductor chose by max-autotune; they have run once."""
    import torch

    x, w, beside = operands
    torch._dynamo.reset()
    compiled = torch.compile(torchs(name), mode="max-autotune-no-cudagraphs", dynamic=False)
    compiled(x, w, *beside)
    return lambda: compiled(x, w, *beside)


if __name__ == "__main__":
    sys.exit(main())
