"""Compiles the kernels that benchmarks/gpu.py measures, on a machine that needs no GPU.

    python benchmarks/gpu_bundles.py FOLDER [--target sm_90a]
        [--shapes 512x512x512,… | --random 60 --seed 1 | --layers] [--type bf16] [--majors kk]
        [--jobs 1]
        [--chosen] [--preset NAME …] [--pipeline NAME=TEXT …]
    python benchmarks/gpu_bundles.py FOLDER [--target sm_90a] --comparison NAME

Writes bundles for bf16 (or `--type`), B as N×K (or `--majors`), of the shapes that the page lists,
that are drawn at random, or of layers of language models (shape_lists.py): FOLDER/MxNxK.zip by the
schedule that the compiler chooses, or FOLDER/MxNxK.NAME.zip for each preset and pipeline that is
named (`--chosen` adds the chosen one); gpu.py measures those of a shape together. `--comparison`
makes what docs/hopper.md compares. A shape that is refused is said so and left out; the
exit status is then 1.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from gpu_comparisons import COMPARISONS, Variant
from shape_lists import LISTED, drawn, of_layers

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import all_presets
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import OPERAND_DTYPES
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import GPUS, TARGETS


def main() -> int:
    options = parse_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    compiled = partial(make, options=options)
    if options.jobs == 1:
        made = [compiled(variant) for variant in variants(options)]
    else:
        with ProcessPoolExecutor(options.jobs, get_context("spawn")) as processes:
            made = list(processes.map(compiled, variants(options)))
    return 0 if all(made) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", choices=(*TARGETS, *GPUS),
                        help="chip (default sm_90a)")  # fmt: skip
    parser.add_argument("--shapes", default=LISTED, type=named_shapes,
                        help="MxNxK,… (default: those of the page)")  # fmt: skip
    parser.add_argument("--random", type=int, metavar="N", help="N shapes drawn at random instead")
    parser.add_argument("--seed", type=int, default=0, help="of those (default 0)")
    parser.add_argument("--layers", action="store_true", help="layers of language models instead")
    parser.add_argument("--majors", default="kk", choices=("kk", "kn", "mk", "mn"),
                        help="contiguous axes of A and B (default kk)")  # fmt: skip
    parser.add_argument("--type", default="bf16", choices=OPERAND_DTYPES, help="of A and B")
    parser.add_argument("--chosen", action="store_true", help="the chosen schedule beside others")
    parser.add_argument("--preset", action="append", default=[], choices=all_presets(),
                        metavar="NAME", help="this preset; may be given again")  # fmt: skip
    parser.add_argument("--pipeline", action="append", default=[], type=named_pipeline,
                        metavar="NAME=TEXT", help="these passes; may be given again")  # fmt: skip
    parser.add_argument(
        "--comparison", choices=COMPARISONS, help="kernels that docs/hopper.md compares"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="processes that compile (default 1)")  # fmt: skip
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error(f"--jobs: must be 1 or more, got {options.jobs}")
    if options.random is not None:
        options.shapes = named_shapes(drawn(options.random, options.seed))
    elif options.layers:
        options.shapes = named_shapes(of_layers())
    return options


def named_shapes(text: str) -> list[str]:
    """The shapes of MxNxK,…"""
    shapes = text.split(",")
    for shape in shapes:
        sizes = shape.split("x")
        if len(sizes) != 3 or not all(size.isdecimal() for size in sizes):
            raise argparse.ArgumentTypeError(f"must be MxNxK separated by commas, got {shape!r}")
    return shapes


def named_pipeline(text: str) -> tuple[str, str]:
    """Name and passes of NAME=TEXT."""
    name, _, passes = text.partition("=")
    if not name.replace("-", "").replace("_", "").isalnum():
        raise argparse.ArgumentTypeError(f"must be NAME=TEXT, got {text!r}")
    return name, passes


def variants(options: argparse.Namespace) -> Iterator[Variant]:
    """The kernels to make, in the order of the options."""
    if options.comparison:
        yield from COMPARISONS[options.comparison](options.target)
        return
    presets = [(name, all_presets()[name]) for name in options.preset]
    named = [*presets, *options.pipeline]
    chosen = [("", None)] if options.chosen or not named else []
    for shape, (name, pipeline) in itertools.product(options.shapes, [*chosen, *named]):
        yield Variant(shape, name, pipeline)


def make(variant: Variant, options: argparse.Namespace) -> bool:
    """Compile one kernel; whether it could be."""
    stem = f"{variant.shape}.{variant.name}" if variant.name else variant.shape
    try:
        spec = MatmulSpec.of_type(*map(int, variant.shape.split("x")), options.type)
        a_major, b_major = options.majors
        spec = replace(spec, a_major=a_major, b_major=b_major)
        compiled = compile_matmul(spec, target=options.target, pipeline=variant.pipeline)
    except CompileError as error:
        print(f"{stem:20} {error}", file=sys.stderr)
        return False
    as_bundle(compiled, options.folder / f"{stem}.zip")
    print(f"{stem:20} {compiled.pipeline}", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
