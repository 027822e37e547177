"""Whether bundles compute the right results on this GPU: every element, in every run.

    python benchmarks/gpu_test/gpu_test.py FOLDER [--every N] [--device cuda] [--json PATH]

FOLDER holds what gpu_test_bundles.py made; `runtime` must be importable as
tilewright.runtime, and torch, numpy and cuda-python installed. Each kernel runs three times on
standard normals (bytes: all that there are) and three times on integers from -4 to 4; before each
run the output is NaN (s32: its largest number), and so is the memory around every tensor. What is
demanded, of kernels for any M or batch, or both, with several, also of none:

    bounds    normals: every element lies within the bounds of what an MMA sums
              (runtime/judge/sums.py)
    exact     integers: every element is the exact product, rounded to the output's type; with
              operands of the epilogue, within the bounds
    known     normals on a Hopper GPU: the bits are those that its tensor core is known to give
              (gpu_test_sums.py), where one accumulator takes all of K and C is the sum
    emulator  integers: the bits are those that the emulator had, where it was asked
    repeated  the runs on the same inputs give the same bits
    inside    nothing is written around the output
    together  of kernels with a workspace: launches behind each other, on two streams at once, and
              in a graph that is replayed beside them give the same bits (gpu_test_launches.py)

Exit status 1 when a kernel breaks a rule. `--device cpu` is the emulator, to try the command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_test_judges import JUDGES, each_alone, judge_quantized
from gpu_test_launches import judge_launches
from gpu_test_runs import INTEGERS, NORMALS, digest, draw, run_nothing, run_once, seed_of
from gpu_test_sizes import Size, is_nothing, of_size, values_of

from tilewright.runtime import load
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.launch.comparison import machine
from tilewright.runtime.launch.devices import why_no_gpu
from tilewright.runtime.strict_json import parse_json

INDEX = "index.json"
RUNS = 3


@dataclass
class Verdict:
    """What one kernel did with each of its sizes: `problems` is empty if it is right, `emulated` if
    digests were there."""

    name: str
    group: str
    emulated: bool
    problems: list[str]
    sizes: int = 1


def main() -> int:
    options = parse_options()
    reason = why_no_gpu() if options.device == "cuda" else None
    if reason:
        sys.exit(f"error: {reason}")
    index = read_index(options.folder / INDEX)
    names = list(index)[:: options.every]
    verdicts = [check(options.folder, name, index[name], options.device) for name in names]
    print(as_text(verdicts))
    if options.json:
        options.json.write_text(json.dumps(as_dict(verdicts, options.device), indent=1))
    return 0 if names and not any(verdict.problems for verdict in verdicts) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one kernel of N only")
    places = ("cuda", "cpu")
    parser.add_argument("--device", choices=places, default="cuda", help="cpu is the emulator")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    options = parser.parse_args()
    if options.every < 1:
        parser.error(f"--every: must be 1 or more, got {options.every}")
    return options


def read_index(path: Path) -> dict[str, Any]:
    """Group, sizes to run with and the emulator's digest for each of them, by kernel."""
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        sys.exit(f"error: {path}: must be what gpu_test_bundles.py has written, got {error}")


def check(folder: Path, name: str, entry: Mapping[str, Any], place: str) -> Verdict:
    """Load and judge one kernel; what the device refuses is a problem too."""
    try:
        kernel = load(folder / f"{name}.zip")
        sizes = entry["sizes"] or [None]
        problems = [
            problem if size is None else f"{problem} (size {size})"
            for size, emulated in zip(sizes, entry["emulator"], strict=True)
            for problem in judge_size(kernel, size, seed_of(name), emulated, place)
        ]
    except DeviceError as error:
        problems = [str(error)]
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr, flush=True)
    emulated = entry["emulator"]
    return Verdict(name, entry["group"], None not in emulated, problems, len(emulated))


def judge_size(
    kernel: Any, size: Size | None, seed: int, emulated: str | None, place: str
) -> list[str]:
    """As `judge`, of a kernel for any M or batch with one; of none it must leave all as it is."""
    if not is_nothing(size):
        return judge(of_size(kernel, size), seed, emulated, place)
    found, intact = run_nothing(kernel, values_of(size), place)
    problems = [] if intact else ["inside: nothing must be written, got something"]
    if emulated is not None and digest(found) != emulated:
        problems.append("emulator: outputs must have its shape of nothing, got another")
    return problems


def judge(kernel: Any, seed: int, emulated: str | None, place: str) -> list[str]:
    """Run a kernel on both kinds of inputs; the rules that it breaks."""
    problems = []
    for kind in (NORMALS, INTEGERS):
        inputs = draw(kernel.manifest, seed, kind)
        runs = [run_once(kernel, inputs, place) for _ in range(RUNS)]
        several = [found for found, _ in runs]
        if "quantized" in kernel.manifest:
            problems += judge_quantized(kernel.manifest, inputs, several[0], place)
        else:
            for alone, output in zip(each_alone(kernel.manifest), several[0], strict=True):
                problems += JUDGES[kind](alone, inputs, output, place)
        if len({digest(found) for found in several}) > 1:
            problems.append(f"repeated: {RUNS} runs on the same {kind} must agree, got other bits")
        if not all(intact for _, intact in runs):
            problems.append(f"inside: only the output must be written, got more for {kind}")
    if kernel.manifest.get("workspace_bytes") and place != "cpu":
        problems += judge_launches(kernel, inputs, several[0][0])
    if emulated is not None and digest(several[0]) != emulated:
        problems.append("emulator: integers must give the emulator's bits, got others")
    return problems


def as_text(verdicts: Sequence[Verdict]) -> str:
    """Counts by group, in Markdown."""
    lines = ["| kernels | right | also on the emulator | group |", "|---|---|---|---|"]
    groups = {verdict.group: None for verdict in verdicts}
    for group in [*groups, None]:
        those = [verdict for verdict in verdicts if group in (verdict.group, None)]
        right = sum(not verdict.problems for verdict in those)
        emulated = sum(verdict.emulated for verdict in those)
        lines.append(f"| {len(those)} | {right} | {emulated} | {group or 'together'} |")
    return "\n".join(lines)


def as_dict(verdicts: Sequence[Verdict], place: str) -> dict[str, Any]:
    """Where and when, how often each kernel ran, and every verdict."""
    where = {"gpu": "none: the emulator"} if place == "cpu" else machine()
    kernels = [asdict(verdict) for verdict in verdicts]
    runs = 2 * RUNS * sum(verdict.sizes for verdict in verdicts)
    return {**where, "runs": runs, "kernels": kernels}


if __name__ == "__main__":
    sys.exit(main())
