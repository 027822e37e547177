"""How fast bundles run on this GPU, beside cuBLAS (torch) and Triton.

    python benchmarks/gpu.py FOLDER [--rounds 15] [--no-graphs | --only-apart] [--no-triton]
                             [--triton-for 80] [--no-host] [--rest 0] [--json PATH]

FOLDER holds bundles that were made beforehand (benchmarks/gpu_bundles.py); `runtime` must be
importable as tilewright.runtime, and torch, numpy and cuda-python installed; Triton is measured
where it is, for 16-bit types; `--triton-for 80` lets it write what it would for an older chip
(triton_matmul.py). cuBLAS multiplies f32 as tf32 where ours does, and floats of 8 bits with fast
accumulation, as ours do. For each matmul its bundles and the two rivals take turns on the same
normally distributed inputs, several sets of them, which together exceed L2 three times. There are
three clocks, each a median of batches that take turns: `apart` and `chain` replay CUDA graphs, with
and without a small kernel behind each launch (runtime/gpu/graphs.py), and `stream` enqueues
launches behind a backlog (runtime/gpu/timing.py). `ours, serial` is our kernel in a chain without
dependent launch: what it loses is what the chain owes to that. `--only-apart` is for many shapes:
that clock alone, without the host's times and the clocks under load. Without `--rest` the GPU is
never idle, and long products run at the limit of its power; `--rest 2` leaves it alone twice as
long as each batch took, as far as other kernels let it cool in a model. Every contender's output is
compared with float64 first; a wrong one of ours is an error, a rival's is told of and marked. Also:
the host's time for a call that is given its output, and that of torch's; the first call of each
kernel, with loading; clocks and power under load.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from contenders import add_rest

from tilewright.runtime import Kernel, load
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.gpu.graphs import APART, CHAIN, measure_in_graphs
from tilewright.runtime.gpu.launch_config import DEPENDENT_LAUNCH
from tilewright.runtime.gpu.timing import Launch, clocks_under, host_us, interleaved
from tilewright.runtime.launch import comparison
from tilewright.runtime.launch.comparison import check, count_sets, make_set
from tilewright.runtime.launch.devices import why_no_gpu
from tilewright.runtime.launch.loading import open_kernel

OURS, CUBLAS, TRITON, SERIAL = "tilewright", "cublas", "triton", "tilewright, serial"
STREAM = "stream"
NEAR = 0.95
LOAD_US = 3e5  # of work, during which the clocks are read

Sets = list[list[torch.Tensor]]


@dataclass
class Row:
    """One bundle: sizes, medians in microseconds, what the host took, clocks under load.

    us is of the clock `stream`, or of `apart` where that alone is measured; graphs has those of the
    others by clock, empty where not measured. `inexact` are rivals whose output is off.
    """

    bundle: str
    m: int
    n: int
    k: int
    us: dict[str, float]
    spread: dict[str, float]
    host_us: dict[str, float]
    first_call_ms: float
    clocks: dict[str, float]
    pipeline: str
    graphs: dict[str, dict[str, float]] = field(default_factory=dict)
    inexact: list[str] = field(default_factory=list)

    def tflops(self, name: str) -> float:
        """10¹² floating-point operations a second."""
        return 2 * self.m * self.n * self.k / self.us[name] / 1e6

    def ratio(self, other: str, clock: str = STREAM, ours: str = OURS) -> float:
        """How many times as fast as another contender ours is."""
        us = self.us if clock == STREAM else self.graphs[clock]
        return us[other] / us[ours]

    @property
    def clocks_read(self) -> list[str]:
        """The clocks of this row, the strictest first."""
        found = [clock for clock in (APART, CHAIN) if clock in self.graphs]
        return found if found == [APART] else [*found, STREAM]

    @property
    def kernel(self) -> str:
        """What tells this bundle from others for the same matmul: NAME of MxNxK.NAME."""
        return self.bundle.partition(".")[2]


def main() -> None:
    options = parse_options()
    groups = by_matmul(load_all(options.folder))
    if reason := why_no_gpu():
        sys.exit(f"error: {reason}")
    rows = [row for group in groups for row in measure(group, options)]
    print(as_text(rows))
    if options.json:
        result = {**machine(), "rounds": options.rounds, "rest": options.rest}
        result["rows"] = [asdict(row) for row in rows]
        options.json.write_text(json.dumps({**result, "geometric_mean": means(rows)}, indent=1))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15, help="batches a contender (default 15)")
    clocks = parser.add_mutually_exclusive_group()
    clocks.add_argument("--no-graphs", action="store_true", help="the clock `stream` alone")
    clocks.add_argument(
        "--only-apart", action="store_true", help="the clock `apart` alone, for many shapes"
    )
    parser.add_argument("--no-triton", action="store_true", help="leave Triton out")
    parser.add_argument(
        "--triton-for", type=int, metavar="CC", help="let Triton write PTX for sm_CC, as 80"
    )
    parser.add_argument("--no-host", action="store_true", help="leave the host's times out")
    add_rest(parser)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds: must be 2 or more, got {options.rounds}")
    return options


def load_all(folder: Path) -> dict[str, Kernel]:
    """The bundles of a folder by name; exits if there are none, or one with more than a, b, c."""
    kernels = {path.stem: load(path) for path in sorted(folder.glob("*.zip"))}
    if not kernels:
        sys.exit(f"error: {folder}: must hold bundles, got none; see gpu_bundles.py")
    for name, kernel in kernels.items():
        names = ", ".join(tensor["name"] for tensor in kernel.manifest["tensors"])
        if names != "a, b, c":
            sys.exit(f"error: {folder}/{name}.zip: must have the tensors a, b, c, got {names}")
    return kernels


def by_matmul(kernels: dict[str, Kernel]) -> list[dict[str, Kernel]]:
    """Kernels by name, those for the same tensors together, from the least work to the most."""
    groups: dict[tuple[Any, ...], dict[str, Kernel]] = defaultdict(dict)
    for name, kernel in kernels.items():
        a, b, c = kernel.manifest["tensors"]
        work = math.prod(c["shape"]) * a["shape"][1]
        each = ((*tensor["shape"], *tensor["strides"], tensor["dtype"]) for tensor in (a, b, c))
        groups[work, *each][name] = kernel
    return [groups[key] for key in sorted(groups)]


def measure(group: dict[str, Kernel], options: argparse.Namespace) -> list[Row]:
    """Check and time the bundles for one matmul and their rivals."""
    tensors = next(iter(group.values())).manifest["tensors"]
    torch.backends.cuda.matmul.allow_tf32 = tensors[0]["dtype"] == "tf32"
    sets = [make_set(tensors, seed) for seed in range(count_sets(tensors))]
    first_ms = {name: first_call(kernel, *sets[0]) for name, kernel in group.items()}
    ours = {name: _launch_of(kernel, sets) for name, kernel in group.items()}
    others = rivals(sets, options)
    for name, launch in ours.items():
        check(name, launch, sets[-1], len(sets) - 1)
    inexact = [name for name, launch in others.items() if is_inexact(name, launch, sets)]
    graphs: dict[str, dict[str, dict[str, float]]] = {}
    if options.only_apart:
        apart = measure_in_graphs(ours | others, len(sets), options.rounds, (APART,), options.rest)
        times = {name: [us] for name, us in apart[APART].items()}
    else:
        times = interleaved(ours | others, len(sets), options.rounds, options.rest)
        graphs = {} if options.no_graphs else in_graphs(group, sets, others, options)
    rows = []
    for name, kernel in group.items():
        contenders = {OURS: times[name], **{rival: times[rival] for rival in others}}
        rows.append(timed_row(name, kernel, contenders))
        rows[-1].inexact = inexact
        rows[-1].first_call_ms = first_ms[name]
        if options.only_apart:
            rows[-1].graphs = {APART: rows[-1].us}
        else:
            rows[-1].graphs = graphs.get(name, {})
            add_costs(rows[-1], kernel, sets, options)
        print(as_line(rows[-1]), file=sys.stderr)
    return rows


def is_inexact(name: str, launch: Launch, sets: Sets) -> bool:
    """Whether a rival is less exact than ours may be, as cuBLAS that adds up parts of K in bf16."""
    try:
        check(name, launch, sets[-1], len(sets) - 1)
    except DeviceError as error:
        m, n = sets[-1][2].shape
        print(f"{m}×{n}×{sets[-1][0].shape[1]}: {error}; it is timed nevertheless", file=sys.stderr)
        return True
    return False


def in_graphs(
    group: dict[str, Kernel], sets: Sets, others: dict[str, Launch], options: argparse.Namespace
) -> dict[str, dict[str, dict[str, float]]]:
    """Of each bundle the medians of all contenders by clock; rivals are measured once."""
    serial = {name: found for name, kernel in group.items() if (found := serialized(kernel))}
    launches = {(OURS, name): _launch_of(kernel, sets) for name, kernel in group.items()}
    launches |= {(SERIAL, name): _launch_of(kernel, sets) for name, kernel in serial.items()}
    launches |= {(rival, ""): launch for rival, launch in others.items()}
    measured = measure_in_graphs(launches, len(sets), options.rounds, rest=options.rest)
    return {
        name: {
            clock: {who: us for (who, of), us in times.items() if of in (name, "")}
            for clock, times in measured.items()
        }
        for name in group
    }


def serialized(kernel: Kernel) -> Kernel | None:
    """The same kernel launched without dependent launch; None where its bundle has none.

    Its griddepcontrol.wait then returns at once (PTX ISA, griddepcontrol).
    """
    schedule = kernel.manifest["schedule"]
    if not schedule.get(DEPENDENT_LAUNCH, False):
        return None
    manifest = {**kernel.manifest, "schedule": {**schedule, DEPENDENT_LAUNCH: False}}
    return open_kernel(replace(kernel.bundle, manifest=manifest))


def add_costs(row: Row, kernel: Kernel, sets: Sets, options: argparse.Namespace) -> None:
    """What calls of a kernel take the host, and the clocks under its load."""
    us = row.us[OURS]
    a, b, c = sets[0]
    row.host_us = {} if options.no_host else host_costs(kernel, a, b, c, us)
    row.clocks = clocks_under(_launch_of(kernel, sets), int(LOAD_US / us) + 1, len(sets))


def timed_row(name: str, kernel: Kernel, times: dict[str, list[float]]) -> Row:
    """A row of the medians and spreads of times; what else is measured is not yet in it."""
    a, _, c = kernel.manifest["tensors"]
    medians = {each: statistics.median(found) for each, found in times.items()}
    spread = {
        each: statistics.stdev(found) / medians[each]
        for each, found in times.items()
        if len(found) > 1
    }
    (m, n), k = c["shape"], a["shape"][1]
    return Row(name, m, n, k, medians, spread, {}, math.nan, {}, kernel.manifest["pipeline"])


def first_call(kernel: Any, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> float:
    """Milliseconds of a kernel's first call, which loads it, until its output is there."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    kernel(a, b, out=out)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e3


