"""How fast products of 8-bit floats with scales are, beside torch's.

    python benchmarks/scaled.py compile FOLDER [--target sm_90a] [--shapes 4096x7168x2048,…]
        [--c-dtype f32]
    python benchmarks/scaled.py run FOLDER [--rounds 15] [--rest 0] [--clocks] [--json PATH]
    ncu --clock-control none --profile-from-start off --set full python benchmarks/scaled.py \
        once FOLDER

`compile` needs no GPU. It writes FOLDER/MxNxK.RECIPE.VARIANT.zip: recipes are scales of 128 by
their forms, and "fast" and "two-level" for products without scales, by how sums are formed.
Variants are "chosen", the compiler's schedule, and tiles by name where threads add, of a C of f32
also such whose threads store it without staging. `run` needs no compiler: only `runtime` as
tilewright.runtime, torch, numpy and cuda-python. Each result is compared with the product of
dequantized operands first; torch's contender is `torch._scaled_mm` of the same recipe (with one
scale a tensor for those without), where it has one. Each contender is captured in a CUDA graph of
several calls, each with other operands, which together exceed L2, as weights of a model do;
contenders take turns, and times are medians. `--rest 2` leaves the GPU alone twice as long as each
graph took, so that none runs at the limit of its power because of the one before it. `--clocks`
says the clock of the multiprocessors and the power while a contender runs on and on, which tells
what the power limit bounds. `once` launches each contender where ncu looks, once, and
prints its name in that order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from contenders import (
    CALLS,
    add_rest,
    captured,
    comparison_parser,
    loaded,
    measured,
    parsed,
    timed,
    write_bundle,
)

SHAPES = (
    "4096x2112x7168", "4096x24576x1536", "4096x32768x512", "4096x7168x16384", "4096x4096x7168",
    "4096x7168x2048", "128x2112x7168", "128x24576x1536", "128x7168x16384", "128x7168x2048",
    "64x2112x7168", "64x7168x16384", "8192x8192x8192",
)  # fmt: skip
RECIPES = {
    "1x128-128x128": ("1x128", "128x128"),
    "1x128-1x128": ("1x128", "1x128"),
    "128x128-1x128": ("128x128", "1x128"),
    "two-level": None,
    "fast": None,
}
HEAD = "tma-insertion,swizzle-selection"
TAIL = "warp-specialization,persistence{order=grouped group=8}"


def _tiles(
    tile: str, stages: int, columns: int = 64, cluster: str = "", tail: str = TAIL, parts: int = 0
) -> str:
    """The pipeline of a variant."""
    staged = columns and not parts
    head = f"{HEAD},epilogue-staging{{columns={columns} buffers=2}}" if staged else HEAD
    more = f"clustering{{shape={cluster}}}," if cluster else ""
    more += f"split-k{{parts={parts}}}," if parts else ""
    return f"tiling{{tile={tile}x128}},{head},{more}pipelining{{stages={stages}}},{tail}"


ALONE = "warp-specialization"
TILES = {
    "128x128": _tiles("128x128", 6, 32),
    "128x128-2x1": _tiles("128x128", 6, 32, "2x1"),
    "128x160": _tiles("128x160", 5, 32),
    "128x192": _tiles("128x192", 5, 32),
    "256x96": _tiles("256x96", 4, 32),
    "256x128": _tiles("256x128", 4, 16),
    "64x128": _tiles("64x128", 8, tail=ALONE),
    "64x64": _tiles("64x64", 11, tail=ALONE),
    "64x128-split2": _tiles("64x128", 6, tail=ALONE, parts=2),
}
TILES_OF_32_BITS = {
    "128x128": _tiles("128x128", 5, 32),
    "128x128-threads": _tiles("128x128", 6, 0),
    "256x96": _tiles("256x96", 4, 16),
    "256x112": _tiles("256x112", 4, 16),
    "256x112-threads": _tiles("256x112", 4, 0),
    "256x128-threads": _tiles("256x128", 4, 0),
}
ROWS_FEW = 128  # up to so many tiles of 64 rows are tried, too; those alone below it
UNSEEN = 3  # launches of a contender before the one that a profiler sees
OPERAND_BYTES = 150e6  # of all sets together: three times H200's L2
LOAD_US = 3e5  # of work, during which the clocks are read
TORCH_DTYPES = {"bf16": "bfloat16", "f32": "float32"}
TOLERANCE = 2.0**-6  # of the largest element, in bf16

Inputs = tuple[Any, Any, list[Any]]  # A, B and their scales
Call = Callable[[int], Any]  # of the number of a set of them


def main() -> int:
    options = parse_options()
    if options.what == "run":
        return measured(options, measure, parts=2)
    return compile_all(options) if options.what == "compile" else run_once(options)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, ",".join(SHAPES), ("compile", "run", "once"))
    parser.add_argument("--only", default="", metavar="TEXT", help="recipes named so in part")
    parser.add_argument("--clocks", action="store_true", help="also clock and power under load")
    parser.add_argument("--c-dtype", choices=[*TORCH_DTYPES], default="bf16")
    add_rest(parser)
    run = "rounds", "rest", "clocks", "json"
    options = parsed(parser, compile=("target", "shapes", "only", "c_dtype"), run=run, once=())
    if not any(options.only in name for name in RECIPES):
        parser.error(f"--only must be in one of {', '.join(RECIPES)}, got '{options.only}'")
    return options


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes, recipes and variants; 1 where a chosen one is refused."""
    from tilewright.compiler.spec import MatmulSpec

    options.folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for shape in options.shapes.split(","):
        for recipe in (name for name in RECIPES if options.only in name):
            forms = RECIPES[recipe]
            more = dict(zip(("a_scales", "b_scales"), forms, strict=True)) if forms else {}
            more |= {"sums": "two-level"} if recipe == "two-level" else {}
            types = "e4m3", "e4m3", options.c_dtype
            spec = MatmulSpec(*map(int, shape.split("x")), *types, **more)
            adds = recipe != "fast"
            tried = TILES if options.c_dtype == "bf16" else TILES_OF_32_BITS
            tiles = {name: each for name, each in tried.items() if adds and suits(name, spec.m)}
            for name, pipeline in {"chosen": None, **tiles}.items():
                path = options.folder / f"{shape}.{recipe}.{name}.zip"
                made = write_bundle(spec, path, options.target, pipeline)
                failed |= name == "chosen" and not made
    return int(failed)


