"""Compile specs of every kind by pipelines of any kind, and hold every bit to numpy.

    python test/fuzz/fuzz_pipelines.py --count 1000 --seed 0 --processes 2

Each must be refused by a CompileError that says a rule, or be right on the emulator to the last bit
and write nothing else. What is neither is printed with its seed; `--seed S --count 1` is that one
again. Exit status 1 when there is one.
"""

from __future__ import annotations

import random
import signal
import sys
from contextlib import contextmanager
from typing import Any

import fuzz_specs
from exact_products import ExactProduct
from fuzz_linalg import Outcome, judge_all
from random_pipelines import changed, of_nothing
from wide_specs import K_PER_MMA, random_spec

SECONDS = 90
"""Of the processor for one case, which usually takes one."""


def random_case(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a spec, and how to compile it."""
    draw = random.Random(f"pipeline {seed}")
    fields, target = random_spec(draw)
    options: dict[str, Any] = {"target": target}
    kind = draw.choice(
        ("chosen", "changed", "changed", "changed", "sensible", "nothing", "nothing")
    )
    if kind == "changed":
        options["pipeline"] = _changed(draw, fields, target)
    elif kind == "nothing":
        options["pipeline"] = of_nothing(draw)
    elif kind == "sensible":
        depth = K_PER_MMA.get(fields.get("a_dtype", "bf16"), 32)
        text = fuzz_specs.pipeline_of(draw, target, depth)
        options["pipeline"] = fuzz_specs.swapped(draw, text, target)
    if draw.random() < 0.1:
        options["stop_after"] = draw.choice(("tiling", "pipelining", "plan-memory", "clustering"))
    return fields, options


def _changed(draw: random.Random, fields: dict[str, Any], target: str) -> str | None:
    """The pipeline that the compiler chooses, with changes; None where it refuses the spec."""
    from tilewright.compiler.driver import plan_passes
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.dialects.errors import CompileError

    try:
        plan = plan_passes(MatmulSpec(**fields), target=target, pipeline=None, preset=None)
    except CompileError:
        return None
    return changed(draw, ",".join(map(str, plan.calls[1:])))


class TooSlow(Exception):
    """A case takes too long."""


@contextmanager
def limited(seconds: int):
    """Raise TooSlow inside after so many seconds."""

    def stop(*_: Any) -> None:
        raise TooSlow(f"more than {seconds} s")

    earlier = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


def judge(seed: int) -> Outcome:
    """Compile and run the case of a seed."""
    return judge_case(seed, *random_case(seed))


def judge_case(seed: int, fields: dict[str, Any], options: dict[str, Any]) -> Outcome:
    """Compile a spec and run it on inputs of the seed."""
    return fuzz_specs.judge_spec(seed, fields, options, _wrong, lambda: limited(SECONDS))


def _wrong(spec: Any, bundle: Any, seed: int) -> str:
    from tilewright.runtime.launch.devices import open_device

    exact = ExactProduct(spec, seed)
    open_device("emulator").launch(bundle, exact.arrays, seed, check="full")
    return exact.wrong()


def describe(seed: int) -> str:
    """What to keep of a seed."""
    fields, options = random_case(seed)
    return f"{fields}\n{options}\n"


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
