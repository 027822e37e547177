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
import functools
import hashlib
import json
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_test_launches import judge_launches
from gpu_test_sizes import Size, is_nothing, of_size, values_of
from gpu_test_sums import known_product, summed_in_order

from tilewright.runtime import load
from tilewright.runtime.bundles.manifest import (
    epilogues,
    grouped_extent,
    offsets_of,
    operands,
    outputs,
)
from tilewright.runtime.bundles.sizes import named, tensor_for
from tilewright.runtime.element_types import BLOCKWISE, torch_dtype
from tilewright.runtime.element_types import INTEGERS as DTYPES_OF_INTEGERS
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.group_sizes import OFFSETS, ORDER, ROWS
from tilewright.runtime.judge.groups import group_ends, parts_of_depth
from tilewright.runtime.judge.reference import compare, expected_output, to_float64
from tilewright.runtime.launch.comparison import machine
from tilewright.runtime.launch.devices import why_no_gpu
from tilewright.runtime.strict_json import parse_json

INDEX = "index.json"
NORMALS, INTEGERS = "normals", "integers"
RUNS = 3
GUARD = 1024  # elements on either side of a tensor, which keep its address a multiple of 16 bytes
INTEGER_MAX = 4
SCALES, ZEROS, ZEROS_BELOW = "scales", "zeros", 16  # of narrow weights

Inputs = dict[str, torch.Tensor]
BITS = {
    1: torch.int8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}  # their largest is a NaN of every float


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


def run_nothing(kernel: Any, values: Sequence[int], place: str) -> tuple[list[torch.Tensor], bool]:
    """A call of tensors without rows or matrices, in the midst of memory that is all NaN: its
    outputs, and whether that memory is as it was."""
    sizes = named(kernel.manifest, values)
    declared = [tensor_for(each, sizes) for each in kernel.manifest["tensors"]]
    inputs = [guarded(each, place)[0] for each in declared if each["role"] == "input"]
    places = [each for each in declared if each["role"] == "output"]
    pairs = [guarded(each, place) for each in places]
    found, memories = [each[0] for each in pairs], [each[1] for each in pairs]
    kernel(*inputs, out=tuple(found) if len(found) > 1 else found[0])
    intact = all(bool((each == torch.iinfo(each.dtype).max).all()) for each in memories)
    shaped = all(not each.numel() for each in found)
    return [each.cpu() for each in found], intact and shaped


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


