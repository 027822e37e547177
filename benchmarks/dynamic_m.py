"""What a run-time M costs against one that the compiler knew, and what a run-time batch beside it.

    python benchmarks/dynamic_m.py estimate [--target sm_90a] [--shapes 16x4096x4096,…]
    python benchmarks/dynamic_m.py estimate --draws 60 [--target sm_90a]
    python benchmarks/dynamic_m.py compile FOLDER [--target sm_90a] [--shapes …] [--a-major m]
    python benchmarks/dynamic_m.py measure FOLDER [--rounds 15] [--json PATH]

A shape is MxNxK, or BxMxNxK for a product of two stacks of so many matrices.

`estimate` compiles and measures nothing. For each N and K of the shapes it says by how much the
kernel that a number of rows shares is estimated to be slower than the best one with a run-time M,
and than the one that is chosen for that number alone: over every M to 320, every 20th to 2000 and
every 204th to 32,000, which do not follow the steps by which rows are shared out. Each batch of the
shapes has a line of its own. With `--draws` it says that of so many random stacks, of other sizes
each, of 1 to 256 matrices of 1 to 4096 rows.

`compile` needs no GPU. For each N and K it writes FOLDER/NxK.rows.zip, one bundle of the kernels
that share all M, as `tilewright compile --m dynamic` makes it, and for stacks
FOLDER/anyxNxK.rows.zip, whose kernels share all batches, too. For each shape it writes two kernels
of it alone: FOLDER/MxNxK.static.zip with the schedule that is chosen for it, and
FOLDER/MxNxK.same.zip with the passes of the bundle's kernel for so many rows. It prints how many
PTX instructions each loop of the latter two has.

`measure` needs torch and a GPU, and no compiler: all three take turns on the same inputs, in CUDA
graphs with a small kernel between, each is held to float64 first, and the table has the median
microseconds of `--rounds` rounds. Beside `same` stands what the run-time M and batch cost by
themselves, beside `static` what sharing kernels costs, too.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from contenders import bundles_of

ROWS = {
    (4096, 4096): "1 2 7 8 16 17 33 64 65 100 128 200 256 300 512 700 1000 2000 4096 8192",
    (7168, 2048): "1 16 48 128 300 2048 8192",
    (5120, 3072): "1 8 16 40 64 130 1000",
    (1024, 8192): "1 30 64 128 500 5000",
}
STACKS = "32x1x1024x128 32x100x1024x128 8x64x1024x1024 8x300x1024x1024 3x1000x1024x1024"
SHAPES = [f"{m}x{n}x{k}" for (n, k), rows in ROWS.items() for m in rows.split()]
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
    shapes = ",".join([*SHAPES, *STACKS.split()])
    parser.add_argument("--shapes", default=shapes, help="MxNxK or BxMxNxK,…")
    parser.add_argument("--a-major", default="k", choices=("k", "m"), help="of what is compiled")
    parser.add_argument("--draws", type=int, default=0, help="random stacks to estimate")
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile (default 2)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the rows")
    return parser.parse_args()


def shapes_of(text: str) -> list[tuple[int, ...]]:
    """Batch, M, N and K of each shape; the batch is 0 where there is one matrix."""
    sizes = [tuple(map(int, shape.split("x"))) for shape in text.split(",")]
    return [each if len(each) == 4 else (0, *each) for each in sizes]


def joined(shape: tuple[int, ...]) -> str:
    batch, *sizes = shape
    return "x".join(map(str, [batch, *sizes] if batch else sizes))


def spec_of(shape: tuple[int, ...], a_major: str = "k") -> Any:
    """The spec of a shape alone."""
    from tilewright.compiler.spec import MatmulSpec

    batch, *sizes = shape
    return MatmulSpec(*sizes, batch=batch, a_major=a_major)


def spec_of_any(shape: tuple[int, ...], a_major: str = "k") -> Any:
    """The spec for any M, and of a stack for any batch, of the shape's N and K."""
    from tilewright.compiler.spec import BATCH_HINT, ROWS_HINT, MatmulSpec

    batch, _, *sizes = shape
    many = {"batch": BATCH_HINT, "dynamic_batch": True} if batch else {}
    return MatmulSpec(ROWS_HINT, *sizes, dynamic_m=True, a_major=a_major, **many)


