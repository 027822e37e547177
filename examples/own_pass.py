"""A custom pass, which needs no change of the package (docs/own-pass.md).

    python examples/own_pass.py             # its diff; the kernel after each later pass
    python examples/own_pass.py --broken    # the same with a mistake
    tilewright opt FILE --load examples/own_pass.py --passes 'tiling,tma-insertion,reverse-k'

The pass iterates over K in reverse. A sum may be computed in any order, so the product must stay
the same, whatever passes follow.
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from typing import ClassVar

import tilewright
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.dialects.mlir import arith, ir
from tilewright.dialects.tile import TmaLoadOp
from tilewright.passes import PASSES
from tilewright.passes.base import PassLog, refused, the_kernel, walk
from tilewright.passes.clone import index_constant

SPEC = tilewright.MatmulSpec(m=96, n=72, k=200)
BEFORE = "tiling{tile=64x16x64},tma-insertion"
FOLLOWING = ("swizzle-selection", "pipelining{stages=3}", "warp-specialization")


@dataclass(frozen=True)
class ReverseK:
    """Loads of step %k of N → loads of step N - 1 - %k."""

    name: ClassVar[str] = "reverse-k"
    last: ClassVar[int] = 1  # steps before the end of the loop

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        loads = walk(kernel, TmaLoadOp)
        if not loads:
            rule = "reverse-k: must find a tile.tma_load, got none; run tma-insertion first"
            raise refused(kernel, rule)
        for load in loads:
            self._reverse(load)
        log.did(f"{len(loads)} loads in reverse order of K")

    def _reverse(self, load: TmaLoadOp) -> None:
        loop = load.operation.parent.opview
        with ir.InsertionPoint(load), load.location:
            last = arith.subi(loop.upperBound, index_constant(self.last))
            step = arith.subi(last, loop.induction_variable)
            TmaLoadOp(load.map, load.tile, load.i, step)
        load.operation.erase()


@dataclass(frozen=True)
class MistakenK(ReverseK):
    """The same, off by one."""

    name: ClassVar[str] = "mistaken-k"
    last: ClassVar[int] = 2


for own in (ReverseK, MistakenK):
    PASSES[own.name] = own  # from here on pipelines may name it


def main(own: type[ReverseK] = ReverseK) -> int:
    """1 where an element is wrong."""
    pipeline = f"{BEFORE},{own.name}"
    print(difference(ir_of(BEFORE), ir_of(pipeline)))
    wrong = report(pipeline)
    for name in FOLLOWING:
        pipeline += f",{name}"
        wrong += report(pipeline)
    return int(wrong > 0)


def ir_of(pipeline: str) -> list[str]:
    """The lines of the kernel as the last pass of a pipeline leaves it."""
    last = pipeline.rpartition(",")[2]
    compiled = tilewright.compile(SPEC, pipeline=pipeline, stop_after=last, until="mlir")
    return compiled.mlir.splitlines()


def difference(before: list[str], after: list[str]) -> str:
    return "\n".join([*difflib.unified_diff(before, after, lineterm="", n=1)][2:])


def report(pipeline: str) -> int:
    """Run a kernel on the emulator; how many of its elements are wrong."""
    import torch

    torch.manual_seed(0)
    a, b = torch.randn(96, 200).bfloat16(), torch.randn(72, 200).bfloat16()
    c = torch.full((96, 72), torch.nan, dtype=torch.bfloat16)
    kernel = tilewright.load(as_bundle(tilewright.compile(SPEC, pipeline=pipeline)))
    kernel.run({"a": a, "b": b, "c": c})
    right = torch.isclose(c.double(), a.double() @ b.double().T, rtol=2.0**-7, atol=2.0**-10)
    wrong = int((~right).sum())
    print(f"after {pipeline.rpartition(',')[2]}: {wrong} of {c.numel()} elements are wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main(MistakenK if "--broken" in sys.argv[1:] else ReverseK))
