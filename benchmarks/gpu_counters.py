"""What bounds a kernel on this GPU: hardware counters of bundles and of cuBLAS, and a verdict.

    python benchmarks/gpu_counters.py FOLDER [--json PATH]

FOLDER holds bundles as for benchmarks/gpu.py; ncu (Nsight Compute) must be on the PATH and allowed
to read counters. It runs each kernel many times with cold caches and leaves the clocks alone. Of
a kernel's time, in percent of the multiprocessors' cycles:

    tensor   the tensor pipe works
    waiting  there is a CTA, and the pipe doesn't work
    uneven   there is none, while there still is one on another multiprocessor
    ends     there is none anywhere: the launch, and the way to its end

`operands` is the share of the main loop's samples that wait for an operand's arrival, `L2→SM` what
arrives at a multiprocessor, `L2 out` and `DRAM` percents of their peaks. Clock and power are those
of a third of a second of such launches. The verdict is the first that is true:

    tensor pipe    `tensor` is 85 or more
    DRAM           it has 50% of its peak
    L2             it sends 55% of its peak, of which more than 61% wasn't seen
    waves, launch  `uneven` or `ends` is the largest of the three losses
    loads          of `waiting`, which is then the largest, `operands` is 33% or more
    start and end  likewise, of a CTA: prologue and epilogue, `operands` is less
    waiting        likewise, of cuBLAS, whose main loop's samples aren't looked at

and "at the power limit" as well, where the clock is under 97% of the highest.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("gpu_profiled.py")
FLAGS = "--clock-control none --profile-from-start off --section SourceCounters".split()
ELAPSED = "avg.pct_of_peak_sustained_elapsed"
TIME = "gpu__time_duration.sum"
METRICS = {
    "cycles": "sm__cycles_elapsed.max",
    "active": "sm__cycles_active.avg",
    "busiest": "sm__cycles_active.max",
    "tensor": f"sm__pipe_tensor_cycles_active.{ELAPSED}",
    "issue": f"sm__issue_active.{ELAPSED}",
    "sectors": "l1tex__m_xbar2l1tex_read_sectors.avg.per_cycle_elapsed",
    "l2": f"lts__lts2xbar_cycles_active.{ELAPSED}",
    "hit": "lts__t_sector_hit_rate.pct",
    "dram": f"gpu__dram_throughput.{ELAPSED}",
    "waves": "launch__waves_per_multiprocessor",
}
SECTOR_BYTES = 32
PIPE_BUSY, CLOCK_LOW, DRAM_BUSY, L2_BUSY, MANY_WAIT = 85, 0.97, 50, 55, 33


@dataclass
class Counters:
    """One contender at one shape: microseconds, percents, and clocks under load.

    `kernels`: ours by the options of its tiling, cuBLAS's by their names.
    """

    bundle: str
    who: str
    us: float
    found: dict[str, float]
    operands: float | None
    clocks: dict[str, float]
    kernels: list[str]

    @property
    def losses(self) -> dict[str, float]:
        """Percents of the time in which the tensor pipe doesn't work, by what is missing."""
        cycles, active, busiest = (self.found[name] for name in ("cycles", "active", "busiest"))
        uneven, ends = 100 * (busiest - active) / cycles, 100 * (1 - busiest / cycles)
        waiting = 100 - self.found["tensor"] - uneven - ends
        return {"waiting": waiting, "uneven": uneven, "ends": ends}

    @property
    def verdict(self) -> str:
        """What bounds it, by the rules at the top of this file."""
        low = self.clocks["sm_mhz"] < CLOCK_LOW * self.clocks["highest_mhz"]
        return f"{self._bound()}, at the power limit" if low else self._bound()

    def _bound(self) -> str:
        full = {"tensor": PIPE_BUSY, "dram": DRAM_BUSY, "l2": L2_BUSY}
        for name, least in full.items():
            if self.found[name] >= least:
                return {"tensor": "tensor pipe", "dram": "DRAM", "l2": "L2"}[name]
        losses = self.losses
        worst = max(losses, key=lambda name: losses[name])
        if worst != "waiting":
            return {"uneven": "waves", "ends": "launch"}[worst]
        if self.operands is None:
            return "waiting"
        return "loads" if self.operands >= MANY_WAIT else "start and end"


def main() -> int:
    options = parse_options()
    if not any(options.folder.glob("*.zip")):
        sys.exit(f"error: {options.folder}: must hold bundles, got none; see gpu_bundles.py")
    if shutil.which("ncu") is None:
        sys.exit("error: ncu: must be on the PATH, got none; it comes with Nsight Compute")
    with tempfile.TemporaryDirectory() as place:
        rows = profile(options.folder, Path(place))
    print(as_text(rows))
    if options.json:
        found = [{**asdict(row), **row.losses, "verdict": row.verdict} for row in rows]
        options.json.write_text(json.dumps(found, indent=1))
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    return parser.parse_args()


def profile(folder: Path, place: Path) -> list[Counters]:
    """Run all bundles under ncu, and read what it has found."""
    report, clocks = place / "found.ncu-rep", place / "clocks.json"
    names = ",".join([TIME, *METRICS.values()])
    run_ncu(*FLAGS, "--metrics", names, "-o", report, sys.executable, CHILD, folder, clocks)
    raw = run_ncu("-i", report, "--csv", "--page", "raw", "--print-units", "base")
    source = run_ncu("-i", report, "--csv", "--page", "source", "--print-source", "sass")
    return by_contender(read_raw(raw), read_source(source), json.loads(clocks.read_bytes()))


