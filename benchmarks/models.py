"""Whole models: eager torch, Inductor, Inductor with max-autotune, and backend="tilewright".

    python benchmarks/models.py --quick                       three models, without max-autotune
    python benchmarks/models.py --json FILE --seconds 480     all, in slices: call it again
    python benchmarks/models.py --only "llama decode,vit" --report
    python benchmarks/models.py --tiny --device emulator      on the CPU: is it right?

Times are medians of replays of CUDA graphs that take turns; of a training step forward and
backward are in one graph. "matmul" is the sum over the products of the model, measured one by one,
Inductor's over ours; a product that ours leaves to Inductor counts the same in both. "error" is the
distance from the same model in float64, root mean square, ours over eager's. "compile" is in
seconds, the first call included, with nothing kept from before (`--keep-caches` keeps it).

A line a model appears as soon as it is measured. `--seconds` begins no model that would end later.
With `--json` the figures are kept, and models that the file has are not measured again; one during
which the process died is entered so, and left out from then on. Needs torch 2.9 to 2.13 and
transformers for all but GPT-2; on a GPU cuda-python, and triton for Inductor.

Several calls may share a GPU, each with models of its own, to compile at once: with `--turns FILE`
one measures at a time. Seconds of compilation are then those of a busy machine.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from model_list import CASES, QUICK, Case, Missing, in_float64
from model_rows import Kept, headings, line_of, summary
from torch import nn

import tilewright

COLUMNS = ("eager", "inductor", "autotune", "ours", "both")
"""`both` is ours with Inductor's max-autotune for what ours leaves, and raced against that."""
ROUNDS = 15
AUTOTUNE = "max-autotune-no-cudagraphs"


def main() -> None:
    options = arguments()
    columns = options.columns.split(",")
    if options.turns:
        take_turns(options.turns)
    kept = Kept(options.json, columns)
    print(f"{'model':24}" + "".join(f"{name + ' us':>14}" for name in columns) + headings(columns))
    started, longest = time.perf_counter(), 0.0
    for case in chosen(options):
        begun = time.perf_counter()
        if case.name not in kept and begun - started + longest > options.seconds:
            print(f"{case.name:24} not measured: {options.seconds:.0f} s are over")
            continue
        if case.name not in kept:
            kept.begin(case.name)
            kept.enter(measured(case, columns, options))
            longest = max(longest, time.perf_counter() - begun)
        print(line_of(kept[case.name], columns), flush=True)
        if options.report and kept[case.name].get("report"):
            print(kept[case.name]["report"], flush=True)
    summary(list(kept.rows.values()), columns)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three models, without max-autotune")
    parser.add_argument("--only", default="", help="models whose name contains one of these, by ,")
    parser.add_argument("--columns", default="", help=f"of {','.join(COLUMNS)}")
    parser.add_argument("--device", default="cuda", choices=("cuda", "emulator"))
    parser.add_argument("--tiny", action="store_true", help="sizes for the emulator")
    parser.add_argument("--report", action="store_true", help="print what was taken and why")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of this slice")
    parser.add_argument("--json", help="keep the figures in this file, and go on from there")
    parser.add_argument("--turns", help="a file by which calls that share a GPU measure in turns")
    parser.add_argument(
        "--keep-caches", action="store_true", help="compile with what was kept before"
    )
    options = parser.parse_args()
    if not options.columns:
        columns = COLUMNS[:2] + COLUMNS[3:4] if options.quick else COLUMNS[:4]
        options.columns = "eager,ours" if options.device == "emulator" else ",".join(columns)
    unknown = set(options.columns.split(",")) - set(COLUMNS)
    if unknown:
        parser.error(f"--columns must be of {', '.join(COLUMNS)}, got {sorted(unknown)[0]}")
    return options


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases that are asked for."""
    wanted = [each.strip() for each in options.only.split(",")]
    cases = [case for case in CASES if any(each in case.name for each in wanted)]
    return [case for case in cases if case.name in QUICK] if options.quick else cases


def take_turns(path: str) -> None:
    """Let this process measure only while no other with the same file does."""
    from tilewright.compiler.inductor import race

    file = open(path, "w")  # held until the process ends

    def alone(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def locked(*given: Any) -> Any:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                return function(*given)
            finally:
                torch.cuda.synchronize()
                fcntl.flock(file, fcntl.LOCK_UN)

        return locked

    race.measure_in_graphs = alone(race.measure_in_graphs)
    globals().update({each.__name__: alone(each) for each in (times_of, exact)})


def measured(case: Case, columns: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model, or why there are none."""
    try:
        if options.keep_caches:
            return measure(case, columns, options)
        with tempfile.TemporaryDirectory() as folder, fresh_caches(folder):
            return measure(case, columns, options)
    except Missing as missing:
        return {"name": case.name, "why": str(missing)}


