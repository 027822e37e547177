"""Runs bundles and compares every element: random numbers within bounds, integers exactly.

    python benchmarks/gpu_test.py FOLDER [--device cuda] [--repeat 3]

Needs tilewright.runtime, torch and numpy only. For each FOLDER/*.zip, matmuls without other
operands: standard normals against the float64 product within the bounds of float32 sums, and
integers from -3 to 3, which must be equal; outputs are NaN before every run. Exit status 1 when one
is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from tilewright.runtime import Kernel, load
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.reference import compare, expected_output, to_float64

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda", help="of torch: cuda, or cpu for the emulator")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kernel and input")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.zip"))
    wrong = 0
    for path in paths:
        fault = check(path, options.device, options.repeat)
        wrong += fault is not None
        if fault:
            print(f"{path.stem}: {fault}")
    where = torch.cuda.get_device_name() if options.device == "cuda" else "the emulator"
    print(f"{len(paths) - wrong} of {len(paths)} kernels are right on {where}")
    return 1 if wrong or not paths else 0


def check(path: Path, device: str, repeat: int) -> str | None:
    """What is wrong with a bundle's results, or None."""
    try:
        kernel = load(path)
        for integers in (False, True):
            inputs = [draw(each, device, integers) for each in kernel.manifest["tensors"][:-1]]
            for _ in range(repeat):
                fault = run(kernel, inputs, device, integers)
                if fault:
                    return f"{'integers' if integers else 'normals'}: {fault}"
    except DeviceError as error:
        return str(error)
    return None


def draw(declared: dict[str, Any], device: str, integers: bool) -> torch.Tensor:
    """A random input with the manifest's dtype, shape and strides."""
    shape = declared["shape"]
    values = torch.randint(-3, 4, shape).float() if integers else torch.randn(shape)
    return laid_out(declared, device).copy_(values)


def laid_out(declared: dict[str, Any], device: str) -> torch.Tensor:
    """An uninitialised tensor as the manifest declares it."""
    dtype = DTYPES[declared["dtype"]]
    return torch.empty_strided(declared["shape"], declared["strides"], dtype=dtype, device=device)


def run(kernel: Kernel, inputs: list[torch.Tensor], device: str, integers: bool) -> str | None:
    """Run once; what differs from the expectation."""
    c = laid_out(kernel.output, device).fill_(float("nan"))
    kernel(*inputs, out=c)
    result = c.cpu()  # waits for the kernel
    a, b = (each.cpu() for each in inputs)
    if integers:
        exact = (a.double() @ b.double().T).to(result.dtype)
        unequal = int((exact != result).sum())
        return f"{unequal} elements differ" if unequal else None
    tensors = {"a": a, "b": b, kernel.output["name"]: result}
    dtype = kernel.output["dtype"]
    found = compare(expected_output(kernel.manifest, tensors), to_float64(result, dtype), dtype)
    return None if found.passed else str(found)


if __name__ == "__main__":
    sys.exit(main())
