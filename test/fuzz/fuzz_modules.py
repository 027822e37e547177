"""Compile random torch modules with views around their products, and hold every bit to torch.

    python test/fuzz/fuzz_modules.py --count 500 --seed 0 --processes 2

Each must be refused by a CompileError that says a rule, or give on the emulator what torch gives in
float64, in its shapes. What is neither is printed with its seed and kept; `--seed S --count 1` is
that one again. Exit status 1 when there is one.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from fuzz_linalg import Outcome, judge_all, without_ptxas
from random_modules import LARGEST, DrawnModule, draw_module

TARGETS = ("sm_100a", "sm_90a")


def judge(seed: int) -> Outcome:
    """Compile and run the module of a seed."""
    import torch

    from tilewright import compile_module
    from tilewright.dialects.errors import CompileError

    module = draw_module(seed)
    wide = module.inputs(seed)
    if module.largest(wide) > LARGEST:
        return Outcome(seed, "refused", "its values are too large")
    inputs = [each.to(torch.bfloat16) for each in wide]
    try:
        with without_ptxas(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = compile_module(module, *inputs, target=TARGETS[seed % 2])
    except CompileError as error:
        internal = "internal" in error.message or ": " not in error.message
        return Outcome(seed, "refused without a rule" if internal else "refused", str(error))
    except Exception as error:
        return Outcome(seed, "internal error", f"{type(error).__name__}: {error}")
    try:
        return _compared(seed, module, kernel(*_otherwise(inputs, seed)), wide)
    except Exception as error:
        return Outcome(seed, "failed at run", f"{type(error).__name__}: {error}")


def _otherwise(inputs: list[Any], seed: int) -> list[Any]:
    """The inputs, of every third module with gaps, in other memory than the examples."""
    if seed % 3:
        return inputs
    return [_with_gaps(each) if each.dim() else each for each in inputs]


def _with_gaps(value: Any) -> Any:
    gaps = value.new_full((*value.shape[:-1], value.shape[-1] + 8), 7)
    return gaps[..., : value.shape[-1]].copy_(value)


def _compared(seed: int, module: DrawnModule, found: Any, wide: list[Any]) -> Outcome:
    wanted = module(*wide)
    results = [each if isinstance(each, tuple) else (each,) for each in (found, wanted)]
    if len(results[0]) != len(results[1]):
        return Outcome(seed, "wrong", f"{len(results[0])} results for {len(results[1])}")
    for number, (one, other) in enumerate(zip(*results, strict=True)):
        if one.shape != other.shape:
            return Outcome(seed, "wrong", f"result {number}: {[*one.shape]}, not {[*other.shape]}")
        if not one.double().equal(other):
            count = int((one.double() != other).sum())
            return Outcome(seed, "wrong", f"result {number}: {count} of {other.numel()} elements")
    return Outcome(seed, "right")


def describe(seed: int) -> str:
    """What to keep of a seed."""
    return draw_module(seed).described()


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
