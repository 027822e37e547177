"""How fast bundles run on this GPU, beside cuBLAS (torch) and Triton.

    python benchmarks/gpu.py FOLDER [--rounds 15] [--no-triton] [--json PATH]

FOLDER holds bundles that were made beforehand (benchmarks/gpu_bundles.py), bf16; `runtime` must be
importable as tilewright.runtime, and torch, numpy and cuda-python installed; Triton is measured
where it is. For each bundle the contenders take turns on the same normally distributed inputs,
several sets of them, which together exceed L2. Times are medians of batches that are enqueued
behind a backlog (gpu_timing.py). Every contender's output is compared with float64 first, and a
wrong one is an error. Also: the host's time for a call that is given its output, and that of
torch.mm; the first call of each kernel, with loading; clocks and power under load.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from gpu_timing import Launch, clocks_under, host_us, interleaved

L2_MULTIPLE = 3
SETS = (2, 64)
CHECKED_ROWS = 256
ERROR_MAX = 1e-2  # ‖out − exact‖ / ‖exact‖ for bf16, whose rounding alone gives 2e-3
OURS, CUBLAS, TRITON = "tilewright", "cublas", "triton"


@dataclass
class Row:
    """One bundle: sizes, medians in microseconds, what the host took, clocks under load."""

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

    def tflops(self, name: str) -> float:
        """10¹² floating-point operations a second."""
        return 2 * self.m * self.n * self.k / self.us[name] / 1e6

    def ratio(self, other: str) -> float:
        """How many times as fast as another contender ours is."""
        return self.us[other] / self.us[OURS]


def main() -> None:
    options = parse_options()
    paths = sorted(options.folder.glob("*.zip"), key=sizes_of)
    if not paths:
        sys.exit(f"error: {options.folder}: must hold bundles, got none; see gpu_bundles.py")
    rows = []
    for path in paths:
        rows.append(measure(path, options))
        print(as_line(rows[-1]), file=sys.stderr)
    print(as_text(rows))
    if options.json:
        result = {**machine(), "rounds": options.rounds, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps({**result, "geometric_mean": means(rows)}, indent=1))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15, help="batches a contender (default 15)")
    parser.add_argument("--no-triton", action="store_true", help="leave Triton out")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    return parser.parse_args()


def sizes_of(path: Path) -> tuple[int, str]:
    """Sorts bundles by the work that their names MxNxK say, else by name."""
    try:
        return math.prod(int(size) for size in path.stem.split("x")), path.stem
    except ValueError:
        return 0, path.stem


def measure(path: Path, options: argparse.Namespace) -> Row:
    """Check and time one bundle and its rivals."""
    from tilewright.runtime import load

    kernel = load(path)
    a, b, c = kernel.manifest["tensors"]
    sets = [make_set((a, b, c), seed) for seed in range(count_sets((a, b, c)))]
    first_call_ms = first_call(kernel, *sets[0])
    launches = contenders(kernel, sets, options)
    for name, launch in launches.items():
        check(f"{path.name}: {name}", launch, sets[-1], len(sets) - 1)
    times = interleaved(launches, len(sets), options.rounds)
    medians = {name: statistics.median(found) for name, found in times.items()}
    third_of_a_second = int(3e5 / medians[OURS]) + 1
    return Row(
        path.stem,
        *(*c["shape"], a["shape"][1]),
        us=medians,
        spread={name: statistics.stdev(found) / medians[name] for name, found in times.items()},
        host_us=host_costs(kernel, *sets[0], medians[OURS]),
        first_call_ms=first_call_ms,
        clocks=clocks_under(launches[OURS], third_of_a_second, len(sets)),
        pipeline=kernel.manifest["pipeline"],
    )


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
    transposed = b.T
    return {
        OURS: host_us(lambda: kernel(a, b, out=out), gpu_us),
        CUBLAS: host_us(lambda: torch.mm(a, transposed, out=out), gpu_us),
    }


def count_sets(tensors: tuple[dict[str, Any], ...]) -> int:
    """As many as exceed L2 several times."""
    one = sum(math.prod(tensor["shape"]) * 2 for tensor in tensors)
    wanted = L2_MULTIPLE * torch.cuda.get_device_properties(0).L2_cache_size / one
    return min(max(math.ceil(wanted), SETS[0]), SETS[1])


def make_set(tensors: tuple[dict[str, Any], ...], seed: int) -> list[torch.Tensor]:
    """Inputs that are normally distributed, and an output of NaN."""
    generator = torch.Generator("cuda").manual_seed(seed)
    made = [
        torch.empty_strided(each["shape"], each["strides"], dtype=torch.bfloat16, device="cuda")
        for each in tensors
    ]
    for operand in made[:2]:
        operand.normal_(generator=generator)
    made[2].fill_(torch.nan)
    return made


def contenders(
    kernel: Any, sets: list[list[torch.Tensor]], options: argparse.Namespace
) -> dict[str, Launch]:
    """What is timed, by name; each takes the index of an input set."""

    def ours(i: int) -> None:
        a, b, c = sets[i]
        kernel(a, b, out=c)

    def cublas(i: int) -> None:
        a, b, c = sets[i]
        torch.mm(a, b.T, out=c)

    found: dict[str, Launch] = {OURS: ours, CUBLAS: cublas}
    if not options.no_triton and all(each.is_contiguous() for each in sets[0]):
        found |= triton_contender(sets)
    return found


def triton_contender(sets: list[list[torch.Tensor]]) -> dict[str, Launch]:
    """Triton's matmul where it is installed."""
    try:
        from triton_matmul import prepare
    except ImportError as error:
        print(f"Triton is left out: {error}", file=sys.stderr)
        return {}
    prepared = [prepare(*each) for each in sets]
    return {TRITON: lambda i: prepared[i]()}