def bundle_of_any(shape: tuple[int, ...]) -> str:
    """The name of the bundle that takes a shape's product of any size."""
    batch, _, n, k = shape
    return f"anyx{n}x{k}.rows.zip" if batch else f"{n}x{k}.rows.zip"


def estimate_all(options: argparse.Namespace) -> None:
    if options.draws:
        estimate_draws(options)
        return
    columns = "N×K | kernels | ranges | mean loss | largest | at M | beside known M: mean | largest"
    print(f"| {columns} |\n" + "|---" * 8 + "|")
    weights = {(batch, 0, n, k) for batch, _, n, k in shapes_of(options.shapes)}
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(estimate_rows, sorted(weights), [options.target] * len(weights)):
            print(line, flush=True)


def estimate_rows(weight: tuple[int, ...], chip: str) -> str:
    """A line of the table: estimated times of shared kernels over those of kernels of one M."""
    from tilewright.compiler.schedule.any_size.buckets import shared_schedules
    from tilewright.compiler.schedule.any_size.sharing import for_rows
    from tilewright.compiler.schedule.estimates.estimate import estimate
    from tilewright.compiler.schedule.problem import Problem
    from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
    from tilewright.runtime.bundles.several import bands_of, number_of

    batch, _, n, k = weight
    any_m = spec_of_any(weight)
    target = target_for(any_m, chip)
    shared = shared_schedules(any_m, target)
    bands = bands_of([ranges for _, ranges in shared])
    losses: dict[str, dict[int, float]] = {"any": {}, "known": {}}
    for m in (*range(1, 321), *range(340, 2001, 20), *range(2204, 32001, 204)):
        known = spec_of((batch, m, n, k))
        taken = shared[number_of(bands, m, batch)][0]
        best = {"any": choose_schedule(for_rows(replace(any_m, batch=batch), m), target)}
        best["known"] = choose_schedule(known, target)
        for name, schedule in best.items():
            pair = (estimate(Problem.of(known, target), e, target) for e in (taken, schedule))
            ours, theirs = (each.total_us for each in pair)
            losses[name][m] = ours / theirs - 1
    worst = max(losses["any"], key=lambda m: losses["any"][m])
    means = {name: statistics.mean(each.values()) for name, each in losses.items()}
    beside_any = f"{means['any']:.1%} | {losses['any'][worst]:.1%} | {worst}"
    beside_known = f"{means['known']:.1%} | {max(losses['known'].values()):.1%}"
    counts = f"{len(shared)} | {sum(len(ranges) for _, ranges in shared)}"
    return f"| {joined((batch, n, k))} | {counts} | {beside_any} | {beside_known} |"


def estimate_draws(options: argparse.Namespace) -> None:
    shapes = drawn(options.draws)
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(estimate_stack, shapes, [options.target] * len(shapes)))
    worst = sorted(zip(found, shapes, strict=True), reverse=True)[:5]
    mean = statistics.geometric_mean(found)
    print(
        f"{len(found)} stacks beside a known M and batch: mean {mean - 1:+.1%}; the largest losses"
    )
    for ratio, shape in worst:
        print(f"{joined(shape)} {ratio - 1:+.1%}")


def drawn(count: int) -> list[tuple[int, ...]]:
    """Random stacks of up to 4 GB and 4 TFLOP: round and other N and K."""
    chance, found = random.Random(7), []
    while len(found) < count:
        batch, m = round(2 ** chance.uniform(0, 8)), round(2 ** chance.uniform(0, 12))
        n, k = (
            64 * chance.randint(1, 64) if chance.random() < 0.5 else 128 * 2 ** chance.randint(0, 5)
            for _ in "nk"
        )
        numbers = batch * (m * k + n * k + m * n)
        if 2 * numbers <= 4e9 and 2 * batch * m * n * k <= 4e12:
            found.append((batch, m, n, k))
    return found