def host_costs(
    kernel: Any, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, gpu_us: float
) -> dict[str, float]:
    """Microseconds of the host for a call of ours and of torch's."""
    by_library = torch_product(a, b, out)
    return {
        OURS: host_us(lambda: kernel(a, b, out=out), gpu_us),
        CUBLAS: host_us(by_library, gpu_us),
    }


def _launch_of(kernel: Kernel, sets: Sets) -> Launch:
    def ours(i: int) -> None:
        a, b, c = sets[i]
        kernel(a, b, out=c)

    return ours


def rivals(sets: Sets, options: argparse.Namespace) -> dict[str, Launch]:
    """What else is timed, by name; each takes the index of an input set."""

    products = [torch_product(*each) for each in sets]
    found: dict[str, Launch] = {CUBLAS: lambda i: products[i]()}
    plain = all(each.is_contiguous() and each.itemsize == 2 for each in sets[0])
    if not options.no_triton and plain:
        found |= triton_contender(sets, options.triton_for)
    return found


def torch_product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> Callable[[], Any]:
    """A call of torch's that writes a · bᵀ by cuBLAS."""
    transposed = b.T
    if a.dtype == torch.int8:
        return lambda: torch._int_mm(a, transposed, out=out)
    if a.itemsize == 1:
        one = torch.ones((), device=a.device)
        keywords = {"out_dtype": out.dtype, "use_fast_accum": True, "out": out}
        return lambda: torch._scaled_mm(a, transposed, one, one, **keywords)
    return lambda: torch.mm(a, transposed, out=out)