def check(name: str, launch: Launch, tensors: list[torch.Tensor], index: int) -> None:
    """Compare with float64 on some rows, and find what was never written anywhere."""
    a, b, c = tensors
    c.fill_(torch.nan)
    launch(index)
    count = min(CHECKED_ROWS, a.shape[0])
    rows = torch.linspace(0, a.shape[0] - 1, count, device="cuda").long()
    exact = a[rows].double() @ b.double().T
    error = ((c[rows].double() - exact).norm() / exact.norm()).item()
    if not error < ERROR_MAX or c.isnan().any():
        sys.exit(f"error: {name}: relative error must be below {ERROR_MAX}, got {error:.3g}")


def means(rows: list[Row]) -> dict[str, float]:
    """Geometric means of the ratios to each rival that all rows have."""
    rivals = [name for name in (CUBLAS, TRITON) if all(name in row.us for row in rows)]
    return {name: statistics.geometric_mean(row.ratio(name) for row in rows) for name in rivals}


def machine() -> dict[str, str]:
    """What was measured on, and when."""
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    if "triton" in sys.modules:
        versions["triton"] = sys.modules["triton"].__version__
    from tilewright.runtime.devices import open_device

    device: Any = open_device("cuda")
    gpu = {"gpu": device.gpu(0).name, "driver_cuda": device.gpu(0).driver_version}
    return {"date": datetime.now(UTC).date().isoformat(), **gpu, **versions}


def as_line(row: Row) -> str:
    found = ", ".join(f"{name} {row.tflops(name):.0f}" for name in row.us)
    return f"{row.m}×{row.n}×{row.k}: TFLOP/s {found}; ×{row.ratio(CUBLAS):.3f} of cuBLAS"


def as_text(rows: list[Row]) -> str:
    """A table in Markdown with the geometric means."""
    head = "| M×N×K | µs | TFLOP/s | cuBLAS | Triton | of cuBLAS | of Triton | host µs | torch µs |"
    lines = [", ".join(f"{key} {value}" for key, value in machine().items()), "", head]
    lines.append("|---" * 9 + "|")
    for row in rows:
        rival = f"{row.tflops(TRITON):.0f} | " if TRITON in row.us else "— | "
        of_rival = f"{row.ratio(TRITON):.3f}" if TRITON in row.us else "—"
        host = " | ".join(f"{row.host_us[name]:.1f}" for name in (OURS, CUBLAS))
        lines.append(
            f"| {row.m}×{row.n}×{row.k} | {row.us[OURS]:.1f} | {row.tflops(OURS):.0f}"
            f" | {row.tflops(CUBLAS):.0f} | {rival}{row.ratio(CUBLAS):.3f} | {of_rival} | {host} |"
        )
    found = ", ".join(f"{mean:.3f} of {name}" for name, mean in means(rows).items())
    return "\n".join([*lines, "", f"geometric mean: {found}"])


if __name__ == "__main__":
    main()
