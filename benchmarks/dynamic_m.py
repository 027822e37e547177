"""What a run-time M costs against one that the compiler knew, by kernels of the same schedule.

    python benchmarks/dynamic_m.py compile FOLDER [--target sm_90a] [--shapes 16x4096x4096,…]
    python benchmarks/dynamic_m.py measure FOLDER [--rounds 15] [--json PATH]

`compile` needs no GPU. For each shape it writes FOLDER/MxNxK.static.zip, with the schedule that is
chosen for a dynamic M with that hint, and FOLDER/MxNxK.any.zip, the same passes for any M. It
prints how many PTX instructions each loop of their kernels has. `measure` needs torch and a GPU,
and no compiler: both take turns on the same inputs, each is held to float64 first, and the table
has the median microseconds of `--rounds` rounds. The any-M kernel of the largest M of the same N
and K, which all those rows could share, is measured beside them (`one`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

SHAPES = (
    "1x4096x4096,16x4096x4096,64x4096x4096,256x4096x4096,1000x4096x4096,4096x4096x4096,"
    "8192x4096x4096,128x7168x2048,2048x7168x2048,8192x7168x2048,5000x1024x8192"
)


def main() -> None:
    options = parse_options()
    {"compile": compile_all, "measure": measure_all}[options.do](options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=("compile", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", help="chip (default sm_90a)")
    parser.add_argument("--shapes", default=SHAPES, help="MxNxK,…")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the rows")
    return parser.parse_args()


def shapes_of(text: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, shape.split("x"))) for shape in text.split(",")]


def compile_all(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    for shape in shapes_of(options.shapes):
        print("x".join(map(str, shape)), *compile_pair(shape, options), sep="  ", flush=True)


def compile_pair(shape: tuple[int, ...], options: argparse.Namespace) -> list[str]:
    """Write both bundles; the instructions of the loops of each that differ, or that none does."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec

    loops, pipeline = {}, None
    for name in ("any", "static"):
        spec = MatmulSpec(*shape, dynamic_m=name == "any")
        compiled = compile_matmul(spec, target=options.target, pipeline=pipeline)
        pipeline = compiled.pipeline
        as_bundle(compiled, options.folder / f"{'x'.join(map(str, shape))}.{name}.zip")
        loops[name] = loop_sizes(compiled.ptx, compiled.entry)
    return [f"{name}: {said}" for name, said in loops.items()]


def loop_sizes(ptx: str, entry: str) -> str:
    """Instructions of the innermost loop around loads, MMAs, and of the whole kernel."""
    from tilewright.compiler.control_flow import innermost_loop
    from tilewright.compiler.inspect_ptx import parse_kernel

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
    places = sorted(options.folder.glob("*.static.zip"), key=lambda path: shape_of(path))
    rows = [measure(place, places, options.rounds) for place in places]
    print(
        "| M×N×K | static [µs] | any M | cost | one for all M | cost |\n|---|---|---|---|---|---|"
    )
    for row in rows:
        print(line(row))
    costs = [row["any"] / row["static"] for row in rows]
    print(f"mean cost {statistics.mean(costs) - 1:+.2%}, largest {max(costs) - 1:+.2%}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))


def shape_of(place: Path) -> tuple[int, ...]:
    m, n, k = map(int, place.name.split(".")[0].split("x"))
    return n, k, m


def measure(place: Path, places: list[Path], rounds: int) -> dict[str, Any]:
    """Median microseconds of the kernels for one shape, taken in turns."""
    from tilewright.runtime import load
    from tilewright.runtime.gpu.timing import interleaved
    from tilewright.runtime.launch.comparison import check, count_sets, make_set

    n, k, m = shape_of(place)
    largest = max(other for other in map(shape_of, places) if other[:2] == (n, k))[2]
    kernels = {
        "static": load(place),
        "any": load(place.with_name(f"{m}x{n}x{k}.any.zip")),
        "one": load(place.with_name(f"{largest}x{n}x{k}.any.zip")),
    }
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
    static = row["static"]
    costs = [f"{row[name]:.2f} | {row[name] / static - 1:+.1%}" for name in ("any", "one")]
    return f"| {'×'.join(map(str, row['shape']))} | {static:.2f} | {' | '.join(costs)} |"


if __name__ == "__main__":
    main()
