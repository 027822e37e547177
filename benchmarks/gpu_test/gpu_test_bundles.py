"""Compiles the kernels that gpu_test.py checks, on a machine that needs no GPU.

    python benchmarks/gpu_test/gpu_test_bundles.py FOLDER [--target sm_90a] [--only TEXT]
                                                   [--emulate 4e6]

Writes one bundle a kernel of gpu_test_cases.py, FOLDER/NAME.zip, and FOLDER/index.json: each
kernel's group and, up to `--emulate` multiplications, the SHA-256 of what the emulator
computes for the integers that the GPU will get. Bundles that are there are kept, so that a stopped
run goes on: take a new folder for another compiler. A refused kernel is said so; the status is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from gpu_test import INDEX
from gpu_test_cases import Case, cases
from gpu_test_runs import INTEGERS, digest, draw, run_nothing, run_once, seed_of
from gpu_test_sizes import Size, is_nothing, of_size, values_of

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import TARGETS
from tilewright.runtime import load
from tilewright.runtime.strict_json import parse_json


def main() -> int:
    options = parse_options()
    wanted = [case for case in cases(options.target) if options.only in case.name]
    if not wanted:
        sys.exit(f"error: --only: must be part of a kernel's name, got {options.only!r}")
    options.folder.mkdir(parents=True, exist_ok=True)
    place = options.folder / INDEX
    index = parse_json(place.read_bytes()) if place.exists() else {}
    for case in wanted:
        if case.name in index:
            continue
        entry = make(case, options)
        if entry is not None:
            index[case.name] = entry
            place.write_text(json.dumps(index, indent=1))
    return 0 if all(case.name in index for case in wanted) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", choices=TARGETS,
                        help="chip (default sm_90a)")  # fmt: skip
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels named so in part")
    limit = "most multiplications that the emulator is asked for (default 4e6)"
    parser.add_argument("--emulate", type=float, default=4e6, metavar="COUNT", help=limit)
    return parser.parse_args()


def make(case: Case, options: argparse.Namespace) -> dict[str, Any] | None:
    """Compile a kernel, and emulate it where that is quick; its entry in the index."""
    path = options.folder / f"{case.name}.zip"
    sizes = list(case.sizes) or None
    how = {"target": options.target, "pipeline": case.pipeline, "stop_after": case.last}
    try:
        as_bundle(compile_matmul(case.source or case.spec, **how), path)
    except CompileError as error:
        print(f"{case.name}: {error}", file=sys.stderr)
        return None
    print(case.name, file=sys.stderr)
    found = [
        emulated(path, size) if multiplications(case.spec, size) <= options.emulate else None
        for size in sizes or [None]
    ]
    return {"group": case.group, "sizes": sizes, "emulator": found}


def multiplications(spec: MatmulSpec, size: Size | None) -> int:
    """How many a call has."""
    known = spec if size is None else spec.of_sizes(*(max(1, each) for each in values_of(size)))
    return known.m * known.n * known.k * max(1, known.batch)


def emulated(path: Path, size: Size | None) -> str:
    """The digest of the emulator's output for the integers of this kernel."""
    loaded = load(path, "emulator")
    if is_nothing(size):
        return digest(run_nothing(loaded, values_of(size), "cpu")[0])
    kernel = of_size(loaded, size)
    inputs = draw(kernel.manifest, seed_of(path.stem), INTEGERS)
    return digest(run_once(kernel, inputs, "cpu")[0])


if __name__ == "__main__":
    sys.exit(main())
