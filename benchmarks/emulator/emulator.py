"""How fast the emulator runs our kernels, how much memory it takes, and what they execute.

    python benchmarks/emulator/emulator.py [--json] [--plot docs/emulator-cost.svg]
    python benchmarks/emulator/emulator.py --preset v6 --size 1024 --check fast
    python benchmarks/emulator/emulator.py --sizes 256x256x256,512x512x512 [--repeat 3]
                                           [--workers 2]

Without sizes, the figures that the emulator is held to, and what they cost: preset v6 from 256³ to
4096³ with each level of checks. With sizes, each prefix of the schedule that is chosen for them, or
the preset. Times are the median of wall and CPU seconds of a launch (compilation, inputs and the
comparison with torch are not counted); peak is the most memory that the process held during it.
Every run is compared with torch; a wrong result is an error, not a figure.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

from cost_plot import draw
from emulator_runs import Row, measure

LEVELS = ("off", "fast", "full")
PRESET = "v6"
CUBES = (256, 512, 1024, 2048, 4096)
AIMS = {(4096, "off"): (25, 4e9), (2048, "full"): (10, None)}
"""CPU seconds on a core of its own and bytes, by edge of the cube and level of checks."""


def main() -> None:
    options = parse_options()
    rows = measured(options) if options.sizes else figures(options.repeat)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    machine += f", {options.workers} processes" * (options.workers > 1)
    result = {"machine": machine, "repeat": options.repeat, "rows": [r.as_dict() for r in rows]}
    print(json.dumps(result) if options.json else as_text(rows, options.repeat, machine))
    if options.plot:
        options.plot.write_text(plot(rows))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", "--size", help="MxNxK,…; S stands for S×S×S")
    parser.add_argument("--preset", help="this preset instead of every prefix of the pipeline")
    parser.add_argument("--check", choices=LEVELS, default="full", help="with --sizes")
    parser.add_argument("--workers", type=int, default=1, help="processes, with --sizes")
    parser.add_argument("--repeat", type=int, default=1, help="launches (default 1)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the cost")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.workers != 1 and not options.sizes:
        parser.error("--workers must come with --sizes")
    if options.sizes and options.plot:
        parser.error("--plot must come without --sizes")
    return options


def measured(options: argparse.Namespace) -> list[Row]:
    """What the command line asks for."""
    return [
        measure(size, kernel, options.repeat, options.check, options.workers)
        for size in parse_sizes(options.sizes)
        for kernel in kernels(size, options.preset)
    ]


def figures(repeat: int) -> list[Row]:
    """Preset v6 at every size with every level; a first launch only warms up."""
    measure((CUBES[0],) * 3, {"preset": PRESET}, 1, LEVELS[0])
    return [
        measure((edge,) * 3, {"preset": PRESET}, repeat, level)
        for level in LEVELS
        for edge in CUBES
    ]


def parse_sizes(text: str) -> list[tuple[int, ...]]:
    """M, N and K of each size; one number stands for all three."""
    sizes = [tuple(int(extent) for extent in size.split("x")) for size in text.split(",")]
    return [size * 3 if len(size) == 1 else size for size in sizes]


def kernels(size: tuple[int, ...], preset: str | None) -> list[dict[str, str]]:
    """The preset, or every prefix of the chosen schedule, as keywords of compile_matmul."""
    from tilewright.compiler.driver import choose_pipeline
    from tilewright.compiler.pipeline import parse_pipeline
    from tilewright.compiler.spec import MatmulSpec

    if preset:
        return [{"preset": preset}]
    chosen = choose_pipeline(MatmulSpec(*size), "sm_100a")
    return [{"stop_after": call.name} for call in parse_pipeline(chosen)]


def as_text(rows: list[Row], repeat: int, machine: str) -> str:
    """A line a row; the last columns are CPU seconds for 10⁹ products, and the aim if there is."""
    head = (
        f"{'size':16} {'kernel':20} {'check':5} {'s':>8} {'CPU s':>8} {'peak MB':>8}"
        f" {'instructions':>13} {'a second':>9} {'CPU s/10⁹':>10}  aim"
    )
    return "\n".join([f"bf16, median of {repeat}, {machine}", "", head, *map(_line, rows)])


def _line(row: Row) -> str:
    size = "×".join(str(extent) for extent in row.size)
    return (
        f"{size:16} {row.kernel:20} {row.check:5} {row.seconds:8.2f} {row.cpu_seconds:8.2f}"
        f" {row.peak_bytes / 1e6:8.0f} {row.instructions:13d} {row.instructions / row.seconds:9.0f}"
        f" {row.cpu_seconds / row.products * 1e9:10.2f}  {_aim(row)}"
    ).rstrip()


def _aim(row: Row) -> str:
    seconds, peak = AIMS.get((row.size[0], row.check), (None, None))
    if seconds is None or row.kernel != PRESET or len(set(row.size)) > 1:
        return ""
    met = row.cpu_seconds < seconds and (peak is None or row.peak_bytes < peak)
    memory = f" and {peak / 1e6:.0f} MB" if peak else ""
    return f"under {seconds} CPU s{memory}: {'met' if met else 'MISSED'}"


def plot(rows: list[Row]) -> str:
    """CPU seconds of each level against the products of the matmul."""
    series = [
        (level, [(row.products, row.cpu_seconds) for row in rows if row.check == level])
        for level in LEVELS
    ]
    named = [(f"check={level}", points) for level, points in series]
    title = f"One launch of preset {PRESET}, 256³ to 4096³; dotted: proportional to the work"
    return draw(title, "products M·N·K", "CPU seconds", named)


if __name__ == "__main__":
    main()
