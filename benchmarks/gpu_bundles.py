"""Compiles the kernels that benchmarks/gpu.py measures, on a machine that needs no GPU.

    python benchmarks/gpu_bundles.py FOLDER [--target sm_90a] [--shapes 512x512x512,…]
        [--type bf16] [--chosen] [--preset NAME …] [--pipeline NAME=TEXT …]
    python benchmarks/gpu_bundles.py FOLDER [--target sm_90a] --comparison NAME

Writes bundles for bf16 (or `--type`), B as N×K: FOLDER/MxNxK.zip by the schedule that the compiler
chooses, or FOLDER/MxNxK.NAME.zip for each preset and pipeline that is named (`--chosen` adds the
chosen one); gpu.py measures those of a shape together. `--comparison` makes what
docs/appendix/hopper.md compares. A shape that is refused is said so and left out; the exit
status is then 1.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from gpu_comparisons import COMPARISONS, Variant

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import all_presets
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import OPERAND_DTYPES
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import TARGETS

# M×N×K: cubes, few rows as in decoding, layers of language models, short and long sums, ragged.
SHAPES = (
    "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,16384x16384x16384,"
    "16x4096x4096,64x4096x4096,128x7168x4096,4096x4096x14336,4096x28672x4096,8192x8192x1024,"
    "8192x1024x8192,300x5000x1100,4096x128x4096"
)


def main() -> int:
    options = parse_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    made = [make(variant, options) for variant in variants(options)]
    return 0 if all(made) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", choices=TARGETS,
                        help="chip (default sm_90a)")  # fmt: skip
    parser.add_argument("--shapes", default=SHAPES, type=named_shapes,
                        help="MxNxK,… (default: those of the page)")  # fmt: skip
    parser.add_argument("--type", default="bf16", choices=OPERAND_DTYPES, help="of A and B")
    parser.add_argument("--chosen", action="store_true", help="the chosen schedule beside others")
    parser.add_argument("--preset", action="append", default=[], choices=all_presets(),
                        metavar="NAME", help="this preset; may be given again")  # fmt: skip
    parser.add_argument("--pipeline", action="append", default=[], type=named_pipeline,
                        metavar="NAME=TEXT", help="these passes; may be given again")  # fmt: skip
    parser.add_argument(
        "--comparison", choices=COMPARISONS, help="kernels of docs/appendix/hopper.md"
    )
    return parser.parse_args()


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
        compiled = compile_matmul(spec, target=options.target, pipeline=variant.pipeline)
    except CompileError as error:
        print(f"{stem:20} {error}", file=sys.stderr)
        return False
    as_bundle(compiled, options.folder / f"{stem}.zip")
    print(f"{stem:20} {compiled.pipeline}", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