def run_ncu(*arguments: object) -> str:
    """What ncu prints; exits with its message if it fails."""
    done = subprocess.run(["ncu", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: ncu: must succeed, got exit status {done.returncode}:\n"
                 f"{done.stdout}{done.stderr}")  # fmt: skip
    return done.stdout


def read_raw(text: str) -> list[dict[str, str]]:
    """A dict a kernel of ncu's raw page: metrics by name. The line below the head has units."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    return list(csv.DictReader(lines))[1:]


def read_source(text: str) -> list[tuple[str, list[dict[str, str]]]]:
    """Kernels of ncu's source page, a name and each instruction's samples; some come twice."""
    blocks = (block.splitlines() for block in text.split('"Kernel Name",')[1:])
    return [(block[0].split('"')[1], list(csv.DictReader(block[1:]))) for block in blocks]


def by_contender(
    kernels: Sequence[dict[str, str]],
    sources: Sequence[tuple[str, list[dict[str, str]]]],
    clocks: dict[str, dict[str, Any]],
) -> list[Counters]:
    """Kernels in the order in which they ran, given to ours and cuBLAS, bundle by bundle."""
    entries = {told["entry"] for told in clocks.values()}
    our_sources = (source for name, source in sources if name in entries)
    rows, left = [], list(kernels)
    for (bundle, told), source in zip(clocks.items(), our_sources, strict=True):
        kernel = {**left[0], "Kernel Name": tile_of(told["pipeline"])}
        rows.append(counters(bundle, "ours", [kernel], told["ours"], waiting_share(source)))
        others = list(until(left[1:], told["entry"]))
        rows.append(counters(bundle, "cuBLAS", others, told["cublas"]))
        left = left[1 + len(others) :]
    return rows


def tile_of(pipeline: str) -> str:
    """The options of `tiling`."""
    return pipeline.partition("tiling{")[2].partition("}")[0]


def until(kernels: Sequence[dict[str, str]], entry: str) -> Iterator[dict[str, str]]:
    """The kernels before the next of ours."""
    for kernel in kernels:
        if kernel["Kernel Name"] == entry:
            return
        yield kernel


def counters(
    bundle: str,
    who: str,
    kernels: Sequence[dict[str, str]],
    clocks: dict[str, float],
    operands: float | None = None,
) -> Counters:
    """Of one contender's kernels together: times added, the rest weighted by time."""
    times = [number(kernel[TIME]) for kernel in kernels]
    found = {
        name: sum(at * number(kernel[metric]) for at, kernel in zip(times, kernels, strict=True))
        / sum(times)
        for name, metric in METRICS.items()
    }
    names = [kernel["Kernel Name"] for kernel in kernels]
    return Counters(bundle, who, sum(times) / 1e3, found, operands, clocks, names)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def waiting_share(source: Sequence[dict[str, str]]) -> float | None:
    """Percent of the main loop's samples that wait for an operand; None without such a loop.

    The loop is what is executed as often as the MMA that is executed most. A warp there waits for
    memory (stall_long_sb) only after it has asked a slot's barrier.
    """
    counts = [int(each["Instructions Executed"]) for each in source]
    mmas = [n for n, each in zip(counts, source, strict=True) if "GMMA" in each["Source"]]
    if not mmas:
        return None
    loop = [each for n, each in zip(counts, source, strict=True) if n == max(mmas)]
    samples = sum(int(each["# Samples"]) for each in loop)
    return 100 * sum(int(each["stall_long_sb"]) for each in loop) / samples if samples else None


COLUMNS: dict[str, Callable[[Counters], str]] = {
    "M×N×K": lambda row: row.bundle.replace("x", "×"),
    "": lambda row: row.who,
    "kernel": lambda row: row.kernels[0].partition("(")[0],
    "µs": lambda row: f"{row.us:.1f}",
    "tensor": lambda row: f"{row.found['tensor']:.0f}",
    "waiting": lambda row: f"{round(row.losses['waiting'])}",
    "uneven": lambda row: f"{round(row.losses['uneven'])}",
    "ends": lambda row: f"{round(row.losses['ends'])}",
    "operands": lambda row: "—" if row.operands is None else f"{row.operands:.0f}",
    "issue": lambda row: f"{row.found['issue']:.0f}",
    "L2→SM B/cycle": lambda row: f"{row.found['sectors'] * SECTOR_BYTES:.0f}",
    "L2 out": lambda row: f"{row.found['l2']:.0f}",
    "L2 hits": lambda row: f"{row.found['hit']:.0f}",
    "DRAM": lambda row: f"{row.found['dram']:.0f}",
    "waves": lambda row: f"{row.found['waves']:.2f}",
    "MHz": lambda row: f"{row.clocks['sm_mhz']:.0f}",
    "W": lambda row: f"{row.clocks['watts']:.0f}",
    "verdict": lambda row: row.verdict,
}


def as_text(rows: Sequence[Counters]) -> str:
    """A table in Markdown, from the shortest of our kernels to the longest."""
    ours = {row.bundle: row.us for row in rows if row.who == "ours"}
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for row in sorted(rows, key=lambda row: ours[row.bundle]):
        lines.append(f"| {' | '.join(cell(row) for cell in COLUMNS.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