def triton_contender(sets: Sets, capability: int | None) -> dict[str, Launch]:
    """Triton's matmul where it is installed, for an older chip of that capability if asked."""
    try:
        from triton_matmul import compile_for, prepare
    except ImportError as error:
        print(f"Triton is left out: {error}", file=sys.stderr)
        return {}
    if capability is not None:
        compile_for(capability)
    prepared = [prepare(*each) for each in sets]
    return {TRITON: lambda i: prepared[i]()}


def means(rows: list[Row]) -> dict[str, float]:
    """Geometric means of the ratios to each rival that all rows have."""
    shared = [name for name in (CUBLAS, TRITON) if all(name in row.us for row in rows)]
    return {name: statistics.geometric_mean(row.ratio(name) for row in rows) for name in shared}


def summary(rows: list[Row]) -> list[str]:
    """Of each clock the mean, the least and how many rows are near cuBLAS or ahead."""
    found = []
    for clock in rows[0].clocks_read:
        ratios = sorted(row.ratio(CUBLAS, clock) for row in rows)
        near = sum(ratio >= NEAR for ratio in ratios) / len(ratios)
        mean = statistics.geometric_mean(ratios)
        spread = f"least {ratios[0]:.3f}, {near:.0%} at {NEAR} or more"
        found.append(f"{clock}: {mean:.3f} of cuBLAS (geometric mean), {spread}")
    return found


