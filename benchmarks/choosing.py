"""How long it takes to choose a schedule for shapes that were not seen before.

    python benchmarks/choosing.py [--kinds] [--first] [--drawn 200 --seed 1] [--target sm_90a,…]
        [--json]
    python benchmarks/choosing.py --choices PATH [--drawn 200 --seed 1] [--target …]

Shapes are drawn as `shape_lists.py` has it, in bf16; with --kinds each is of one of `KINDS`, as
drawn. A figure is CPU time in milliseconds, the least of the repeats: mean and median of all
shapes, what nine of ten stay under, the most, how many take over 10 ms, and the longest shape. What
a process remembers of other sizes of the same types, layouts and epilogue is remembered here
(`schedule/search/kind_cache.py`); with --first each is the first of its kind. The tables of
measured schedules are asked as in any compilation. Shapes that a kind or a chip does not take are
left out. With --choices the schedules are written instead, also for `KINDS`, to compare two trees.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from shape_lists import drawn

from tilewright.compiler.schedule.search import kind_cache
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"c_dtype": "f32"},
    {"a_dtype": "f16", "b_dtype": "f16", "c_dtype": "f16"},
    {"a_dtype": "tf32", "b_dtype": "tf32", "c_dtype": "f32"},
    {"a_dtype": "e4m3", "b_dtype": "e4m3"},
    {"a_dtype": "e4m3", "b_dtype": "e4m3", "c_dtype": "e4m3"},
    {"a_dtype": "s8", "b_dtype": "s8", "c_dtype": "s32", "acc_dtype": "s32"},
    {"a_major": "m"},
    {"b_major": "n"},
    {"batch": 6},
    {"beside": ("bf16",), "epilogue_instructions": 8},
    {"beside_columns": ("bf16",), "epilogue_instructions": 15},
    {"products": 2, "epilogue_instructions": 18},
    {"further": ("f32",)},
    {"groups": 8},
    {"sums": "two-level"},
    {"dynamic_m": True, "least_m": 1},
    {"dynamic_batch": True, "batch": 16},
    {"beside": ("bf16", "f32"), "epilogue_instructions": 10},
    {"beside": ("f32",), "epilogue_instructions": 6},
    {"beside": ("f32", "bf16"), "beside_columns": ("bf16",), "epilogue_instructions": 20},
    {"beside": ("bf16",), "beside_columns": ("f32",), "beside_rows": ("f32",),
     "epilogue_instructions": 20},
    {"beside": ("bf16", "bf16"), "epilogue_instructions": 4, "c_dtype": "f32"},
    {"further": ("bf16",), "beside_columns": ("bf16",), "epilogue_instructions": 12},
    {"a_major": "m", "b_major": "n"},
    {"a_major": "m", "b_major": "n", "beside": ("bf16",), "epilogue_instructions": 2},
    {"a_dtype": "tf32", "b_dtype": "tf32", "c_dtype": "f32", "beside": ("f32",),
     "epilogue_instructions": 2},
    {"a_dtype": "e4m3", "b_dtype": "e4m3", "beside": ("bf16",), "epilogue_instructions": 2},
    {"a_dtype": "e4m3", "b_dtype": "e4m3", "batch": 4, "c_dtype": "e4m3"},
    {"beside_rows": ("f32",), "beside_columns": ("f32",), "epilogue_instructions": 30},
    {"products": 2, "epilogue_instructions": 18, "beside": ("bf16",)},
    {"products": 2, "epilogue_instructions": 18, "batch": 3},
    {"groups": 16, "epilogue_instructions": 18, "beside_columns": ("bf16",)},
    {"groups": 32},
    {"batch": 24, "beside": ("bf16",), "epilogue_instructions": 2},
    {"dynamic_m": True, "least_m": 1, "beside": ("bf16",), "epilogue_instructions": 2},
)  # fmt: skip


def main() -> None:
    options = parse_options()
    shapes = drawn(options.drawn, options.seed).split(",")
    if options.choices:
        options.choices.write_text(json.dumps(choices(shapes, options), indent=1))
        return
    asked = kinds_of(shapes, options.seed if options.kinds else None)
    found = {chip: figures(times_of(asked, chip, options)) for chip in options.target.split(",")}
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    result = {"machine": machine, "shapes": len(shapes), "seed": options.seed, "cpu_ms": found}
    print(json.dumps(result) if options.json else as_text(result))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--drawn", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="sm_90a,sm_100a")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kinds", action="store_true", help="each shape of a kind as drawn")
    parser.add_argument("--first", action="store_true", help="each is the first of its kind")
    parser.add_argument("--choices", type=Path, metavar="PATH", help="write what is chosen")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def kinds_of(shapes: list[str], seed: int | None) -> list[tuple[str, dict[str, Any]]]:
    """Each shape with a kind that is drawn, or without one."""
    source = random.Random(seed)
    return [(shape, {} if seed is None else source.choice(KINDS)) for shape in shapes]


def times_of(
    asked: list[tuple[str, dict[str, Any]]], chip: str, options: argparse.Namespace
) -> dict[str, float]:
    """The milliseconds of each shape in its kind, of those that are taken."""
    found = {}
    for shape, kind in asked:
        with suppress(CompileError):
            found[f"{shape} {kind or ''}"] = choosing_ms(spec_of(shape, kind), chip, options)
    return found


def spec_of(shape: str, kind: dict[str, Any]) -> MatmulSpec:
    """A shape of a kind; one of any M is for up to as many rows."""
    m, n, k = (int(extent) for extent in shape.split("x"))
    rows = {"most_m": m} if "dynamic_m" in kind else {}
    return MatmulSpec(m, n, k, **kind, **rows)


def choices(shapes: list[str], options: argparse.Namespace) -> dict[str, str]:
    """The pipeline of the schedule that is chosen for each shape in a kind, on each target."""
    found = {}
    for shape, kind in kinds_of(shapes, options.seed):
        for chip in options.target.split(","):
            with suppress(CompileError):
                spec = spec_of(shape, kind)
                schedule = choose_schedule(spec, target_for(spec, chip))
                found[f"{chip} {shape} {kind}"] = f"{schedule.label()}: {schedule.pipeline()}"
    return found


def choosing_ms(spec: MatmulSpec, chip: str, options: argparse.Namespace) -> float:
    """The least CPU milliseconds in which the schedule of a shape is chosen."""
    target, runs = target_for(spec, chip), []
    for _ in range(options.repeat):
        if options.first:
            kind_cache.forget()
        started = time.process_time()
        choose_schedule(spec, target)
        runs.append(time.process_time() - started)
    return 1e3 * min(runs)


def figures(times: dict[str, float]) -> dict[str, Any]:
    ordered = sorted(times.values())
    return {
        "shapes": len(ordered),
        "mean": statistics.mean(ordered),
        "over_10": sum(ms > 10 for ms in ordered),
        "median": statistics.median(ordered),
        "nine_of_ten": ordered[len(ordered) * 9 // 10],
        "most": ordered[-1],
        "longest": max(times, key=lambda shape: times[shape]),
    }


def as_text(result: dict[str, Any]) -> str:
    lines = [f"{result['shapes']} shapes, seed {result['seed']}, {result['machine']}", ""]
    names = ("mean", "median", "nine_of_ten", "most")
    lines.append(f"{'CPU ms':10} {' '.join(f'{name:>11}' for name in names)} over 10 ms")
    for chip, found in result["cpu_ms"].items():
        cells = " ".join(f"{found[name]:11.1f}" for name in names)
        over = f"{found['over_10']} of {found['shapes']}"
        lines.append(f"{chip:10} {cells} {over:>10}  {found['longest']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
