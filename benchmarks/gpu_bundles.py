"""Compiles the kernels that benchmarks/gpu.py measures, on a machine that needs no GPU.

    python benchmarks/gpu_bundles.py FOLDER [--target sm_90a] [--shapes 512x512x512,…]
        [--pipeline TEXT | --preset NAME]

Writes one bundle a shape, FOLDER/MxNxK.zip: bf16, B as N×K, by the schedule that the compiler
chooses unless told. A shape that is refused is said so and left out; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# M×N×K: cubes, few rows as in decoding, layers of language models, short and long sums, ragged.
SHAPES = (
    "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,16384x16384x16384,"
    "16x4096x4096,64x4096x4096,128x7168x4096,4096x4096x14336,4096x28672x4096,8192x8192x1024,"
    "8192x1024x8192,300x5000x1100,4096x128x4096"
)


def main() -> int:
    options = parse_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    made = [make(shape, options) for shape in options.shapes.split(",")]
    return 0 if all(made) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", help="chip (default sm_90a)")
    parser.add_argument("--shapes", default=SHAPES, help="MxNxK,… (default: those of the page)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pipeline", help="these passes instead of the chosen schedule")
    which.add_argument("--preset", help="this preset instead of the chosen schedule")
    return parser.parse_args()


def make(shape: str, options: argparse.Namespace) -> bool:
    """Compile one shape; whether it could be."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.dialects.errors import CompileError

    how = {name: getattr(options, name) for name in ("target", "pipeline", "preset")}
    try:
        compiled = compile_matmul(MatmulSpec(*map(int, shape.split("x"))), **how)
    except CompileError as error:
        print(f"{shape:20} {error}", file=sys.stderr)
        return False
    as_bundle(compiled, options.folder / f"{shape}.zip")
    print(f"{shape:20} {compiled.pipeline}", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
