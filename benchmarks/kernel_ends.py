"""What a kernel does before its first MMA and after its last, by clocks that it reads itself.

    python benchmarks/kernel_ends.py compile FOLDER [--target sm_90a] [--shapes 1024x1024x1024,…]
                                                    [--pipeline TEXT] [--epilogue residual]
    python benchmarks/kernel_ends.py run FOLDER [--epilogue residual] [--rounds 9] [--json PATH]

`compile` needs no GPU. Of each shape it writes FOLDER/MxNxK.plain.zip, and the same kernel with the
pass `instrument` by each of its clocks; with `--epilogue` one of those that `epilogues.py` names.
`run` needs torch and no compiler. A kernel of one element
stands in front of each launch, and inputs exceed L2. A row has the median over CTAs of each phase,
in microseconds, then the median over launches:

    ramp      from the first CTA's start to this one's
    prologue  until the load role begins: barriers, descriptors, the meeting of the cluster
    issue     until its first slot is asked for
    latency   until the first operands are there
    main      until the sums of the last tile are there
    store     until threads have written them and the store is issued
    drain     until the last bytes have been read by TMA, and the role ends
    whole     from the first start to the last end, and a launch of the plain kernel in a graph
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from contenders import check_known, comparison_parser, parsed
from epilogue_functions import epilogues, sizes_of
from epilogues import source_of

SHAPES = (
    "512x512x512,1024x1024x1024,64x4096x4096,16x4096x4096,300x5000x1100,2048x4096x512,"
    "4096x128x4096,1024x4096x1024,2048x2048x2048,256x1024x8192"
)
PLAIN, CYCLES, TIMER = "plain", "cycles", "nanoseconds"
PHASES = ("ramp", "prologue", "issue", "latency", "main", "store", "drain")
STORING = ("consumer", "ping", "pong", "epilogue")
MULTIPLYING = ("consumer", "ping", "mma")
L2_BYTES = 60e6
WRAP = 2**32


def main() -> int:
    options = parse_options()
    return {"compile": compile_all, "run": run_all}[options.what](options)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, SHAPES, rounds=9)
    parser.add_argument("--pipeline", help="of all shapes (default: the chosen one of each)")
    parser.add_argument("--epilogue", default=PLAIN, help="what follows the product (default none)")
    run = "shapes", "rounds", "json", "epilogue"
    compiled = "target", "shapes", "pipeline", "epilogue"
    options = parsed(parser, compile=compiled, run=run)
    check_known(parser, "--epilogue", options.epilogue, [PLAIN, *epilogues()])
    return options


def compile_all(options: argparse.Namespace) -> int:
    """Three bundles of each shape."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    options.folder.mkdir(parents=True, exist_ok=True)
    for shape in options.shapes.split(","):
        spec = source_of(*map(int, shape.split("x")), options.epilogue)
        plain = compile_matmul(spec, target=options.target, pipeline=options.pipeline)
        as_bundle(plain, options.folder / f"{shape}.{PLAIN}.zip")
        schedule = plain.pipeline.partition(",lower-to-nvvm")[0]
        print(f"{shape:16} {schedule}", file=sys.stderr)
        for unit in (CYCLES, TIMER):
            text = f"{schedule},instrument{{unit={unit}}}"
            made = compile_matmul(spec, target=options.target, pipeline=text)
            as_bundle(made, options.folder / f"{shape}.{unit}.zip")
    return 0


