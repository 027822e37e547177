"""What the comparisons of kernels with torch share: their arguments, bundles, graphs and times.

A comparison is a script that is called twice: `compile FOLDER`, where the compiler is, writes
FOLDER/SHAPE.….NAME.zip; `run FOLDER` measures them on a GPU, with `runtime` alone.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

CALLS = 4  # in a graph of one call


def add_rest(parser: argparse.ArgumentParser) -> None:
    """`--rest FACTOR`: how long a GPU idles behind each batch, in times of the batch."""
    parser.add_argument(
        "--rest",
        type=_factor,
        default=0,
        metavar="FACTOR",
        help="idle time behind each batch, in times of the batch (default 0)",
    )


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 <= factor < math.inf:
        raise argparse.ArgumentTypeError(f"must be 0 or more, got {text}")
    return factor


def comparison_parser(
    doc: str | None,
    shapes: str,
    what: Sequence[str] = ("compile", "run"),
    *,
    of_shapes: str = "MxNxK,…",
    rounds: int = 15,
    own_check: bool = False,
) -> argparse.ArgumentParser:
    """The arguments that every comparison takes; own_check: the script looks at shapes itself."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("what", choices=what)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", help="chip (default sm_90a)")
    shapes_of = str if own_check else partial(_shapes, form=of_shapes)
    parser.add_argument("--shapes", type=shapes_of, default=shapes, help=of_shapes)
    parser.add_argument(
        "--rounds", type=int, default=rounds, help=f"graphs a contender (default {rounds})"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    return parser


def _shapes(text: str, form: str) -> str:
    """Shapes as they are written: each has as many sizes as the form has, or one of its forms."""
    counts = {each.count("x") for each in form.split(",")[0].split(" or ")}
    for shape in text.split(","):
        if (
            not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", shape, re.ASCII)
            or shape.count("x") not in counts
        ):
            raise argparse.ArgumentTypeError(f"must be {form}, got {shape!r}")
    return text


def parsed(parser: argparse.ArgumentParser, **read: Sequence[str]) -> argparse.Namespace:
    """The options, by what is done with them those that it reads: others must be left out."""
    options = parser.parse_args()
    unread = vars(options).keys() - {"what", "folder", *read[options.what]}
    given = sorted(each for each in unread if getattr(options, each) != parser.get_default(each))
    if given:
        flags = ", ".join(f"--{each.replace('_', '-')}" for each in given)
        parser.error(f"{options.what} must come without {flags}, which it does not read")
    return options


def check_known(
    parser: argparse.ArgumentParser, flag: str, text: str, known: Collection[str]
) -> None:
    """Refuse a list, by commas, with a name that is none of these."""
    unknown = sorted({*text.split(",")} - {*known})
    if unknown:
        parser.error(f"{flag} must be of {', '.join(known)}, got '{unknown[0]}'")


def write_bundle(source: Any, path: Path, target: str, pipeline: str | None = None) -> bool:
    """Compile to a bundle at `path`, and print its pipeline; False, and the reason, if refused."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.dialects.errors import CompileError

    try:
        compiled = compile_matmul(source, target=target, pipeline=pipeline)
    except CompileError as error:
        print(f"{path.stem:32} {error}", file=sys.stderr)
        return False
    as_bundle(compiled, path)
    print(f"{path.stem:32} {compiled.pipeline}", file=sys.stderr)
    return True


def bundles_of(folder: Path, pattern: str = "*.zip") -> list[Path]:
    """The bundles of a folder; ends the program where there is none."""
    found = sorted(folder.glob(pattern))
    if not found:
        sys.exit(f"error: {folder}: must hold bundles {pattern}, got none; compile them first")
    return found


def loaded(folder: Path, parts: int = 1) -> dict[tuple[str, ...], dict[str, Any]]:
    """The kernels of a folder by the first `parts` parts of their names, then by the last one."""
    from tilewright.runtime import load

    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for path in bundles_of(folder):
        *key, name = path.stem.split(".", parts)
        found.setdefault(tuple(key), {})[name] = load(path)
    return found


def measured(
    options: argparse.Namespace, measure: Callable[..., list[dict[str, Any]]], parts: int = 1
) -> int:
    """Rows of `measure(*key, kernels, options)` of what `loaded` finds, reported."""
    found = loaded(options.folder, parts)
    rows = [row for key, kernels in found.items() for row in measure(*key, kernels, options)]
    return reported(rows, options.json)


def reported(rows: Sequence[dict[str, Any]], path: Path | None) -> int:
    """The exit status of measured rows: 1 where one is not right. Writes them to a path as JSON."""
    if path:
        path.write_text(json.dumps(rows, indent=1))
    return 0 if all(row["right"] for row in rows) else 1


def captured(call: Callable[[], Any], *others: Callable[[], Any]) -> tuple[Any, int]:
    """A CUDA graph that has run once, and how many calls it has: `CALLS` of one, or one of each."""
    import torch

    calls = (call, *others) if others else (call,) * CALLS
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for each in calls:
            each()
    graph.replay()
    torch.cuda.synchronize()
    return graph, len(calls)


def timed(graphs: dict[str, tuple[Any, int]], rounds: int, rest: float = 0) -> dict[str, float]:
    """Median microseconds a call of each contender's graph, taking turns.

    rest: how many times as long as a graph took the GPU then has nothing to do, so that none finds
    it at the limit of its power.
    """
    import torch

    taken: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, (graph, calls) in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            took_ms = begin.elapsed_time(end)
            taken[name].append(1000 * took_ms / calls)
            time.sleep(rest * took_ms * 1e-3)
    return {name: statistics.median(times) for name, times in taken.items()}