def each_alone(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A manifest for each output, as if it were the only one."""
    inputs = [each for each in manifest["tensors"] if each["role"] == "input"]
    told = epilogues(manifest)
    return [
        {**manifest, "tensors": [*inputs, each], "epilogue": told[each["name"]], "outputs": []}
        for each in outputs(manifest)
    ]


def judge_quantized(
    manifest: Mapping[str, Any], inputs: Inputs, found: Sequence[torch.Tensor], place: str
) -> list[str]:
    """Compare elements and scales with what the float64 product lets them be."""
    written = {each["name"]: value for each, value in zip(outputs(manifest), found, strict=True)}
    problems = []
    for c in outputs(manifest):
        limits = expected_output(manifest, {**inputs, **written}, place != "cpu", c["name"])
        actual = to_float64(written[c["name"]], c["dtype"])
        told = compare(limits, actual, c["dtype"], c["name"])
        problems += [] if told.passed else [f"quantized: must lie within bounds, got {told}"]
    return problems


def judge_normals(
    manifest: Mapping[str, Any], inputs: Inputs, output: torch.Tensor, place: str
) -> list[str]:
    """Compare with the float64 product, within the bounds of what an MMA sums, and on a GPU with
    what its MMAs are known to sum."""
    problems = judge_bounds(manifest, inputs, output, place)
    return problems + (judge_sums(manifest, inputs, output, place) if place != "cpu" else [])


def judge_bounds(
    manifest: Mapping[str, Any], inputs: Inputs, output: torch.Tensor, place: str
) -> list[str]:
    """Compare with what the epilogue makes of the float64 product and the other operands."""
    c, on_gpu = manifest["tensors"][-1], place != "cpu"
    expected = expected_output(manifest, {**inputs, c["name"]: output}, on_gpu)
    found = compare(expected, to_float64(output, c["dtype"]), c["dtype"])
    return [] if found.passed else [f"bounds: every element must lie within them, got {found}"]


def judge_sums(
    manifest: Mapping[str, Any], inputs: Inputs, output: torch.Tensor, place: str
) -> list[str]:
    """Compare with what Hopper's MMAs give, bit for bit."""
    if not summed_in_order(manifest):
        return []
    wrong = int((known_product(manifest, inputs, place) != output).sum())
    return [f"known: sums must have the bits of this GPU's MMAs, got {wrong} others"] * (wrong > 0)


def judge_integers(
    manifest: Mapping[str, Any], inputs: Inputs, output: torch.Tensor, place: str
) -> list[str]:
    """Compare with the exact product: sums of small integers are exact in float32 in any order, and
    those below 2^14 in Hopper's sums of 8-bit floats. Where the epilogue reads other operands,
    within the bounds."""
    if "b2" not in inputs and manifest["epilogue"]["arguments"][1:]:
        return judge_bounds(manifest, inputs, output, place)
    a, b = (_scaled(manifest, inputs, each["name"]) for each in manifest["tensors"][:2])
    grouped = offsets_of(manifest) is not None
    product = functools.partial(product_of_groups, manifest, inputs) if grouped else plain_product
    exact = product(a, b)
    if "b2" in inputs:  # without an epilogue one product times the other, in float32
        exact = (exact.float() * product(a, inputs["b2"].double()).float()).double()
    if output.itemsize == 1 and output.is_floating_point():  # older torch gives NaN beyond it
        most = torch.finfo(output.dtype).max
        exact = exact.clamp(-most, most)
    found = (
        output[: len(exact)] if output.dim() == 2 else output
    )  # behind the last group is nothing
    wrong = int((exact.to(output.dtype).double() != found.double()).sum())
    if len(found) < len(output):
        wrong += int((~output[len(exact) :].isnan()).sum())
    return [f"exact: every element must be the exact product, got {wrong} others"] if wrong else []


def _scaled(manifest: Mapping[str, Any], inputs: Inputs, name: str) -> torch.Tensor:
    """An operand, times its scales if it has some: of 128 elements of K, or of narrow weights."""
    dtype = next(each["dtype"] for each in manifest["tensors"] if each["name"] == name)
    values = torch.from_numpy(to_float64(inputs[name], dtype))
    form = manifest.get("blockwise", {}).get(name)
    if name == "b" and "weights" in manifest:
        groups = values.unflatten(1, (-1, manifest["weights"]["group"]))
        if ZEROS in inputs:
            groups = groups - inputs[ZEROS].double()[..., None]
        return (groups * inputs[SCALES].double()[..., None]).flatten(1)
    if form is None:
        return values
    rows, k = values.shape[-2:]
    scales = inputs[f"{name}_scales"].double()
    of_rows = scales.mT if form == "1x128" else scales.repeat_interleave(BLOCKWISE, -2)
    return values * of_rows.repeat_interleave(BLOCKWISE, -1)[..., :rows, :k]


def plain_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """That of two matrices, or of stacks."""
    return a @ b.mT


def product_of_groups(
    manifest: Mapping[str, Any], inputs: Inputs, a: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    """The rows of all groups, each times the matrix of its group; or of groups of K."""
    offsets = offsets_of(manifest)
    assert offsets is not None
    ends = inputs[offsets["name"]].numpy()
    if ROWS in inputs:
        a = a[inputs[ROWS].clamp(0, len(a) - 1)]
    if b.dim() == 2:
        parts = parts_of_depth(ends, a.shape[1])
        return torch.stack([a[:, part] @ b[:, part].mT for part in parts])
    bounds = [0, *group_ends(ends, len(a))]
    pairs = enumerate(pairwise(bounds))
    return torch.cat([a[begin:end] @ b[group].mT for group, (begin, end) in pairs])


JUDGES: dict[str, Callable[..., list[str]]] = {NORMALS: judge_normals, INTEGERS: judge_integers}


def seed_of(name: str) -> int:
    """A seed that both machines derive from a kernel's name."""
    return zlib.crc32(name.encode())


def draw(manifest: Mapping[str, Any], seed: int, kind: str) -> Inputs:
    """The inputs by name, equal wherever they are drawn: the streams of RandomState are frozen."""
    stream = np.random.RandomState(seed)
    drawn = {}
    for each in (each for each in manifest["tensors"] if each["role"] == "input"):
        shape = each["shape"]
        dtype = torch_dtype(each["dtype"])
        if each["name"] == OFFSETS:
            numbers = np.sort(stream.randint(0, grouped_extent(manifest) + 1, shape))
        elif each["name"] == ROWS:  # some are no row's
            numbers = stream.randint(-2, operands(manifest)[0]["shape"][0] + 2, shape)
        elif each["name"] == ORDER:
            numbers = stream.permutation(shape[0])
        elif each["name"] == ZEROS and "weights" in manifest:
            numbers = stream.randint(0, ZEROS_BELOW, shape)
        elif kind == INTEGERS:
            numbers = stream.randint(-INTEGER_MAX, INTEGER_MAX + 1, shape)
        elif each["dtype"] in DTYPES_OF_INTEGERS:
            limits = torch.iinfo(dtype)
            numbers = stream.randint(limits.min, limits.max + 1, shape)
        else:
            numbers = stream.normal(size=shape)
        drawn[each["name"]] = torch.from_numpy(numbers).to(dtype)
    return drawn


def run_once(kernel: Any, inputs: Inputs, place: str) -> tuple[list[torch.Tensor], bool]:
    """One run on poisoned outputs: those on the CPU, and whether their guards are intact."""
    declared = [each for each in kernel.manifest["tensors"] if each["role"] == "input"]
    values = [guarded(each, place)[0].copy_(inputs[each["name"]]) for each in declared]
    pairs = [guarded(c, place) for c in outputs(kernel.manifest)]
    found, memories = [each[0] for each in pairs], [each[1] for each in pairs]
    kernel(*values, out=tuple(found) if len(found) > 1 else found[0])
    guards = [torch.cat([memory[:GUARD], memory[-GUARD:]]) for memory in memories]
    intact = all(bool((each == torch.iinfo(each.dtype).max).all()) for each in guards)
    return [output.cpu() for output in found], intact


def guarded(declared: Mapping[str, Any], place: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor as the manifest declares it, in the midst of memory that is all NaN; and the bits of
    that."""
    shape, strides = declared["shape"], declared["strides"]
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    span = 0 if 0 in shape else span
    dtype = torch_dtype(declared["dtype"])
    bits = BITS[dtype.itemsize]
    memory = torch.full((span + 2 * GUARD,), torch.iinfo(bits).max, dtype=bits, device=place)
    return memory.view(dtype).as_strided(shape, strides, GUARD), memory


def digest(found: Sequence[torch.Tensor]) -> str:
    """SHA-256 of the bits of outputs, row by row."""
    bits = [output.contiguous().view(BITS[output.itemsize]) for output in found]
    return hashlib.sha256(b"".join(each.numpy().tobytes() for each in bits)).hexdigest()


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
