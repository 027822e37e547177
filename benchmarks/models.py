"""Whole models: eager torch, Inductor, Inductor with max-autotune, and backend="tilewright".

    python benchmarks/models.py --quick                       three models, without max-autotune
    python benchmarks/models.py --json FILE --seconds 480     all, in slices: call it again
    python benchmarks/models.py --only "llama decode,vit" --report
    python benchmarks/models.py --tiny --device emulator      on the CPU: is it right?

The column `both` is ours with max-autotune for what ours leaves, its regions raced against what
max-autotune makes of them. Times are medians of replays of CUDA graphs that take turns; of a
training step forward and backward are in one graph. "matmul" is the sum over the products of the
model, measured one by one, Inductor's over ours; a product that ours leaves to Inductor counts the
same in both. "error" is the distance from the same model in float64, root mean square, ours over
eager's. "compile" is in seconds, the first call included, with nothing kept from before
(`--keep-caches` keeps it); only `both` finds what `autotune` tuned, where that column stands before
it. Threads load the kernels that max-autotune chooses from before it measures them one by one.
Attention must be one of torch's fused kernels where the GPU has one for it.

A line a model appears as soon as it is measured. `--seconds` begins no model that would end later.
With `--json` the figures are kept after each column, and models that the file has are not measured
again. A model during which the process ended is measured once more, without the columns that ended
it twice. Needs torch 2.9 to 2.13 and transformers for all but GPT-2; on a GPU cuda-python, and
triton for Inductor.

Several calls may share a GPU, each with models of its own, to compile at once: with `--turns FILE`
one measures at a time. Seconds of compilation are then those of a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import model_times
import torch
from model_list import CASES, QUICK, Case, Missing, in_float64
from model_rows import DIED, OURS, Kept, headings, line_of, summary
from torch import nn

import tilewright

COLUMNS = ("eager", "inductor", "autotune", "ours", "both")
BUILDING = "building"
AUTOTUNE = "max-autotune-no-cudagraphs"
KERNELS_TO_LOAD = 64


def main() -> None:
    options = arguments()
    columns = options.columns.split(",")
    if "autotune" in columns or "both" in columns:
        model_times.load_candidates_ahead()
    if options.turns:
        model_times.take_turns(options.turns)
    kept = Kept(options.json, columns)
    print(f"{'model':24}" + "".join(f"{name + ' us':>14}" for name in columns) + headings(columns))
    started, longest = time.perf_counter(), 0.0
    for case in chosen(options):
        begun = time.perf_counter()
        if case.name not in kept and begun - started + longest > options.seconds:
            print(f"{case.name:24} not measured: {options.seconds:.0f} s are over")
            continue
        if case.name not in kept:
            kept.enter(measured(case, kept, options))
            longest = max(longest, time.perf_counter() - begun)
        print(line_of(kept[case.name], columns), flush=True)
        if options.report:
            for column, text in kept[case.name].get("report", {}).items():
                print(f"{column}: {text}", flush=True)
    summary(list(kept.rows.values()), columns)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three models, without max-autotune")
    parser.add_argument("--only", default="", help="models whose name contains one of these, by ,")
    parser.add_argument("--columns", default="", help=f"of {','.join(COLUMNS)}")
    parser.add_argument("--device", default="cuda", choices=("cuda", "emulator"))
    parser.add_argument("--tiny", action="store_true", help="sizes for the emulator")
    parser.add_argument("--layers", type=int, default=2, help="of each model; a tiny one has one")
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


def measured(case: Case, kept: Kept, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model, or why there are none."""
    if kept.is_deadly(case.name, BUILDING):
        return {"name": case.name, "why": DIED}
    kept.begin(case.name, BUILDING)
    try:
        return measure(case, kept, options)
    except Missing as missing:
        return {"name": case.name, "why": str(missing)}


class Caches:
    """Folders into which columns compile, each into an empty one; `both` goes on where `autotune`
    left."""

    def __init__(self, keep: bool):
        self._keep, self._column = keep, ""
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Caches:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.close()

    def turn_to(self, column: str) -> None:
        """Let what follows be compiled for a column."""
        goes_on = (self._column, column) == ("autotune", "both")
        self._column = column
        if self._keep or column == "eager" or goes_on:
            return
        from torch._inductor import config, utils

        self._open.close()
        fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache
        self._open.enter_context(fresh())
        self._open.enter_context(config.patch(fx_graph_cache=False))
        self._open.callback(_set_folder, os.environ.get(FOLDER))
        _set_folder(self._open.enter_context(tempfile.TemporaryDirectory()))