def suits(name: str, m: int) -> bool:
    """Whether a variant is tried for so many rows."""
    return m >= ROWS_FEW if not name.startswith("64x") else m <= ROWS_FEW


def measure(
    shape: str, recipe: str, kernels: dict[str, Any], options: argparse.Namespace
) -> list[Any]:
    """Compare every contender with the dequantized product, then time all."""
    m, n, k = map(int, shape.split("x"))
    sets = [_inputs(shape, recipe, seed) for seed in range(1 + int(OPERAND_BYTES / (m + n) / k))]
    calls, forms = _contenders(sets, recipe, kernels), RECIPES[recipe]
    a, b, scales = sets[0]
    wide = list(map(_dequantized, (a, b), scales, forms)) if forms else [a.float(), b.float()]
    wanted = wide[0] @ wide[1].T
    right = {}
    for name, call in calls.items():
        error = (call(0).float() - wanted).abs().max().item() / wanted.abs().max().item()
        right[name] = error < TOLERANCE
    numbers = [number % len(sets) for number in range(max(CALLS, len(sets)))]
    graphs = {
        name: captured(*(partial(call, number) for number in numbers))
        for name, call in calls.items()
    }
    times = timed(graphs, options.rounds, options.rest)
    clocks = {name: _under(*graphs[name], us) for name, us in times.items() if options.clocks}
    base, rows = times.get("torch", float("nan")), []
    for name, us in sorted(times.items(), key=lambda pair: pair[1]):
        tera, against = 2 * m * n * k / us / 1e6, base / us
        mark = "" if right[name] else "  WRONG"
        label = f"{shape:18} {recipe:14} {name:12}"
        load = "".join(f" {value:.0f} {key}" for key, value in clocks.get(name, {}).items())
        print(f"{label} {us:9.1f} us {tera:7.1f} TF {against:6.3f}x{mark}{load}")
        row = {"shape": shape, "recipe": recipe, "name": name, "us": us, "tflops": tera}
        row |= clocks.get(name, {})
        rows.append(row | {"against_torch": against, "right": right[name]})
    return rows


