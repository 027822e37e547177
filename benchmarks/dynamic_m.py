"""What a run-time M costs against one that the compiler knew.

    python benchmarks/dynamic_m.py estimate [--target sm_90a] [--shapes 16x4096x4096,…]
    python benchmarks/dynamic_m.py compile FOLDER [--target sm_90a] [--shapes 16x4096x4096,…]
    python benchmarks/dynamic_m.py measure FOLDER [--rounds 15] [--json PATH]

`estimate` compiles and measures nothing. For each N and K of the shapes it says by how much the
kernel that a number of rows shares is estimated to be slower than the best one with a run-time M,
and than the one that is chosen for that number alone: over every M to 320, every 20th to 2000 and
every 204th to 32,000, which do not follow the steps by which rows are shared out.

`compile` needs no GPU. For each N and K it writes FOLDER/NxK.rows.zip, one bundle of the kernels
that share all M, as `tilewright compile --m dynamic` makes it. For each shape it writes two kernels
of that M alone: FOLDER/MxNxK.static.zip with the schedule that is chosen for it, and
FOLDER/MxNxK.same.zip with the passes of the bundle's kernel for so many rows. It prints how many
PTX instructions each loop of the latter two has.

`measure` needs torch and a GPU, and no compiler: all three take turns on the same inputs, each is
held to float64 first, and the table has the median microseconds of `--rounds` rounds. Beside
`same` stands what the run-time M costs by itself, beside `static` what sharing kernels costs, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

ROWS = {
    (4096, 4096): "1 2 7 8 16 17 33 64 65 100 128 200 256 300 512 700 1000 2000 4096 8192",
    (7168, 2048): "1 16 48 128 300 2048 8192",
    (5120, 3072): "1 8 16 40 64 130 1000",
    (1024, 8192): "1 30 64 128 500 5000",
}
SHAPES = ",".join(f"{m}x{n}x{k}" for (n, k), rows in ROWS.items() for m in rows.split())
KINDS = ("static", "same", "rows")


def main() -> None:
    options = parse_options()
    if options.do != "estimate" and options.folder is None:
        sys.exit(f"error: {options.do} must have a folder, got none")
    does = {"estimate": estimate_all, "compile": compile_all, "measure": measure_all}
    does[options.do](options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("do", choices=("estimate", "compile", "measure"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--target", default="sm_90a", help="chip or GPU (default sm_90a)")
    parser.add_argument("--shapes", default=SHAPES, help="MxNxK,…")
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile (default 2)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the rows")
    return parser.parse_args()


def shapes_of(text: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, shape.split("x"))) for shape in text.split(",")]


def estimate_all(options: argparse.Namespace) -> None:
    columns = "N×K | kernels | ranges | mean loss | largest | at M | beside known M: mean | largest"
    print(f"| {columns} |\n" + "|---" * 8 + "|")
    weights = sorted({shape[1:] for shape in shapes_of(options.shapes)})
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(estimate_rows, weights, [options.target] * len(weights)):
            print(line, flush=True)


def estimate_rows(weight: tuple[int, int], chip: str) -> str:
    """A line of the table: estimated times of shared kernels over those of kernels of one M."""
    from tilewright.compiler.schedule.buckets import for_rows, shared_schedules
    from tilewright.compiler.schedule.choice import choose_schedule, target_for
    from tilewright.compiler.schedule.estimate import estimate
    from tilewright.compiler.schedule.problem import Problem
    from tilewright.compiler.spec import ROWS_HINT, MatmulSpec

    any_m = MatmulSpec(ROWS_HINT, *weight, dynamic_m=True)
    target = target_for(any_m, chip)
    shared = shared_schedules(any_m, target)
    ends = {most: schedule for schedule, ranges in shared for _, most in ranges}
    losses: dict[str, dict[int, float]] = {"any": {}, "known": {}}
    for m in (*range(1, 321), *range(340, 2001, 20), *range(2204, 32001, 204)):
        known = MatmulSpec(m, *weight)
        taken = ends[min(most for most in ends if m <= most)]
        best = {"any": choose_schedule(for_rows(any_m, m), target)}
        best["known"] = choose_schedule(known, target)
        for name, schedule in best.items():
            pair = (estimate(Problem.of(known, target), e, target) for e in (taken, schedule))
            ours, theirs = (each.total_us for each in pair)
            losses[name][m] = ours / theirs - 1
    worst = max(losses["any"], key=lambda m: losses["any"][m])
    means = {name: statistics.mean(each.values()) for name, each in losses.items()}
    beside_any = f"{means['any']:.1%} | {losses['any'][worst]:.1%} | {worst}"
    beside_known = f"{means['known']:.1%} | {max(losses['known'].values()):.1%}"
    return f"| {joined(weight)} | {len(shared)} | {len(ends)} | {beside_any} | {beside_known} |"


def compile_all(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    shapes = shapes_of(options.shapes)
    weights = sorted({shape[1:] for shape in shapes})
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(compile_rows, weights, [options] * len(weights)):
            print(line, flush=True)
        each = product(shapes, ("static", "same"))
        for line in pool.map(compile_one, *zip(*each, strict=True), [options] * 2 * len(shapes)):
            print(line, flush=True)


def compile_rows(weight: tuple[int, int], options: argparse.Namespace) -> str:
    """Write the bundle for any M; which rows its kernels are for."""
    from tilewright.compiler.buckets import compile_buckets
    from tilewright.compiler.bundle_writer import write_several
    from tilewright.compiler.spec import ROWS_HINT, MatmulSpec

    spec = MatmulSpec(ROWS_HINT, *weight, dynamic_m=True)
    kernels = compile_buckets(spec, target=options.target)
    write_several(options.folder / f"{joined(weight)}.rows.zip", kernels)
    counts = f"{len(kernels)} kernels, {sum(len(each.ranges) for each in kernels)} ranges"
    return f"{joined(weight)}  {counts}"


def compile_one(shape: tuple[int, ...], kind: str, options: argparse.Namespace) -> str:
    """Write a kernel of one M; the instructions of its loops."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.runtime import read_bundle

    pipeline = None
    if kind == "same":
        shared = read_bundle(options.folder / f"{joined(shape[1:])}.rows.zip")
        pipeline = shared.at(shape[0]).manifest["pipeline"]
    compiled = compile_matmul(MatmulSpec(*shape), target=options.target, pipeline=pipeline)
    as_bundle(compiled, options.folder / f"{joined(shape)}.{kind}.zip")
    return f"{joined(shape)}.{kind}  {loop_sizes(compiled.ptx, compiled.entry)}"


