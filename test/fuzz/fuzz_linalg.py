"""Compile and run random modules of linalg, and hold every element to the source.

    python test/fuzz/fuzz_linalg.py --count 2000 --seed 0 --processes 2

Each module must be refused with a CompileError at a line of it, or give on the emulator what the
source says (`tools.oracle`). Whatever else happens is printed with its seed, and the module is
written to --keep; `--seed S --count 1` is that module again. Exit status 1 when there is one.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from random_linalg import Problem, random_problem

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0**-140, 2.0**-20, 3.0e38, -65504.0)


@dataclass(frozen=True)
class Outcome:
    """What became of a module: "right", "refused", "unjudged" (the reference doesn't evaluate it),
    or what is wrong with it."""

    seed: int
    kind: str
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether compiler or reference must be mended."""
        return self.kind not in ("right", "refused")


CODES = ("torch.float4_e2m1fn_x2", "torch.float8_e8m0fnu")
"""Types of which torch copies no elements."""


def judge(seed: int) -> Outcome:
    """Compile and run the module of a seed."""
    return judge_problem(random_problem(seed), seed)


def judge_problem(problem: Problem, seed: int, pipeline: str | None = None) -> Outcome:
    """Compile and run a module on inputs of a seed, by the passes of its schedule or by others."""
    from tilewright.dialects.errors import CompileError

    try:
        compiled = _compiled(problem.text, problem.target, pipeline)
    except CompileError as error:
        placed = error.location is not None or "normalize" in error.message
        return Outcome(seed, "refused" if placed else "refused without a place", str(error))
    except Exception as error:
        return Outcome(seed, "internal error", f"{type(error).__name__}: {error}")
    try:
        return _compared(seed, problem.text, compiled)
    except CompileError as error:
        return Outcome(seed, "unjudged", str(error))
    except Exception as error:
        return Outcome(seed, "failed at run", f"{type(error).__name__}: {error}")


def _compiled(text: str, target: str, pipeline: str | None) -> Any:
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.importers.linalg_text import LinalgText

    with without_ptxas():
        source = LinalgText(text, "random.mlir")
        return compile_matmul(source, target=target, pipeline=pipeline)


@contextmanager
def without_ptxas() -> Iterator[None]:
    """ptxas takes half the time, and says nothing of values."""
    from tilewright.compiler import driver
    from tilewright.compiler.backend import Assembled

    assembled = Assembled(b"", 0, 0, 0, 0, 0, "")
    without = {"assemble": lambda *_, **__: assembled, "assembler_ahead": lambda **_: nullcontext()}
    with mock.patch.multiple(driver, **without):
        yield


def _compared(seed: int, text: str, compiled: Any) -> Outcome:
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.runtime.bundles.manifest import output
    from tilewright.runtime.judge.reference import compare, to_float64
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.runs.references import OfSource

    reference = OfSource(text, "random.mlir")
    reference.arguments = reference.random(seed)
    _sprinkle(reference.arguments, seed)
    (expected,) = reference.evaluated(hopper_gpu=False, by_fma=False)
    bundle = as_bundle(compiled)
    tensors = reference.placed(bundle.manifest)
    open_device("emulator").launch(bundle, tensors, seed, check="fast")
    c = output(bundle.manifest)
    actual = to_float64(tensors[c["name"]], c["dtype"])
    if actual.shape != reference.source.results[0][1]:
        return Outcome(seed, "wrong shape", str(actual.shape))
    allowed = reference.allowed(bundle.manifest, expected, c["dtype"])
    found = compare(allowed, actual, c["dtype"])
    return Outcome(seed, "right") if found.passed else Outcome(seed, "wrong", str(found))


def _sprinkle(arguments: list[Any], seed: int) -> None:
    """Special values here and there, in every second module."""
    import torch

    draw = np.random.default_rng(seed)
    if seed % 2:
        return
    for argument in arguments:
        if argument.dtype.is_floating_point and str(argument.dtype) not in CODES:
            chosen = draw.choice(SPECIAL, tuple(argument.shape))
            where = draw.random(tuple(argument.shape)) < 0.02
            special = torch.from_numpy(chosen).to(argument.dtype)
            argument.copy_(torch.where(torch.from_numpy(where), special, argument))


def judge_all(
    judge: Callable[[int], Outcome], describe: Callable[[int], str], doc: str | None, suffix: str
) -> int:
    """Judge the `--count` seeds from `--seed` on, in processes; 1 when there is a fault."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where faults go")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    started = time.time()
    context = multiprocessing.get_context("spawn")
    faults = 0
    with context.Pool(options.processes, maxtasksperchild=200) as pool:
        for outcome in pool.imap(judge, range(options.seed, options.seed + options.count)):
            counts[outcome.kind] += 1
            faults += outcome.is_fault
            if outcome.is_fault:
                _keep(outcome, options.keep / f"{outcome.seed}.{suffix}", describe(outcome.seed))
            if outcome.seed % 100 == 99:
                seconds = time.time() - started
                print(f"{outcome.seed + 1}: {dict(counts)}, {seconds:.0f} s", flush=True)
    print(f"{options.count} from seed {options.seed} on: {dict(counts)}")
    return int(faults > 0)


def _keep(outcome: Outcome, place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    print(f"seed {outcome.seed}: {outcome.kind}: {outcome.detail[:600]} ({place})", flush=True)


if __name__ == "__main__":
    sys.exit(judge_all(judge, lambda seed: random_problem(seed).text, __doc__, "mlir"))
