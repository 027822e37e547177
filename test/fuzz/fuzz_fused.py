"""Compile products of every kind with functions of their sums, by the schedules of large products
and by others, and hold every bit to numpy.

    python test/fuzz/fuzz_fused.py --count 1000 --seed 0 --processes 2

Each must be refused by a CompileError that says a rule, or be right on the emulator to the last bit
and write nothing else. What is neither is printed with its seed; `--seed S --count 1` is that one
again. Exit status 1 when there is one.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import fuzz_specs
from fused_products import Drawn, FusedProduct, draw_fused
from fuzz_linalg import Outcome, judge_all
from fuzz_pipelines import SECONDS, limited
from large_schedules import large_schedule
from random_pipelines import changed, cut, of_nothing
from wide_specs import K_PER_MMA

KINDS = (*["chosen"] * 2, *["large"] * 8, *["cut"] * 4, *["changed"] * 4, "sensible", "nothing")
TRIES = 8


def random_case(seed: int) -> tuple[Drawn, str, str | None]:
    """The product of a seed, what kind of pipeline it is compiled by, and that, None where the
    compiler chooses. CompileError where there is no such product."""
    draw = random.Random(f"fused {seed}")
    drawn = _drawn(draw)
    kind = draw.choice(KINDS)
    if kind == "chosen":
        return drawn, kind, None
    if kind == "nothing":
        return drawn, kind, of_nothing(draw)
    if kind == "sensible":
        depth = K_PER_MMA.get(drawn.spec.a_dtype, 32)
        text = fuzz_specs.pipeline_of(draw, drawn.target, depth)
        return drawn, kind, fuzz_specs.swapped(draw, text, drawn.target)
    large = large_schedule(draw, drawn.spec, drawn.target)
    change = {"large": lambda _, text: text, "cut": cut, "changed": changed}[kind]
    return drawn, kind, change(draw, large)


def _drawn(draw: random.Random) -> Drawn:
    """A product with a function, after a few that there are none of."""
    from tilewright.dialects.errors import CompileError

    for _ in range(TRIES):
        with suppress(CompileError):
            return draw_fused(draw)
    return draw_fused(draw)


def judge(seed: int) -> Outcome:
    """Compile and run the case of a seed."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.importers.linalg_text import LinalgText

    def make() -> tuple[Any, Any]:
        drawn, _, pipeline = random_case(seed)
        source = LinalgText(drawn.text, "fused.mlir")
        bundle = as_bundle(compile_matmul(source, target=drawn.target, pipeline=pipeline))
        spec, sizes = fuzz_specs.of_a_size(drawn.spec, seed)
        return (drawn, spec), bundle.at(*sizes)

    return fuzz_specs.judge_made(seed, make, _wrong, partial(limited, SECONDS))


def _wrong(case: tuple[Drawn, Any], bundle: Any, seed: int) -> str:
    from tilewright.runtime.launch.devices import open_device

    exact = FusedProduct(*case, seed)
    open_device("emulator").launch(bundle, exact.arrays, seed, check="full")
    return exact.wrong()


def describe(seed: int) -> str:
    """What to keep of a seed."""
    drawn, kind, pipeline = random_case(seed)
    return f"{drawn.described()}{drawn.target} {kind} {pipeline}\n"


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
