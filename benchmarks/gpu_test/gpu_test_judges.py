"""What outputs must be that gpu_test.py looks at: within bounds, exact, or of known bits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from gpu_test_runs import INTEGERS, NORMALS, SCALES, ZEROS, Inputs
from gpu_test_sums import known_product, summed_in_order

from tilewright.runtime.bundles.manifest import epilogues, offsets_of, outputs
from tilewright.runtime.element_types import BLOCKWISE
from tilewright.runtime.group_sizes import ROWS
from tilewright.runtime.judge.groups import group_ends, parts_of_depth
from tilewright.runtime.judge.reference import compare, expected_output, to_float64


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
