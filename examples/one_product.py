"""One product from Python, and its kernel: on the emulator, without a GPU.

    python examples/one_product.py [PASS]

It computes gelu(x · weightᵀ + bias) by one kernel and compares every element with float64. Then it
prints the IR of the plain product after PASS (default swizzle-selection), and saves its kernel as a
bundle, which runs without the compiler.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from torch.nn.functional import gelu
from torch.testing import assert_close

import tilewright
from tilewright.compiler.bundle_writer import as_bundle

BF16 = {"rtol": 2.0**-7, "atol": 2.0**-10}  # a rounding, GELU's fast form, and sums in f32


def main(stop_after: str = "swizzle-selection") -> None:
    """Raises AssertionError where an element is wrong."""
    torch.manual_seed(0)
    x, weight = torch.randn(96, 80).bfloat16(), torch.randn(72, 80).bfloat16()  # [m, k], [n, k]
    bias = torch.randn(72)
    product = x.double() @ weight.double().T

    y = tilewright.matmul(x, weight, epilogue=lambda acc, b: gelu(acc + b), operands=[bias])
    assert_close(y.double(), gelu(product + bias.double()), **BF16)
    print(f"gelu(x · weightᵀ + bias): all {y.numel()} elements are right")

    spec = tilewright.MatmulSpec(m=96, n=72, k=80)
    print(f"the plain product after {stop_after}:\n")
    print(tilewright.compile(spec, stop_after=stop_after, until="mlir").mlir)

    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder, "product.zip")
        as_bundle(tilewright.compile(spec), bundle)
        kernel = tilewright.load(bundle)  # needs neither compiler nor MLIR
        c = torch.empty(96, 72, dtype=torch.bfloat16)
        report = kernel.run({"a": x, "b": weight, "c": c})
    assert_close(c.double(), product, **BF16)
    executed, mmas = report.instructions.total(), report.engines["mma count"]
    print(f"the bundle: all {c.numel()} elements are right")
    print(f"the emulator executed {executed} instructions of warps and {mmas} MMAs")


if __name__ == "__main__":
    main(*sys.argv[1:])
