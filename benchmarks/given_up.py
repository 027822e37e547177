"""How often ptxas has no room for the schedule that is chosen first, over random products.

    python benchmarks/given_up.py [--count 300] [--seed 1] [--target sm_90a] [--processes 2]
        [--json PATH] [--choices]

It needs no GPU. Products have scales of 128, groups, two operands B, vectors and matrices beside
the sums, outputs beside C, or several of these. Each is compiled as anybody would, and what gave
way to another schedule is printed with its try. `--choices` compiles nothing: it only says what is
chosen first, so that two trees can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

M = (96, 128, 512, 1000, 2048, 4095, 4096, 8192)
N = (128, 256, 1000, 1536, 2111, 2112, 4096, 5120, 7168)
K = (512, 1536, 2048, 4096, 7168)
FORMS = (("1x128", "1x128"), ("1x128", "128x128"), ("128x128", "1x128"))
Fields = dict[str, Any]


def main() -> int:
    """Compile all and print what gave way; 1 where a product has no kernel."""
    options = _options()
    draw = random.Random(options.seed)
    cases = [(number, drawn(draw)) for number in range(options.count)]
    work = partial(_chosen if options.choices else _compiled, options.target)
    found, started = [], time.time()
    with get_context("fork").Pool(options.processes) as pool:
        for each in pool.imap_unordered(work, cases):
            found.append(each)
            if each["tries"] or each.get("refused"):
                print(_line(each), flush=True)
            if options.json:
                rows = sorted(found, key=lambda row: row["number"])
                options.json.write_text(json.dumps(rows, indent=1))
    tries = sum(len(each["tries"]) for each in found)
    gave_way = sum(bool(each["tries"]) for each in found)
    without = sum("refused" in each for each in found)
    seconds = time.time() - started
    print(f"{len(found)} products, {gave_way} gave way, {tries} tries, {without} refused")
    print(f"{seconds:.0f} s")
    return int(bool(without))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=("sm_90a", "sm_100a"), default="sm_90a")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--choices", action="store_true")
    return parser.parse_args()


def drawn(draw: random.Random) -> tuple[Fields, str]:
    """The fields of a spec, and an epilogue by its name in `EPILOGUES`."""
    fields: Fields = {"m": draw.choice(M), "n": draw.choice(N), "k": draw.choice(K)}
    kind = draw.choice(("scaled", "scaled", "two-level", "8 bits", "16 bits", "16 bits"))
    dtype = {"16 bits": draw.choice(("bf16", "f16"))}.get(kind, "e4m3")
    fields |= {"a_dtype": dtype, "b_dtype": dtype}
    fields |= {"c_dtype": draw.choice(("bf16", "bf16", "f32", "e4m3"))}
    if kind == "two-level":
        fields |= {"sums": "two-level"}
    form = draw.choice(("", "", "groups", "groups", "two", "batch"))
    if kind == "scaled":
        forms = draw.choice(FORMS[: 2 if form == "groups" else None])
        fields |= dict(zip(("a_scales", "b_scales"), forms, strict=True))
    if form == "groups":
        fields |= {"groups": draw.choice((4, 16, 128))}
        fields |= {"gathered": fields["m"]} if draw.random() < 0.2 else {}
    if form == "two" and kind != "scaled":
        fields |= {"products": 2}
    if form == "batch" and kind != "scaled":
        fields |= {"batch": 4}
    names = [name for name in EPILOGUES if name.startswith("two") == ("products" in fields)]
    name = draw.choice(names)
    if kind == "scaled":  # whose rows are not gathered
        fields.pop("gathered", None)
    return fields, "none" if "groups" in fields and name == "largest magnitude" else name


def _two_outputs(x: Any, bias: Any) -> Any:
    import torch

    y = x + bias
    return torch.nn.functional.gelu(y, approximate="tanh"), y


def _gated(x: Any, y: Any, *vectors: Any) -> Any:
    import torch

    if not vectors:
        return torch.nn.functional.silu(x) * y
    row, column = vectors
    return torch.nn.functional.silu(x * row * column) * y


def _amax(x: Any, bias: Any) -> Any:
    return x + bias, (x + bias).abs().amax()


EPILOGUES: dict[str, tuple[Callable[..., Any] | None, str]] = {
    "none": (None, ""),
    "bias": (lambda x, bias: x + bias, "n"),
    "row": (lambda x, row: x * row, "m"),
    "row and column": (lambda x, row, column: x * row * column, "m n"),
    "row, column and bias": (lambda x, row, column, bias: x * row * column + bias, "m n n"),
    "residual": (lambda x, other: x + other, "mn"),
    "bias and residual": (lambda x, bias, other: x + bias + other, "n mn"),
    "sums beside their function": (_two_outputs, "n"),
    "largest magnitude": (_amax, "n"),
    "two, gated": (_gated, ""),
    "two, gated by vectors": (_gated, "m n"),
}
"""Functions of the sums, and what they read: an element a column, a row, or as many as C has."""


def source_of(fields: Fields, name: str) -> Any:
    """The product with its epilogue, as the compiler takes it."""
    import torch

    from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.importers.traced_function import TensorLike
    from tilewright.compiler.spec import MatmulSpec

    spec, (function, read) = MatmulSpec(**fields), EPILOGUES[name]
    if function is None:
        return spec
    stack = [spec.batch] if spec.batch else []
    sizes = {"m": (spec.m, 1), "n": (spec.n,), "mn": (*stack, spec.m, spec.n)}
    types = {"m": torch.float32, "n": torch.float32, "mn": torch.bfloat16}
    likes = [TensorLike(sizes[each], types[each]) for each in read.split()]
    frame = Frame.of([*stack, spec.m, spec.n], spec.batch)
    spec, made, *_ = import_epilogue(spec, frame, function, likes)
    return LinalgText(spec.mlir_text(made), "matmul")


def _compiled(target: str, case: tuple[int, tuple[Fields, str]]) -> Fields:
    from tilewright.compiler.driver import compile_matmul
    from tilewright.dialects.errors import CompileError, OptionError

    number, (fields, name) = case
    row: Fields = {"number": number, "fields": fields, "epilogue": name, "tries": []}
    started = time.time()
    try:
        found = compile_matmul(source_of(fields, name), target=target)
        row |= {"tries": list(found.given_up), "taken": found.pipeline}
        assert found.assembled is not None
        row |= {"registers": found.assembled.registers}
    except (CompileError, OptionError) as error:
        row |= {"refused": str(error).splitlines()[0]}
    return row | {"seconds": time.time() - started}


def _chosen(target: str, case: tuple[int, tuple[Fields, str]]) -> Fields:
    from tilewright.compiler.driver import plan_passes
    from tilewright.dialects.errors import CompileError, OptionError

    number, (fields, name) = case
    row: Fields = {"number": number, "fields": fields, "epilogue": name, "tries": []}
    try:
        plan = plan_passes(source_of(fields, name), target=target, pipeline=None, preset=None)
    except (CompileError, OptionError) as error:
        return row | {"refused": str(error).splitlines()[0]}
    return row | {"taken": ",".join(map(str, plan.calls))}


def _line(row: Fields) -> str:
    said = " ".join(f"{name}={value}" for name, value in row["fields"].items())
    tiles = [each.partition("tiling")[2].partition("}")[0] for each in row["tries"]]
    return f"{said} {row['epilogue']}: {row.get('refused') or ' '.join(tiles)}"


if __name__ == "__main__":
    sys.exit(main())