class fresh_caches:
    """Each column compiles all of it, into an empty folder, and ours reports."""

    def __init__(self, folder: str):
        from torch._inductor import config

        self.patch, self.folder = config.patch(force_disable_caches=True), folder

    def __enter__(self) -> None:
        self.before = os.environ.get("TILEWRIGHT_CACHE")
        os.environ["TILEWRIGHT_CACHE"] = self.folder
        self.patch.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.patch.__exit__(*raised)
        os.environ.pop("TILEWRIGHT_CACHE")
        if self.before is not None:
            os.environ["TILEWRIGHT_CACHE"] = self.before


def measure(case: Case, columns: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model; a column that fails has the reason in place of its time."""
    on_gpu = options.device == "cuda"
    model, given = case.build("cuda" if on_gpu else "cpu", options.tiny)
    row: dict[str, Any] = {"name": case.name, "us": {}, "compile_s": {}, "error": {}}
    steps: dict[str, Callable[[], Any]] = {}
    results: dict[str, torch.Tensor] = {}
    for column in columns:
        step = step_of(case, contender(column, model, options), given)
        start = time.perf_counter()
        try:
            results[column] = step()
            if on_gpu:
                torch.cuda.synchronize()
        except Exception as error:  # a compiler may raise any kind; the table goes on
            row["us"][column] = short(error)
            continue
        row["compile_s"][column] = time.perf_counter() - start
        steps[column] = step
        if column in ("ours", "both"):
            report = tilewright.torch.report()
            row |= {"report": str(report), "matmul": matmul_times(), "spent": report.seconds}
    if on_gpu:
        row["us"] |= times_of(steps)
    reference = exact(case, model, given)
    row["error"] = {column: distance(made, reference) for column, made in results.items()}
    return row


def short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]


def distance(made: torch.Tensor, reference: torch.Tensor) -> float:
    """Root of the mean square."""
    return float((made.double() - reference).square().mean().sqrt())


def contender(column: str, model: nn.Module, options: argparse.Namespace) -> nn.Module:
    """The model, compiled as a column says; nothing of another column is kept."""
    if column == "eager":
        return model
    torch._dynamo.reset()
    if column == "inductor":
        return torch.compile(model, dynamic=False)
    if column == "autotune":
        return torch.compile(model, dynamic=False, mode=AUTOTUNE)
    from torch._inductor import list_mode_options

    from tilewright.compiler.inductor.report import reset

    reset()
    tuned = list_mode_options(AUTOTUNE) if column == "both" else {}
    given = {"device": options.device, **tuned}
    return torch.compile(model, dynamic=False, backend="tilewright", options=given)


def step_of(case: Case, model: nn.Module, given: torch.Tensor) -> Callable[[], torch.Tensor]:
    """One call: the output, or of a training step the gradient of an MLP's weight."""
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


def exact(case: Case, model: nn.Module, given: torch.Tensor) -> torch.Tensor:
    """What the step gives in float64."""
    wide = in_float64(model)
    return step_of(case, wide, given.double() if given.is_floating_point() else given)()


def times_of(steps: dict[str, Callable[[], Any]]) -> dict[str, float | str]:
    """Median microseconds of each step, captured in a CUDA graph; replays take turns."""
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    found: dict[str, float | str] = {}
    for name, step in steps.items():
        try:
            graphs[name] = captured(step)
        except Exception as error:  # the reason stands in the table
            found[name] = short(error)
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


if __name__ == "__main__":
    main()