def machine() -> dict[str, str]:
    """What was measured on, and when."""
    found = comparison.machine()
    if "triton" in sys.modules:
        found["triton"] = sys.modules["triton"].__version__
    return found


def as_line(row: Row) -> str:
    found = ", ".join(f"{name} {row.tflops(name):.0f}" for name in row.us)
    named = f" {row.kernel}" if row.kernel else ""
    return f"{row.m}×{row.n}×{row.k}{named}: TFLOP/s {found}; ×{row.ratio(CUBLAS):.3f} of cuBLAS"


COLUMNS: dict[str, Callable[[Row], str]] = {
    "M×N×K": lambda row: f"{row.m}×{row.n}×{row.k}",
    "kernel": lambda row: row.kernel,
    "µs": lambda row: f"{row.us[OURS]:.1f}",
    "cuBLAS µs": lambda row: f"{row.us[CUBLAS]:.1f}{' (inexact)' * (CUBLAS in row.inexact)}",
    "TFLOP/s": lambda row: f"{row.tflops(OURS):.0f}",
    "cuBLAS": lambda row: f"{row.tflops(CUBLAS):.0f}",
    "Triton": lambda row: f"{row.tflops(TRITON):.0f}" if TRITON in row.us else "—",
    APART: lambda row: f"{row.ratio(CUBLAS, APART):.3f}",
    CHAIN: lambda row: f"{row.ratio(CUBLAS, CHAIN):.3f}",
    "chain, serial": lambda row: _of_serial(row),
    "of cuBLAS": lambda row: f"{row.ratio(CUBLAS):.3f}",
    "of Triton": lambda row: f"{row.ratio(TRITON):.3f}" if TRITON in row.us else "—",
    "host µs": lambda row: f"{row.host_us[OURS]:.1f}",
    "torch µs": lambda row: f"{row.host_us[CUBLAS]:.1f}",
}


def as_text(rows: list[Row]) -> str:
    """A table in Markdown with the geometric means; without columns that would be empty."""
    unused = {"kernel"} if not any(row.kernel for row in rows) else set()
    unused |= {APART} if not all(APART in row.graphs for row in rows) else set()
    if not all(CHAIN in row.graphs for row in rows):
        unused |= {CHAIN, "chain, serial"}
    unused |= {"of cuBLAS"} if rows[0].clocks_read == [APART] else set()
    unused |= {"Triton", "of Triton"} if not any(TRITON in row.us for row in rows) else set()
    unused |= {"host µs", "torch µs"} if not any(row.host_us for row in rows) else set()
    columns = {name: cell for name, cell in COLUMNS.items() if name not in unused}
    lines = [", ".join(f"{key} {value}" for key, value in machine().items()), ""]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(cell(row) for cell in columns.values())} |" for row in rows]
    found = ", ".join(f"{mean:.3f} of {name}" for name, mean in means(rows).items())
    return "\n".join([*lines, "", *summary(rows), f"geometric mean: {found}"])


def _of_serial(row: Row) -> str:
    """How fast ours is in a chain without dependent launch, where it has that."""
    return f"{row.ratio(CUBLAS, CHAIN, SERIAL):.3f}" if SERIAL in row.graphs[CHAIN] else "—"


if __name__ == "__main__":
    main()
