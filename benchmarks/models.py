"""Whole models: eager torch, Inductor, Inductor with max-autotune, and backend="tilewright".

    python benchmarks/models.py --quick                       three models, without max-autotune
    python benchmarks/models.py                               all models and columns
    python benchmarks/models.py --only "llama decode" --report
    python benchmarks/models.py --tiny --device emulator      on the CPU: is it right?

Times are medians of replays of CUDA graphs that take turns; of a training step forward and
backward are in one graph. "matmul" is the sum over the products of the model, measured one by one,
Inductor's over ours; a product that ours leaves to Inductor counts the same in both. "error" is the
distance from the same model in float64, root mean square, ours over eager's. "compile" is in
seconds, the first call included.

A line a model appears as soon as it is measured; `--seconds` ends the list early. `--json FILE`
keeps the figures. Needs torch 2.9 to 2.13; on a GPU cuda-python, and triton for Inductor.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from model_list import CASES, QUICK, Case
from torch import nn

import tilewright

COLUMNS = ("eager", "inductor", "autotune", "ours")
ROUNDS = 15
AUTOTUNE = "max-autotune-no-cudagraphs"


def main() -> None:
    options = arguments()
    from torch._inductor import config

    config.force_disable_caches = True  # so that each column compiles, and ours reports
    columns = options.columns.split(",")
    cases = [c for c in (QUICK if options.quick else CASES) if options.only in c.name]
    print(f"{'model':24}" + "".join(f"{name + ' us':>14}" for name in columns) + headings(columns))
    started, found = time.perf_counter(), []
    for case in cases:
        if time.perf_counter() - started > options.seconds:
            print(f"{case.name:24} not measured: {options.seconds} s are over")
            continue
        row = measure(case, columns, options)
        found.append(row)
        print(line_of(row, columns), flush=True)
        if options.report:
            print(row["report"])
        if options.json:
            with open(options.json, "w") as file:
                json.dump(found, file, indent=1)
    summary(found, columns)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three models, without max-autotune")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--columns", default="", help=f"of {','.join(COLUMNS)}")
    parser.add_argument("--device", default="cuda", choices=("cuda", "emulator"))
    parser.add_argument("--tiny", action="store_true", help="sizes for the emulator")
    parser.add_argument("--report", action="store_true", help="print what was taken and why")
    parser.add_argument(
        "--against", default="", help="mode of Inductor that ours races: max-autotune"
    )
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    if not options.columns:
        quick = options.quick or options.device == "emulator"
        options.columns = "eager,ours" if options.device == "emulator" else ",".join(COLUMNS)
        if quick and options.device == "cuda":
            options.columns = "eager,inductor,ours"
    return options


def measure(case: Case, columns: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model; a column that fails has the reason in place of its time."""
    on_gpu = options.device == "cuda"
    model, given = case.build("cuda" if on_gpu else "cpu", options.tiny)
    row: dict[str, Any] = {"name": case.name, "us": {}, "compile_s": {}, "error": {}}
    reference = exact(case, model, given)
    steps: dict[str, Callable[[], Any]] = {}
    for column in columns:
        step = step_of(case, contender(column, model, options), given)
        start = time.perf_counter()
        try:
            made = step()
            if on_gpu:
                torch.cuda.synchronize()
        except Exception as error:  # a compiler may raise any kind; the table goes on
            row["us"][column] = f"{type(error).__name__}: {error}".splitlines()[0][:60]
            continue
        row["compile_s"][column] = time.perf_counter() - start
        if reference is not None:
            row["error"][column] = float((made.double() - reference).square().mean().sqrt())
        steps[column] = step
    if on_gpu:
        row["us"] |= times_of(steps)
    row |= {"report": str(tilewright.torch.report()), "matmul": matmul_times()}
    return row


def contender(column: str, model: nn.Module, options: argparse.Namespace) -> nn.Module:
    """The model, compiled as a column says; nothing of another column is kept."""
    if column == "eager":
        return model
    torch._dynamo.reset()
    if column == "inductor":
        return torch.compile(model)
    if column == "autotune":
        return torch.compile(model, mode=AUTOTUNE)
    from tilewright.compiler.inductor.report import reset

    reset()
    given: dict[str, Any] = {"device": options.device}
    if options.against:
        from torch._inductor import list_mode_options

        given |= list_mode_options(AUTOTUNE) if "autotune" in options.against else {}
    return torch.compile(model, backend="tilewright", options=given)