FOLDER = "TILEWRIGHT_CACHE"


def _set_folder(name: str | None) -> None:
    if name is None:
        os.environ.pop(FOLDER, None)
    else:
        os.environ[FOLDER] = name


def measure(case: Case, kept: Kept, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model; a column that fails has the reason in place of its time.

    They are kept after each column, so that they are there if the next one ends the process.
    """
    on_gpu = options.device == "cuda"
    if on_gpu:
        loaded()
    torch._dynamo.reset()
    model, given = case.build("cuda" if on_gpu else "cpu", options.tiny, options.layers)
    parts = ("us", "compile_s", "error", "report", "matmul", "spent")
    row: dict[str, Any] = {"name": case.name, **{part: {} for part in parts}}
    reference = exact(case, model, given)
    replays = model_times.Replays()
    with Caches(options.keep_caches) as caches, attention(case, model, given, row, on_gpu):
        for column in kept.columns:
            if kept.is_deadly(case.name, column):
                row["us"][column] = DIED
                continue
            kept.begin(case.name, column)
            caches.turn_to(column)
            step = step_of(case, contender(column, model, options), given)
            made = first_call(column, step, row, on_gpu)
            if made is None:
                continue
            row["error"][column] = distance(made, reference)
            if on_gpu:
                row["us"] |= replays.with_another(column, step)
            kept.enter(row, finished=False)
    return row


@functools.cache
def loaded() -> None:
    """Let Inductor load what it loads once a process, which is the time of no model.

    Until its pool of processes is ready it compiles one kernel after the other in this one, and
    each process of the pool loads Triton for its first kernel.
    """
    from torch._inductor.async_compile import AsyncCompile

    torch.compile(torch.sin)(torch.ones(8, device="cuda"))
    AsyncCompile.wait_pool_ready()
    counts = [1000 * (number + 1) for number in range(KERNELS_TO_LOAD)]
    torch.compile(lambda x: [x[:count].sum() for count in counts])(torch.ones(counts[-1]).cuda())


@contextlib.contextmanager
def attention(
    case: Case, model: nn.Module, given: torch.Tensor, row: dict[str, Any], on_gpu: bool
) -> Iterator[None]:
    """A block in which attention is one of torch's fused kernels, or why it is not in the row."""
    if not on_gpu:
        yield
        return
    row["attention"] = model_times.unfused_attention(step_of(case, model, given))
    from torch.nn.attention import SDPBackend, sdpa_kernel

    every = [each for each in SDPBackend.__members__.values() if each != SDPBackend.ERROR]
    with sdpa_kernel(every if row["attention"] else model_times.fused_attention()):
        yield


def first_call(
    column: str, step: Callable[[], torch.Tensor], row: dict[str, Any], on_gpu: bool
) -> torch.Tensor | None:
    """What a step gives as it is compiled, with the seconds; None where it fails."""
    start = time.perf_counter()
    try:
        made = step()
        if on_gpu:
            torch.cuda.synchronize()
    except Exception as error:  # a compiler may raise any kind; the table goes on
        row["us"][column] = model_times.short(error)
        return None
    row["compile_s"][column] = time.perf_counter() - start
    if column in OURS:
        report = tilewright.torch.report()
        row["report"][column], row["spent"][column] = str(report), dict(report.seconds)
        row["matmul"][column] = matmul_times()
    return made


def distance(made: torch.Tensor, reference: torch.Tensor) -> float:
    """Root of the mean square."""
    return float((made.double() - reference).square().mean().sqrt())


def contender(column: str, model: nn.Module, options: argparse.Namespace) -> nn.Module:
    """The model, compiled as a column says; nothing of another column is kept."""
    if column == "eager":
        return model
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


def matmul_times() -> tuple[float, float]:
    """Microseconds of the model's products by Inductor and with ours, as races measured them."""
    rows = [each for each in tilewright.torch.report().rows if each.inductor_us and each.ours_us]
    theirs = sum(each.inductor_us * each.count for each in rows)
    ours = sum((each.ours_us if each.taken else each.inductor_us) * each.count for each in rows)
    return theirs, ours


if __name__ == "__main__":
    main()
