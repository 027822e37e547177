"""Stop random products after each of their passes, print them, and go on from what was printed.

    python test/fuzz/read_back.py --count 400 --seed 0 --processes 2

What is read again must give the very PTX, and the very launch, that going on in memory gives. What
does not is printed with its seed; `--seed S --count 1` is that one again. Exit status 1 when there
is one.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import fuzz_specs
from fuzz_linalg import Outcome, judge_all
from random_linalg import random_problem

KINDS = ("default", "pipeline", "linalg", "more")
WEIGHTS = ("s8", "e4m3", "e5m2", "s4", "u4")
OF_WEIGHTS = ("sm_100a", "sm_90a", "sm_80", "sm_120a")
DEEP = (2048, 8192)
"""K of few tiles, whose schedules split it."""


def drawn(seed: int) -> tuple[Any, dict[str, Any]]:
    """What is compiled, a spec's fields or a text of linalg, and how."""
    kind = KINDS[seed % len(KINDS)]
    if kind == "linalg":
        problem = random_problem(seed)
        return problem.text, {"target": problem.target}
    if kind == "more":
        return _more(random.Random(f"more {seed}"))
    fields, options = fuzz_specs.random_case(seed)
    if kind == "default":
        options.pop("pipeline", None)
    return fields, options


def _more(draw: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `fuzz_specs` does not draw: weights, scales of 128, few rows, sizes that are open."""
    made = draw.choice((_weights, _by_128, _few_rows, _open, _split))(draw)
    fields, target = made
    return fields, {"target": target}


def _weights(draw: random.Random) -> tuple[dict[str, Any], str]:
    k, dtype = draw.choice((64, 128, 384)), draw.choice(WEIGHTS)
    group = draw.choice((0, 32, 64, k))
    types = {"a_dtype": draw.choice(("bf16", "f16")), "b_dtype": dtype, "c_dtype": "f32"}
    scales = {"group_size": group, "scale_dtype": draw.choice(("bf16", "f32"))} if group else {}
    if dtype == "u4" and group:
        scales["zero_points"] = draw.random() < 0.6
    sizes = {"m": draw.choice((1, 16, 130)), "n": draw.choice((16, 72, 136)), "k": k}
    return {**sizes, **types, **scales, "dynamic_m": draw.random() < 0.3}, draw.choice(OF_WEIGHTS)


def _by_128(draw: random.Random) -> tuple[dict[str, Any], str]:
    sizes = {"m": draw.choice((5, 130)), "n": draw.choice((24, 136)), "k": draw.choice((128, 384))}
    types = {"a_dtype": "e4m3", "b_dtype": draw.choice(("e4m3", "e5m2"))}
    if draw.random() < 0.3:
        return {**sizes, **types, "sums": "two-level"}, "sm_90a"
    forms = {"a_scales": "1x128", "b_scales": draw.choice(("1x128", "128x128"))}
    groups = {"groups": draw.choice((2, 5))} if draw.random() < 0.4 else {}
    return {**sizes, **types, **forms, **groups}, draw.choice(("sm_100a", "sm_90a"))


def _few_rows(draw: random.Random) -> tuple[dict[str, Any], str]:
    dtype = draw.choice(("bf16", "f16", "f32"))
    types = {"a_dtype": dtype, "b_dtype": dtype, "c_dtype": "f32"}
    sizes = {"m": draw.randint(1, 4), "n": draw.choice((8, 66, 520)), "k": 8 * draw.randint(1, 90)}
    products = {"products": draw.choice((1, 2))} if dtype != "f32" else {}
    return {**sizes, **types, **products}, draw.choice(("sm_100a", "sm_90a"))


def _open(draw: random.Random) -> tuple[dict[str, Any], str]:
    sizes = {"m": draw.choice((2, 40, 130)), "n": draw.choice((24, 136))}
    sizes["k"] = draw.choice((64, 72))
    which = draw.choice(({"dynamic_m": True}, {"dynamic_m": True, "products": 2}, {}))
    if not which or ("products" not in which and draw.random() < 0.5):
        which |= {"batch": 3, "dynamic_batch": True}
    return {**sizes, **which}, draw.choice(("sm_100a", "sm_90a"))


def _split(draw: random.Random) -> tuple[dict[str, Any], str]:
    dtype = draw.choice(("bf16", "e4m3", "tf32"))
    types = {"a_dtype": dtype, "b_dtype": dtype}
    sizes = {"m": draw.choice((16, 64, 200)), "n": draw.choice((64, 136)), "k": draw.choice(DEEP)}
    return {**sizes, **types}, draw.choice(("sm_100a", "sm_90a"))


def judge(seed: int) -> Outcome:
    """Go on from each pass of the whole pipeline of a case, or of a drawn prefix of it."""
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.dialects.errors import CompileError

    given, options = drawn(seed)
    try:
        text = isinstance(given, str)
        source = LinalgText(given, "random.mlir") if text else MatmulSpec(**given)
        names, whole, stops = _compiled(source, random.Random(seed), options)
    except CompileError as error:
        return Outcome(seed, "refused", str(error))
    for name, printed in stops:
        try:
            again = _again(name, printed, names, options["target"])
        except Exception as error:
            return Outcome(seed, f"not read after {name}", f"{type(error).__name__}: {error}")
        if (again.ptx, again.manifest) != (whole.ptx, whole.manifest):
            return Outcome(seed, f"differs after {name}", str(given))
    return Outcome(seed, "right")


def _compiled(
    source: Any, draw: random.Random, options: dict[str, Any]
) -> tuple[list[str], Any, list[tuple[str, str]]]:
    """The passes that ran, what they made, and what was printed after each."""
    from tilewright.compiler.driver import compile_matmul, plan_passes

    plan = {"target": options["target"], "pipeline": options.get("pipeline"), "preset": None}
    calls = plan_passes(source, **plan).calls
    scheduled = [call.name for call in calls[1:-1]]  # between normalize and the lowering
    left: list[tuple[str, str]] = []
    whole = compile_matmul(
        source,
        **options,
        stop_after=draw.choice((None, None, *scheduled)),
        until="ptx",
        observer=lambda event: left.append((event.name, event.ir())),
    )
    kept = len(whole.pipeline.split(",")) - 1
    return [*map(str, calls[:kept]), str(calls[-1])], whole, left


def _again(name: str, printed: str, calls: list[str], target: str) -> Any:
    """What the passes behind that one make of what was printed."""
    from tilewright.compiler.driver import compile_matmul

    names = [call.partition("{")[0] for call in calls]
    rest = calls[names.index(name) + 1 :] if name in names else calls[-1:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "printed.mlir"
        path.write_text(printed)
        return compile_matmul(path, target=target, pipeline=",".join(rest) or None, until="ptx")


def describe(seed: int) -> str:
    """What to keep of a seed."""
    given, options = drawn(seed)
    return f"{given}\n{options}\n"


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