def run_all(options: argparse.Namespace) -> int:
    """A table with a row for each shape."""
    names = [*PHASES, "whole", "graph"]
    print(f"{'M×N×K':16}" + "".join(f"{name:>10}" for name in names))
    rows = []
    for shape in options.shapes.split(","):
        if (options.folder / f"{shape}.{PLAIN}.zip").exists():
            rows.append({"shape": shape, **measure(shape, options)})
            told = "".join(f"{rows[-1][name]:10.2f}" for name in names)
            print(f"{shape:16}{told}{'' if rows[-1]['right'] else '  WRONG'}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if rows and all(row["right"] for row in rows) else 1


def measure(shape: str, options: argparse.Namespace) -> dict[str, Any]:
    """Microseconds of each phase, and whether the kernels that tell of them are right."""
    import torch

    from tilewright.runtime import load

    m, n, k = map(int, shape.split("x"))
    files = {each: options.folder / f"{shape}.{each}.zip" for each in (PLAIN, CYCLES, TIMER)}
    kernels = {each: load(path) for each, path in files.items()}
    copies = max(2, min(16, int(3 * L2_BYTES / (2 * (m * k + n * k)))))
    torch.manual_seed(0)
    sizes = [(m, k), (n, k), *sizes_of(options.epilogue, m, n)]
    sets = [
        [torch.randn(size, device="cuda", dtype=torch.bfloat16) for size in sizes]
        for _ in range(copies)
    ]
    for _, b, *_ in sets:
        b /= k**0.5
    functions = {PLAIN: lambda sums: sums} | epilogues()
    right, found = True, {}
    for unit in (CYCLES, TIMER):
        names, shape_of_marks = marks_of(files[unit])
        marks = [torch.zeros(shape_of_marks, device="cuda", dtype=torch.int32) for _ in sets]
        calls = [
            lambda tensors=tensors, own=own, kernel=kernels[unit]: kernel(*tensors, own)
            for tensors, own in zip(sets, marks, strict=True)
        ]
        a, b, *beside = (each.float() for each in sets[0])
        wanted = functions[options.epilogue](a @ b.T, *beside)
        error = (calls[0]().float() - wanted).abs().max().item() / wanted.abs().max().item()
        right &= error < 2**-6
        graph = apart(calls)
        launches = []
        for _ in range(options.rounds):
            graph.replay()
            torch.cuda.synchronize()
            launches += [phases(names, each.cpu().tolist()) for each in marks]
        found[unit] = {
            name: statistics.median(each[name] for each in launches) for name in launches[0]
        }
    plain = [lambda tensors=tensors: kernels[PLAIN](*tensors) for tensors in sets]
    rate = found[CYCLES]["inside"] / found[TIMER]["inside"]  # cycles a nanosecond
    row = {name: found[CYCLES][name] / rate / 1e3 for name in PHASES[1:]}
    row |= {"ramp": found[TIMER]["ramp"] / 1e3, "whole": found[TIMER]["whole"] / 1e3}
    return row | {"graph": graph_us(plain, options.rounds), "clock": rate, "right": right}


def marks_of(path: Path) -> tuple[list[str], list[int]]:
    """What the places of a bundle are called, and the shape of its tensor of marks."""
    import zipfile

    with zipfile.ZipFile(path) as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
    (tensor,) = [each for each in manifest["tensors"] if each["name"] == "marks"]
    return manifest["names"]["marks"], tensor["shape"]


def phases(names: list[str], rows: list[list[int]]) -> dict[str, float]:
    """The median over CTAs of each phase of a launch, in the clock's units."""
    at = {name: number for number, name in enumerate(names)}
    first = rows[0][at["start"]]
    marked = [[_signed(value - first) if value else None for value in row] for row in rows]

    def of(row: list[Any], what: str, roles: tuple[str, ...], take: Any) -> int | None:
        places = (at.get(f"{role}.{what}") for role in roles)
        values = [row[place] for place in places if place is not None]
        return take((each for each in values if each is not None), default=None)

    table = []
    for row in marked:
        stored = [of(row, what, STORING, max) for what in ("sums", "stored", "end")]
        arrived = of(row, "arrived", MULTIPLYING, min)
        table.append(
            [row[at["start"]], row[at["load.begin"]], row[at["load.issued"]], arrived, *stored]
        )
    starts, ends = [row[0] for row in table], [row[-1] for row in table if row[-1] is not None]
    told = {"ramp": statistics.median(starts) - min(starts), "whole": max(ends) - min(starts)}
    for number, name in enumerate(PHASES[1:], 1):
        pairs = [(row[number - 1], row[number]) for row in table]
        told[name] = statistics.median(b - a for a, b in pairs if None not in (a, b))
    told["inside"] = statistics.median(row[-1] - row[0] for row in table if row[-1] is not None)
    return told


def _signed(difference: int) -> int:
    """The difference of two 32-bit clocks that may have wrapped in between."""
    return (difference + WRAP // 2) % WRAP - WRAP // 2


def apart(calls: list[Any]) -> Any:
    """A graph of all calls, a small kernel in front of each; it has run once."""
    import torch

    small = torch.zeros(1, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for call in calls:
            small.add_(1)
            call()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def graph_us(calls: list[Any], rounds: int) -> float:
    """Microseconds of a call in such a graph, without those of the small kernel."""
    import torch

    def timed(graph: Any) -> float:
        taken = []
        for _ in range(rounds):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            taken.append(1000 * begin.elapsed_time(end) / len(calls))
        return statistics.median(taken)

    return timed(apart(calls)) - timed(apart([lambda: None for _ in calls]))


if __name__ == "__main__":
    sys.exit(main())