def joined(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


def loop_sizes(ptx: str | None, entry: str | None) -> str:
    """Instructions of the innermost loop around loads, MMAs, and of the whole kernel."""
    from tilewright.compiler.control_flow import innermost_loop
    from tilewright.compiler.inspect_ptx import parse_kernel

    assert ptx is not None and entry is not None
    program = parse_kernel(ptx, entry)
    found = [
        ("load", r"cp\.async\.bulk\.tensor\.\dd\S*shared::"),
        ("mma", r"wgmma\.mma|tcgen05\.mma"),
    ]
    sizes = {name: innermost_loop(program, pattern) for name, pattern in found}
    counts = [f"{name} {len(loop.instructions)}" for name, loop in sizes.items() if loop]
    return ", ".join([*counts, f"kernel {len(program)}"])


def measure_all(options: argparse.Namespace) -> None:
    from tilewright.runtime.launch.comparison import machine
    from tilewright.runtime.launch.devices import why_no_gpu

    reason = why_no_gpu()
    if reason:
        sys.exit(f"error: {reason}")
    places = sorted(options.folder.glob("*.static.zip"), key=shape_of)
    rows = []
    print("| M×N×K | static [µs] | any M [µs] | cost | of the run-time M |\n|---|---|---|---|---|")
    for place in places:
        rows.append(measure(place, options.rounds))
        print(line(rows[-1]), flush=True)
    for name in ("static", "same"):
        costs = [row["rows"] / row[name] for row in rows]
        mean = statistics.geometric_mean(costs)
        print(f"against {name}: mean cost {mean - 1:+.2%}, largest {max(costs) - 1:+.2%}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))


def shape_of(place: Path) -> tuple[int, ...]:
    """N, K and M of a kernel by the name of its file."""
    m, n, k = map(int, place.name.split(".")[0].split("x"))
    return n, k, m


def measure(place: Path, rounds: int) -> dict[str, Any]:
    """Median microseconds of the kernels for one shape, taken in turns."""
    from tilewright.runtime import load
    from tilewright.runtime.gpu.timing import interleaved
    from tilewright.runtime.launch.comparison import check, count_sets, make_set

    n, k, m = shape_of(place)
    names = {"static": place.name, "same": f"{m}x{n}x{k}.same.zip", "rows": f"{n}x{k}.rows.zip"}
    kernels = {kind: load(place.with_name(names[kind])) for kind in KINDS}
    tensors = kernels["static"].manifest["tensors"]
    sets = [make_set(tensors, seed) for seed in range(count_sets(tensors))]
    launches = {name: launcher(kernel, sets) for name, kernel in kernels.items()}
    for name, launch in launches.items():
        check(f"{place.name} {name}", launch, sets[-1], len(sets) - 1)
    times = interleaved(launches, len(sets), rounds)
    return {"shape": [m, n, k], **{name: statistics.median(each) for name, each in times.items()}}


def launcher(kernel: Any, sets: list[Any]) -> Any:
    def launch(number: int) -> None:
        a, b, c = sets[number]
        kernel(a, b, out=c)

    return launch


def line(row: dict[str, Any]) -> str:
    static, same, rows = (row[kind] for kind in KINDS)
    costs = f"{rows / static - 1:+.1%} | {rows / same - 1:+.1%}"
    return f"| {'×'.join(map(str, row['shape']))} | {static:.2f} | {rows:.2f} | {costs} |"


if __name__ == "__main__":
    main()
