"""Make random calls of the public functions on the emulator, and hold every bit to float64.

    python test/fuzz/fuzz_calls.py --count 1000 --seed 0 --processes 2

Each must be refused with a CompileError or a LaunchError, or give what float64 gives and leave all
other memory as it was. What does not is printed with its seed; `--seed S --count 1` is that call
again. Exit status 1 when there is one.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from unittest import mock

from fuzz_linalg import Outcome, judge_all, without_ptxas
from held_tensors import difference
from large_schedules import of_large_products
from random_calls import random_call


def judge(seed: int, large: bool = True) -> Outcome:
    """Make the call of a seed, with kernels of its own; `large` lets schedules that the compiler
    chooses be those of larger products."""
    from tilewright.compiler.calls.kernels.kernel_cache import VARIABLE
    from tilewright.dialects.errors import CompileError
    from tilewright.runtime.errors import LaunchError

    try:
        schedules = of_large_products(seed) if large else nullcontext()
        with TemporaryDirectory() as cache, without_ptxas(), warnings.catch_warnings(), schedules:
            warnings.simplefilter("ignore")
            with mock.patch.dict(os.environ, {VARIABLE: cache}):
                return _judged(seed)
    except (CompileError, LaunchError) as error:
        return Outcome(seed, "refused", str(error))
    except Exception as error:
        places = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(f"{each.name}:{each.lineno}" for each in reversed(places))
        return Outcome(seed, "failed", f"{type(error).__name__}: {error} ({where})")


def _judged(seed: int) -> Outcome:
    drawn = random_call(seed)
    for number, call in enumerate(drawn.calls):
        for place, (found, expected) in enumerate(call()):
            told = difference(found, expected)
            if told:
                return Outcome(seed, "wrong", f"call {number}, result {place}: {told}")
    changed = drawn.held.changed()
    return Outcome(seed, "changed", changed) if changed else Outcome(seed, "right")


def describe(seed: int) -> str:
    """What the call of a seed is."""
    return random_call(seed).text + "\n"


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
