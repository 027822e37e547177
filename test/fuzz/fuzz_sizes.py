"""Compile kernels for any K, any M or any number of matrices by passes of every kind, and hold
several launches of each to numpy, bit by bit.

    python test/fuzz/fuzz_sizes.py --count 1000 --seed 0 --processes 2

Each must be refused by a CompileError that says a rule, or be right on the emulator to the last bit
for every size and write nothing else. What is neither is printed with its seed; `--seed S
--count 1` is that one again. Exit status 1 when there is one.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from typing import Any, NamedTuple

import fuzz_specs
from fused_products import Drawn, FusedProduct, fused_of
from fuzz_linalg import Outcome, judge_all, without_ptxas
from fuzz_pipelines import SECONDS, limited
from large_schedules import large_schedule
from random_pipelines import changed, cut, of_nothing

TARGETS = (*["sm_90a"] * 4, *["sm_100a"] * 4, "sm_120a", "sm_80")
TYPES = (*[("bf16", 16)] * 3, ("f16", 16), ("e4m3", 32))
EXTENTS = (1, 7, 8, 16, 24, 32, 40, 64, 65, 72)
DEPTHS = (1, 2, 15, 16, 17, 63, 64, 65, 128, 129, 200)
"""K below a step, of whole steps and beside them, and of more steps than most rings have slots."""
ROWS = (1, 3, 8, 16, 63, 64, 65, 72)
TMA = "tma-insertion,swizzle-selection"
HOPPER = (
    f"tiling{{tile=TILE}},{TMA},epilogue-staging,clustering{{shape=2x1}},pipelining{{stages=3}},"
    "warp-specialization,persistence{ctas=2},ping-pong",
    f"tiling{{tile=TILE}},{TMA},epilogue-staging{{columns=16 buffers=2 ahead=2}},"
    "pipelining{stages=4},warp-specialization,slot-reuse,edge-boxes",
    f"tiling{{tile=TILE}},{TMA},split-k{{parts=3 over=grid}},clustering{{shape=2x1}},"
    "pipelining{stages=5},warp-specialization,expand-loops{early=1}",
    f"tiling{{tile=TILE}},{TMA},pipelining{{stages=6}},warp-specialization,k-rotation{{along=n}}",
    f"tiling{{tile=TILE}},{TMA},split-k{{parts=2 over=cluster}},pipelining,warp-specialization",
    "tiling{tile=TILE},copy-insertion,swizzle-selection,pipelining{stages=4},warp-specialization,"
    "persistence{ctas=3}",
    f"tiling{{tile=64x16x64 swap=true}},{TMA},epilogue-staging,clustering{{shape=1x2}},pipelining,"
    "warp-specialization,persistence{order=n ctas=4}",
)
BLACKWELL = (
    f"tiling{{tile=TILE}},{TMA},epilogue-staging,clustering{{shape=2x1 pair=true}},"
    "pipelining{stages=4},warp-specialization,persistence{scheduler=clc}",
    f"tiling{{tile=TILE}},{TMA},epilogue-staging{{columns=16 buffers=2 ahead=2}},"
    "pipelining{stages=5},warp-specialization,slot-reuse",
    f"tiling{{tile=TILE}},{TMA},split-k{{parts=3 over=grid}},clustering{{shape=2x1}},"
    "pipelining{stages=3},warp-specialization",
    f"tiling{{tile=TILE}},{TMA},split-k{{parts=4 over=cluster}},pipelining,warp-specialization",
    f"tiling{{tile=TILE}},{TMA},clustering{{shape=1x2}},pipelining{{stages=7}},warp-specialization,"
    "persistence{ctas=2 order=n}",
)
WARPS = (
    "tiling{tile=64x32x32},copy-insertion,swizzle-selection,epilogue-staging,pipelining{stages=4},"
    "persistence{ctas=2}",
    "tiling{tile=32x16x32 mma=mma.sync},copy-insertion,split-k{parts=3 over=grid},pipelining",
)
PIPELINES = {"sm_90a": HOPPER, "sm_100a": BLACKWELL}
KINDS = (*["cut"] * 3, *["whole"] * 4, *["changed"] * 6, "large", "sensible", "nothing", "chosen")
SIZES = 2
TRIES = 8
REFUSED_MOST = 3
"""How many cases of a seed may be refused before it is."""


class Case(NamedTuple):
    """A product with a function of its sums, the passes that compile it, and sizes to launch."""

    drawn: Drawn
    pipeline: str | None
    sizes: list[tuple[int, ...]]


def random_case(seed: int, number: int = 0) -> Case:
    """A case of a seed; CompileError where there is no such product."""
    draw = random.Random(f"sizes {seed} {number}")
    drawn = _drawn(draw)
    return Case(drawn, _pipeline(draw, drawn), [_sizes(draw, drawn.spec) for _ in range(SIZES)])


def _drawn(draw: random.Random) -> Drawn:
    """A product with a function, after a few that there are none of."""
    from tilewright.dialects.errors import CompileError

    for _ in range(TRIES):
        with suppress(CompileError):
            return fused_of(draw, _fields(draw), draw.choice(TARGETS))
    return fused_of(draw, _fields(draw), "sm_90a")


def _fields(draw: random.Random) -> dict[str, Any]:
    """A spec some of whose sizes a launch says, mostly K."""
    dtype, _ = draw.choice(TYPES)
    m, n, k = (draw.choice((draw.choice(EXTENTS), draw.randint(1, 80))) for _ in "mnk")
    c = draw.choice(("bf16", "f32", "f16", "e4m3"))
    fields = {"m": m, "n": n, "k": k, "a_dtype": dtype, "b_dtype": dtype, "c_dtype": c}
    kind = draw.choice((*["k"] * 5, "groups of k", "m", "columns", "batch", "both", "groups"))
    if kind in ("k", "groups of k"):
        fields |= {"a_major": "m", "b_major": "n", "dynamic_k": True}
    if kind == "k" and draw.random() < 0.3:
        fields |= {"lda": m + draw.choice((1, 3, 8)), "ldb": n + draw.choice((0, 4, 8))}
    if kind in ("m", "columns", "both", "groups"):
        fields |= {"dynamic_m": True, "b_major": draw.choice("kkn")}
    if kind == "columns":
        fields |= {"a_major": "m", "multiple_m": draw.choice((0, 8))}
    if kind in ("batch", "both"):
        fields |= {"batch": 2, "dynamic_batch": True}
    if kind.startswith("groups"):
        axis = "k" if kind == "groups of k" else "m"
        fields |= {"groups": draw.choice((1, 2, 5)), "group_axis": axis}
    return fields


def _pipeline(draw: random.Random, drawn: Drawn) -> str | None:
    """The text of passes, or None for those that the compiler chooses."""
    from tilewright.dialects.errors import CompileError

    kind, depth = draw.choice(KINDS), 32 if drawn.spec.a_dtype == "e4m3" else 16
    if kind == "chosen":
        return None
    if kind == "nothing":
        return of_nothing(draw)
    if kind == "sensible":
        return fuzz_specs.pipeline_of(draw, drawn.target, depth)
    text = draw.choice(PIPELINES.get(drawn.target, WARPS)).replace("TILE", _tile(draw, depth))
    if kind == "large":
        with suppress(CompileError):
            text = large_schedule(draw, drawn.spec, drawn.target)
    made = {"cut": cut, "changed": changed}.get(kind)
    return made(draw, text) if made else text


def _tile(draw: random.Random, depth: int) -> str:
    rows, columns = draw.choice((64, 64, 128)), draw.choice((16, 32, 32, 64))
    return f"{rows}x{columns}x{depth * draw.choice((1, 2, 4))}"


def _sizes(draw: random.Random, spec: Any) -> tuple[int, ...]:
    """Sizes of a launch, in their order."""
    multiple = spec.multiple_m or 1
    rows = draw.choice((draw.choice(ROWS), draw.randint(1, 80)))
    found = {
        "m": max(multiple, rows - rows % multiple),
        "batch": draw.choice((1, 2, 3)),
        "k": draw.choice((draw.choice(DEPTHS), draw.randint(1, 200))),
    }
    return tuple(found[name] for name in spec.open_sizes)


def judge(seed: int) -> Outcome:
    """Compile the first case of a seed that is not refused, and run it for each of its sizes."""
    found = Outcome(seed, "refused")
    for number in range(REFUSED_MOST):
        found = _judged(seed, number)
        if found.kind != "refused":
            break
    return found


def _judged(seed: int, which: int) -> Outcome:
    from tilewright.dialects.errors import CompileError

    try:
        with limited(SECONDS), without_ptxas():
            case = random_case(seed, which)
            bundle = compiled(case)
    except CompileError as error:
        return Outcome(seed, "refused", str(error))
    except Exception as error:
        return Outcome(seed, "internal error", f"{which}: {type(error).__name__}: {error}")
    for number, sizes in enumerate(case.sizes):
        where = f"case {which}, {sizes}"
        try:
            with limited(SECONDS):
                found = _wrong(case.drawn, bundle, sizes, seed + number)
        except Exception as error:
            return Outcome(seed, "failed at run", f"{where}: {type(error).__name__}: {error}")
        if found:
            return Outcome(seed, "wrong", f"{where}: {found}")
    return Outcome(seed, "right")


def compiled(case: Case) -> Any:
    """The bundle of a case."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.importers.linalg_text import LinalgText

    source = LinalgText(case.drawn.text, "sizes.mlir")
    return as_bundle(compile_matmul(source, target=case.drawn.target, pipeline=case.pipeline))


def _wrong(drawn: Drawn, bundle: Any, sizes: tuple[int, ...], seed: int) -> str:
    from tilewright.runtime.launch.devices import open_device

    exact = FusedProduct(drawn, drawn.spec.of_sizes(*sizes), seed)
    open_device("emulator").launch(bundle.at(*sizes), exact.arrays, seed, check="full")
    return exact.wrong()


def describe(seed: int) -> str:
    """What to keep of a seed."""
    return "".join(_described(seed, number) for number in range(REFUSED_MOST))


def _described(seed: int, number: int) -> str:
    drawn, pipeline, sizes = random_case(seed, number)
    return f"case {number}: {drawn.described()}{drawn.target} {pipeline}\n{sizes}\n"


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