def estimate_stack(shape: tuple[int, ...], chip: str) -> float:
    """The estimated time of a stack by the kernel that any M and batch share over a known one's."""
    from tilewright.compiler.schedule.any_size.buckets import shared_schedules
    from tilewright.compiler.schedule.estimates.estimate import estimate
    from tilewright.compiler.schedule.problem import Problem
    from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
    from tilewright.runtime.bundles.several import bands_of, number_of

    batch, m, *_ = shape
    any_m, known = spec_of_any(shape), spec_of(shape)
    target = target_for(any_m, chip)
    shared = shared_schedules(any_m, target)
    number = number_of(bands_of([ranges for _, ranges in shared]), m, batch)
    pair = shared[number][0], choose_schedule(known, target)
    times = [estimate(Problem.of(known, target), each, target).total_us for each in pair]
    return times[0] / times[1]


def compile_all(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    shapes = shapes_of(options.shapes)
    weights = {bundle_of_any(shape): shape for shape in shapes}
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(compile_rows, weights.values(), [options] * len(weights)):
            print(line, flush=True)
        each = product(shapes, ("static", "same"))
        for line in pool.map(compile_one, *zip(*each, strict=True), [options] * 2 * len(shapes)):
            print(line, flush=True)


def compile_rows(shape: tuple[int, ...], options: argparse.Namespace) -> str:
    """Write the bundle for any M; which rows its kernels are for."""
    from tilewright.compiler.buckets import compile_buckets
    from tilewright.compiler.bundle_writer import write_several

    kernels = compile_buckets(spec_of_any(shape, options.a_major), target=options.target)
    write_several(options.folder / bundle_of_any(shape), kernels)
    counts = f"{len(kernels)} kernels, {sum(len(each.ranges) for each in kernels)} ranges"
    return f"{bundle_of_any(shape)}  {counts}"


def compile_one(shape: tuple[int, ...], kind: str, options: argparse.Namespace) -> str:
    """Write a kernel of one shape; the instructions of its loops."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.runtime import read_bundle

    pipeline = None
    if kind == "same":
        batch, m, _, _ = shape
        shared = read_bundle(options.folder / bundle_of_any(shape))
        pipeline = shared.at(m, *([batch] if batch else [])).manifest["pipeline"]
    spec = spec_of(shape, options.a_major)
    compiled = compile_matmul(spec, target=options.target, pipeline=pipeline)
    as_bundle(compiled, options.folder / f"{joined(shape)}.{kind}.zip")
    return f"{joined(shape)}.{kind}  {loop_sizes(compiled.ptx, compiled.entry)}"


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
    shapes = [shape_of(place) for place in bundles_of(options.folder, "*.static.zip")]
    rows = []
    print("| shape | static [µs] | any M [µs] | cost | of the run-time M |\n|---|---|---|---|---|")
    for shape in sorted(shapes, key=lambda shape: (shape[2:], shape)):
        rows.append(measure(shape, options))
        print(line(rows[-1]), flush=True)
    for name in ("static", "same"):
        costs = [row["rows"] / row[name] for row in rows]
        mean = statistics.geometric_mean(costs)
        print(f"against {name}: mean cost {mean - 1:+.2%}, largest {max(costs) - 1:+.2%}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))


def shape_of(place: Path) -> tuple[int, ...]:
    """The shape of a kernel by the name of its file."""
    return shapes_of(place.name.split(".")[0])[0]


def measure(shape: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    """Median microseconds of the kernels for one shape, taken in turns."""
    from tilewright.runtime.launch.comparison import measure_together

    names = [f"{joined(shape)}.static.zip", f"{joined(shape)}.same.zip", bundle_of_any(shape)]
    times = measure_together([options.folder / name for name in names], options.rounds)
    return {"shape": list(shape), **dict(zip(KINDS, times, strict=True))}


def line(row: dict[str, Any]) -> str:
    static, same, rows = (row[kind] for kind in KINDS)
    costs = f"{rows / static - 1:+.1%} | {rows / same - 1:+.1%}"
    return f"| {joined(tuple(row['shape']))} | {static:.2f} | {rows:.2f} | {costs} |"


if __name__ == "__main__":
    main()