def run_once(options: argparse.Namespace) -> int:
    """Each contender once where a profiler looks, behind launches that it does not see."""
    import torch

    for (shape, recipe), kernels in loaded(options.folder, parts=2).items():
        for name, call in _contenders([_inputs(shape, recipe)], recipe, kernels).items():
            for _ in range(UNSEEN):
                call(0)
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStart()
            call(0)
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStop()
            print(f"{shape:18} {recipe:14} {name}")
    return 0


def _inputs(shape: str, recipe: str, seed: int = 0) -> Inputs:
    """Random operands on the GPU, and their scales if they have some."""
    import torch

    m, n, k = map(int, shape.split("x"))
    torch.manual_seed(seed)
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    forms = RECIPES[recipe] or ()
    return a, b, [_scales(form, rows, k) for form, rows in zip(forms, (m, n), strict=False)]


def _contenders(sets: list[Inputs], recipe: str, kernels: dict[str, Any]) -> dict[str, Call]:
    """Our kernels and torch's, by the number of a set."""

    def ours(kernel: Any, number: int) -> Any:
        a, b, scales = sets[number]
        return kernel(a, b, *scales)

    c_dtype = next(iter(kernels.values())).outputs[0]["dtype"]
    made = {name: partial(ours, each) for name, each in kernels.items()}
    return made | _torchs(sets, recipe, c_dtype)


def _under(graph: Any, calls: int, us: float) -> dict[str, float]:
    """The multiprocessors' clock and the power while a graph of so many calls is replayed."""
    from tilewright.runtime.gpu.timing import clocks_under

    found = clocks_under(lambda _: graph.replay(), int(LOAD_US / (us * calls)) + 1, 1)
    return {name: found[name] for name in ("sm_mhz", "watts") if name in found}


def _scales(form: str, rows: int, k: int) -> Any:
    """Random scales as the kernel takes them."""
    import torch

    blocks = -(-k // 128)
    shape = (blocks, rows) if form == "1x128" else (-(-rows // 128), -(-blocks // 4) * 4)
    return torch.rand(shape, device="cuda") + 0.5


def _dequantized(values: Any, scales: Any, form: str) -> Any:
    """The operand in f32."""
    rows, k = values.shape
    if form == "1x128":
        return values.float() * scales.T.repeat_interleave(128, 1)[:, :k]
    each = scales.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :k]
    return values.float() * each


def _torchs(sets: list[Inputs], recipe: str, c_dtype: str) -> dict[str, Call]:
    """torch's contender, if it has one here; why not is said."""
    import torch

    forms, out = RECIPES[recipe], getattr(torch, TORCH_DTYPES[c_dtype])
    if forms is None:
        one = torch.ones((), device="cuda")
        how = {"scale_a": one, "scale_b": one, "use_fast_accum": recipe == "fast"}

        def call(number: int) -> Any:
            a, b, _ = sets[number]
            return torch._scaled_mm(a, b.T, out_dtype=out, **how)
    else:
        kinds = torch.nn.functional.ScalingType
        recipes = [getattr(kinds, f"BlockWise{form}") for form in forms]

        def call(number: int) -> Any:
            a, b, scales = sets[number]
            views = [scale.T for scale in scales]
            return torch.nn.functional.scaled_mm(
                a, b.T, views[0], recipes[0], views[1], recipes[1], output_dtype=out
            )

    try:
        call(0)
        torch.cuda.synchronize()
    except (RuntimeError, ValueError, AttributeError) as error:
        print(f"torch has no {recipe}: {str(error).splitlines()[0]}", file=sys.stderr)
        return {}
    return {"torch": call}


if __name__ == "__main__":
    sys.exit(main())