def step_of(case: Case, model: nn.Module, given: torch.Tensor) -> Callable[[], torch.Tensor]:
    """One call: the output, or of a training step the gradient of the first MLP's weight."""
    if not case.trains:

        def run() -> torch.Tensor:
            with torch.no_grad():
                return model(given)

        return run

    def train() -> torch.Tensor:
        model.zero_grad(set_to_none=True)
        model(given).backward()
        gradients = [each.grad for each in model.parameters() if each.dim() == 2]
        return gradients[-2]  # type: ignore[return-value]

    return train


def exact(case: Case, model: nn.Module, given: torch.Tensor) -> torch.Tensor | None:
    """What the step gives in float64; None for products that torch has in no such type."""
    if "fp8" in case.model or "moe" in case.model:
        return None
    wide = copy.deepcopy(model).double()
    return step_of(case, wide, given.double() if given.is_floating_point() else given)()


def times_of(steps: dict[str, Callable[[], Any]]) -> dict[str, float | str]:
    """Median microseconds of each step, captured in a CUDA graph; replays take turns."""
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    found: dict[str, float | str] = {}
    for name, step in steps.items():
        try:
            graphs[name] = captured(step)
        except Exception as error:  # the reason stands in the table
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0][:60]
    times: dict[str, list[float]] = {name: [] for name in graphs}
    names = list(graphs)
    for turn in range(ROUNDS):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(replay_us(graphs[name]))
    return found | {name: statistics.median(each) for name, each in times.items()}


def captured(step: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(2):
        graph.replay()
    return graph


def replay_us(graph: torch.cuda.CUDAGraph, count: int = 3) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(count):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / count


def matmul_times() -> tuple[float, float]:
    """Microseconds of the model's products by Inductor and with ours, as races measured them."""
    rows = [each for each in tilewright.torch.report().rows if each.inductor_us and each.ours_us]
    theirs = sum(each.inductor_us * each.count for each in rows)
    ours = sum((each.ours_us if each.taken else each.inductor_us) * each.count for each in rows)
    return theirs, ours


def headings(columns: list[str]) -> str:
    return f"{'best other/ours':>18}{'matmul':>9}{'error':>9}  compile s ({', '.join(columns)})"


def speedup(row: dict[str, Any]) -> float:
    """The best time of the others over ours; NaN where one is missing."""
    times = {name: us for name, us in row["us"].items() if isinstance(us, float)}
    ours = times.pop("ours", math.nan)
    return min(times.values(), default=math.nan) / ours


def line_of(row: dict[str, Any], columns: list[str]) -> str:
    times = [row["us"].get(name, math.nan) for name in columns]
    texts = [f"{each:14.1f}" if isinstance(each, float) else f"  [{each}]" for each in times]
    theirs, ours = row["matmul"]
    matmul = theirs / ours if ours else math.nan
    error = row["error"].get("ours", math.nan) / (row["error"].get("eager") or math.nan)
    spent = ", ".join(f"{row['compile_s'].get(name, math.nan):.1f}" for name in columns)
    figures = f"{speedup(row):18.3f}{matmul:9.3f}{error:9.3f}"
    return f"{row['name']:24}{''.join(texts)}{figures}  {spent}"


def summary(found: list[dict[str, Any]], columns: list[str]) -> None:
    """Geometric means over the models of each column over ours, and of the matmul time."""
    parts = []
    for name in columns:
        pairs = [(row["us"].get(name), row["us"].get("ours")) for row in found]
        ratios = [a / b for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
        if ratios and name != "ours":
            parts.append(f"{name}/ours {statistics.geometric_mean(ratios):.3f}")
    sums = [row["matmul"] for row in found if row["matmul"][1]]
    if sums:
        matmul = statistics.geometric_mean(theirs / ours for theirs, ours in sums)
        parts.append(f"matmul {matmul:.3f}")
    print("geometric means: " + (", ".join(parts) or "nothing was timed"))


if __name__ == "__main__":
    main()
