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

With `--processes N` so many processes share the GPU: they compile at once and measure in turns.
Each takes models from one list, and measures `autotune` and `both` behind the other columns of all
its models; a model's line appears before and after these. `--json` then names a folder with a file
a model, and at the end of `--seconds` what runs is ended. With `--keep-caches` what torch tunes is
tuned in one of them. Several calls may also share a GPU, each with models of its own, by `--turns
FILE`. Seconds of compilation are then those of a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import model_processes
import model_times
import torch
from model_caches import Caches
from model_list import CASES, QUICK, Case, Missing, in_float64
from model_rows import DIED, OURS, Kept, headings, line_of, summary
from torch import nn

import tilewright

COLUMNS = ("eager", "inductor", "autotune", "ours", "both")
BUILDING = "building"
AUTOTUNE = "max-autotune-no-cudagraphs"
TUNED = ("autotune", "both")
KERNELS_TO_LOAD = 64


def main() -> None:
    options = arguments()
    columns = options.columns.split(",")
    print(f"{'model':24}" + "".join(f"{name + ' us':>14}" for name in columns) + headings(columns))
    found = measured_at_once(options) if options.processes else measured_in_turn(options)
    summary(found, columns)


def measured_in_turn(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of the models that are asked for, and of those that the file had."""
    columns = options.columns.split(",")
    prepare(columns, options.turns)
    kept = Kept(options.json, columns)
    started, longest = time.perf_counter(), 0.0
    for case in chosen(options):
        begun = time.perf_counter()
        if case.name not in kept and begun - started + longest > options.seconds:
            print(f"{case.name:24} not measured: {options.seconds:.0f} s are over")
            continue
        if case.name not in kept:
            if found := begin(case, kept, options):
                found.measure(columns)
            longest = max(longest, time.perf_counter() - begun)
        show(kept[case.name], columns, options.report)
    return list(kept.rows.values())


def prepare(columns: list[str], turns: str | None) -> None:
    """What a process does before it measures its first model."""
    if set(columns) & set(TUNED):
        model_times.load_candidates_ahead()
    if turns:
        model_times.take_turns(turns)


def show(row: dict[str, Any], columns: list[str], with_report: bool) -> None:
    print(line_of(row, columns), flush=True)
    for column, text in row.get("report", {}).items() if with_report else ():
        print(f"{column}: {text}", flush=True)


def measured_at_once(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of the models that are asked for, which several processes measure."""
    columns = options.columns.split(",")
    with tempfile.TemporaryDirectory() as folder:
        options.json = options.json or folder
        options.turns = options.turns or str(Path(folder) / "turns")
        Path(options.json).mkdir(parents=True, exist_ok=True)
        names = [case.name for case in chosen(options)]
        missing = [name for name in names if name not in kept_of(name, options)]
        given = [(options,)] * min(options.processes, len(missing))
        if missing and model_processes.share(measure_some, given, missing, options.seconds):
            for name in missing:
                kept_of(name, options, interrupted=True)
        kept = [kept_of(name, options).rows.get(name) for name in names]
    for name, row in zip(names, kept, strict=True):
        if row is None:
            print(f"{name:24} not measured: {options.seconds:.0f} s are over, or its process ended")
        elif name not in missing:
            show(row, columns, options.report)
    return [row for row in kept if row is not None]


def kept_of(name: str, options: argparse.Namespace, interrupted: bool = False) -> Kept:
    """The file of one model."""
    path = Path(options.json) / f"{name.replace(' ', '-')}.json"
    return Kept(str(path), options.columns.split(","), interrupted)


def measure_some(left: Any, options: argparse.Namespace) -> None:
    """Measure models that no other process has, the columns that torch tunes behind all others."""
    columns = options.columns.split(",")
    prepare(columns, options.turns)
    if options.keep_caches:
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        model_processes.share_tuning(Path(cache_dir()) / "tuned")
    # What was compiled stays until all is measured, since its graphs are replayed again.
    limits = {"recompile_limit": 256, "accumulated_recompile_limit": 4096}
    with torch._dynamo.config.patch(limits):
        begun = []
        for name in model_processes.iter_left(left):
            case = next(each for each in CASES if each.name == name)
            begun.append(begin(case, kept_of(name, options), options))
            advance(begun[-1], [each for each in columns if each not in TUNED], options.report)
        for each in begun:
            advance(each, [column for column in columns if column in TUNED], options.report)


def advance(model: Measurement | None, names: list[str], with_report: bool) -> None:
    """Measure columns of a model, and show its row."""
    if model is not None and names:
        model.measure(names)
        show(model.kept[model.case.name], model.kept.columns, with_report)


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
    parser.add_argument("--processes", type=int, default=0, help="measure in so many, in turns")
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


def begin(case: Case, kept: Kept, options: argparse.Namespace) -> Measurement | None:
    """A model that was built; None, and the reason among what is kept, where it can't be."""
    if kept.is_deadly(case.name, BUILDING):
        kept.enter({"name": case.name, "why": DIED})
        return None
    kept.begin(case.name, BUILDING)
    try:
        return Measurement(case, kept, options)
    except Missing as missing:
        kept.enter({"name": case.name, "why": str(missing)})
        return None


class Measurement:
    """The figures of one model; a column that fails has the reason in place of its time.

    They are kept after each column, so that they are there if the next one ends the process.
    """

    def __init__(self, case: Case, kept: Kept, options: argparse.Namespace):
        self.case, self.kept, self._options = case, kept, options
        self._on_gpu = options.device == "cuda"
        if self._on_gpu:
            loaded(KERNELS_TO_LOAD // max(options.processes, 1))
        if not options.processes:
            torch._dynamo.reset()
        device = "cuda" if self._on_gpu else "cpu"
        self._model, self._given = case.build(device, options.tiny, options.layers)
        parts = ("us", "compile_s", "error", "report", "matmul", "spent")
        self.row: dict[str, Any] = {"name": case.name, **{part: {} for part in parts}}
        self._reference = exact(case, self._model, self._given)
        self._replays = model_times.Replays()
        self._left = list(kept.columns)

    def measure(self, names: list[str]) -> None:
        """Measure columns, each beside all that were measured before."""
        attends = attention(self.case, self._model, self._given, self.row, self._on_gpu)
        with Caches(self._options.keep_caches) as caches, attends:
            for column in names:
                if self.kept.is_deadly(self.case.name, column):
                    self.row["us"][column] = DIED
                    continue
                self.kept.begin(self.case.name, column)
                caches.turn_to(column)
                self._measure(column)
        self._left = [each for each in self._left if each not in names]
        self.kept.enter(self.row, finished=not self._left)

    def _measure(self, column: str) -> None:
        compiled = contender(column, self._model, self._options)
        step = step_of(self.case, compiled, self._given)
        made = first_call(column, step, self.row, self._on_gpu)
        if made is None:
            return
        self.row["error"][column] = distance(made, self._reference)
        if self._on_gpu:
            self.row["us"] |= self._replays.with_another(column, step)
        self.kept.enter(self.row, finished=False)


@functools.cache
def loaded(kernels: int) -> None:
    """Let Inductor load what it loads once a process, which is the time of no model.

    Until its pool of processes is ready it compiles one kernel after the other in this one, and
    each process of the pool loads Triton for its first kernel.
    """
    from torch._inductor.async_compile import AsyncCompile

    torch.compile(torch.sin)(torch.ones(8, device="cuda"))
    AsyncCompile.wait_pool_ready()
    counts = [1000 * (number + 1) for number in range(kernels)]
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
