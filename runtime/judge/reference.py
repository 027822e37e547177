"""The expected result of a kernel in float64, and its error bounds.

The bound has no slack that was tuned. How far the sums of exact products may be off is in `sums`;
that interval goes through the epilogue by interval arithmetic, and its ends are rounded to the
output dtype. Every element must lie inside. Products of tf32 are those of the operands without
their low 13 bits (PTX ISA, alternate floating-point formats).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..bundles.manifest import (
    columns_of,
    epilogues,
    offsets_of,
    operands,
    output,
    outputs,
    quantized_of,
    reductions,
    second_b,
)
from ..element_types import INTEGERS, is_torch
from ..group_sizes import ORDER
from .block_scales import decoded, is_coded, with_scales
from .blockwise import SCALES as SCALES_OF_BLOCKS
from .blockwise import blockwise_sums, is_blockwise
from .epilogue import LARGEST, evaluate, round_to
from .group_sums import over_groups
from .groups import gathered, grouped_result
from .intervals import Interval, stacked
from .quantized import elements_of, scales_of
from .relaxed import is_relaxed, relaxed
from .sums import sums_of
from .weights import has_groups, weighted_sums

PRECISIONS = {"bf16": (8, -126), "f16": (11, -14), "f32": (24, -126), "f64": (53, -1022)}
PRECISIONS |= {"e4m3": (4, -6), "e5m2": (3, -14), "e2m3": (4, 0), "e3m2": (3, -2), "e2m1": (2, 0)}
PRECISIONS |= {"ue4m3": (4, -6), "ue8m0": (1, -127)}
"""Significant bits and the exponent of the smallest normal number."""
TF32_MASK = 0xFFFF_E000


@dataclass(frozen=True)
class Comparison:
    """How an output compares with its reference.

    `largest_error` is the largest |actual - expected|, among the mismatches if there are any;
    `index` is the [m, n] of that element of `output`, and `bound` what is allowed there.
    """

    passed: bool
    elements: int
    mismatches: int
    largest_error: float
    bound: float
    index: tuple[int, ...]
    expected: float
    actual: float
    output: str = "c"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `tilewright run --json` prints them."""
        return asdict(self)


def expected_output(
    manifest: Mapping[str, Any],
    tensors: Mapping[str, Any],
    on_gpu: bool = False,
    name: str | None = None,
) -> Interval:
    """The [m, n] float64 result with its limits, for tensors named as in the manifest.

    `on_gpu` is for what the hardware computed (`sums`); `name` is that of an output, else c.
    """
    values = {
        tensor["name"]: to_float64(tensors[tensor["name"]], tensor["dtype"])
        for tensor in manifest["tensors"]
        if tensor["role"] == "input"
    }
    if not is_blockwise(manifest):
        values = with_scales(values, {tensor["name"]: tensor for tensor in manifest["tensors"]})
    c = next(each for each in outputs(manifest) if name in (None, each["name"]))
    if quantized_of(manifest, c["name"]):
        return _quantized(manifest, values, tensors, c, on_gpu)
    epilogue, offsets = epilogues(manifest)[c["name"]], offsets_of(manifest)
    reduced = reductions(manifest).get(c["name"])
    if offsets is not None:
        ends = values.pop(offsets["name"])
        values = gathered(manifest, values)
        values.pop(ORDER, None)  # of all groups, which does not matter
        whole = grouped_result(
            manifest,
            epilogue,
            values,
            ends,
            lambda own: _matrix(manifest, epilogue, own, (), on_gpu),
        )
        return _limited(manifest, whole, c, epilogue)
    parts = [
        _matrix(manifest, epilogue, values, index, on_gpu) for index in np.ndindex(*c["shape"][:-2])
    ]
    if reduced:
        parts = [over_groups(part, reduced["kind"], reduced["group"]) for part in parts]
    result = parts[0] if len(c["shape"]) == 2 else stacked(parts)
    return _limited(manifest, result, c, epilogue)


def _quantized(
    manifest: Mapping[str, Any],
    values: Mapping[str, np.ndarray],
    tensors: Mapping[str, Any],
    wanted: Mapping[str, Any],
    on_gpu: bool,
) -> Interval:
    """C with block scales, its elements by the scales that the kernel wrote; or these scales."""
    how, c, epilogue = manifest["quantized"], output(manifest), manifest["epilogue"]
    scale = next(each for each in outputs(manifest) if each["name"] == how["scales"])
    stack = list(np.ndindex(*c["shape"][:-2]))
    shape = c["shape"][-2], columns_of(c)
    parts = [
        _matrix(manifest, epilogue, values, index, on_gpu).reshaped(
            lambda part: np.broadcast_to(part, shape)
        )
        for index in stack
    ]
    if wanted is scale:
        return scales_of(parts, how, c["dtype"], scale)
    written = to_float64(tensors[scale["name"]], scale["dtype"])
    found = [
        elements_of(part, written[index], how, c["dtype"])
        for part, index in zip(parts, stack, strict=True)
    ]
    return stacked(found) if stack[0] else found[0]


def _limited(
    manifest: Mapping[str, Any],
    result: Interval,
    c: Mapping[str, Any],
    epilogue: Mapping[str, Any],
) -> Interval:
    """The limits as C's type has them, for each of C's elements."""
    limits = [result.low, result.high]
    if not _is_rounded(epilogue, c["dtype"]):
        limits = [round_to(part, c["dtype"]) for part in limits]
    shape = tuple(c["shape"])
    whole = Interval(limits[0], result.middle, limits[1], result.nan)
    if is_relaxed(manifest, epilogue, c["dtype"]):
        whole = relaxed(whole, lambda part: half_ulp(part, c["dtype"]))
    return whole.reshaped(lambda part: np.broadcast_to(part, shape))


def _is_rounded(epilogue: Mapping[str, Any], dtype: str) -> bool:
    """Whether the epilogue gives a type of 8 bits itself: an infinity of it is no overflow."""
    number = epilogue["result"] - len(epilogue["arguments"])
    if dtype not in LARGEST or number < 0:
        return False
    return epilogue["operations"][number]["attributes"].get("type") == dtype


def _matrix(
    manifest: Mapping[str, Any],
    epilogue: Mapping[str, Any],
    values: Mapping[str, np.ndarray],
    index: tuple[int, ...],
    gpu: bool,
) -> Interval:
    """The result of the matrix of a stack at an index; at (), of a product without a stack."""
    a, *bs = (operand["name"] for operand in (*operands(manifest), second_b(manifest)) if operand)
    of_matrix = {a, *bs, *SCALES_OF_BLOCKS} & values.keys() if index else set()
    arguments = epilogue["arguments"]
    own = {each["tensor"] for each in arguments if each["axes"][:1] == ["b"]}
    own |= {name for name in of_matrix if values[name].ndim == 3}
    seen = {name: value[index] if name in own else value for name, value in values.items()}
    if is_blockwise(manifest):
        sums = [blockwise_sums(manifest, seen, gpu)]
    elif has_groups(manifest):
        sums = [weighted_sums(manifest, seen)]
    else:
        sums = [sums_of(manifest, seen[a], seen[b], gpu) for b in bs]
    result = evaluate(epilogue, sums, seen)
    c = output(manifest)
    shape = c["shape"][-2], columns_of(c)
    return result.reshaped(lambda part: np.broadcast_to(part, shape)) if index else result


def compare(
    expected: Interval, actual: np.ndarray, dtype: str = "f32", name: str = "c"
) -> Comparison:
    """Compare every element of `actual` (float64) with its limits; NaN only where it may be.

    `dtype` is that of the output of that name; half a unit in its last place is part of the bound
    told.
    """
    low, middle, high = expected.parts()
    with np.errstate(invalid="ignore"):
        error = _distance(actual, middle)
        reach = np.maximum(_distance(high, middle), _distance(middle, low))
        inside = ((actual >= low) & (actual <= high)) | (np.isnan(actual) & expected.nan)
        error = np.where(inside & (np.isnan(actual) | np.isnan(middle)), 0.0, error)
    worst = _worst(error, inside)
    return Comparison(
        passed=bool(inside.all()),
        elements=int(actual.size),
        mismatches=int((~inside).sum()),
        largest_error=float(error[worst]),
        bound=float(np.maximum(reach, half_ulp(middle, dtype))[worst]),
        index=tuple(int(i) for i in worst),
        expected=float(middle[worst]),
        actual=float(actual[worst]),
        output=name,
    )


def half_ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """Half a unit in the last place of `dtype` at each value: the most that rounding errs by."""
    if dtype in INTEGERS:
        return np.zeros_like(values)
    bits, smallest_exponent = PRECISIONS[dtype]
    exponents = np.where(values == 0, smallest_exponent, np.frexp(values)[1] - 1)
    return np.ldexp(1.0, np.maximum(exponents, smallest_exponent) - bits)


def to_float64(value: Any, dtype: str) -> np.ndarray:
    """A tensor of the manifest's `dtype` (torch, numpy, or raw bf16 bits) as float64.

    Of tf32, what the tensor core reads; of packed elements, all of them.
    """
    if is_coded(dtype):
        return decoded(value, dtype)
    if dtype == "tf32":
        single = to_float64(value, "f32").astype(np.float32)
        return (single.view(np.uint32) & np.uint32(TF32_MASK)).view(np.float32).astype(np.float64)
    if is_torch(value):
        return value.detach().double().contiguous().numpy()
    if dtype == "bf16":
        bits = np.ascontiguousarray(value).view(np.uint16)
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.ascontiguousarray(value, np.float64)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a - b|: 0 for equal infinities and for two NaNs, infinite where only one is NaN."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))


def _worst(error: np.ndarray, inside: np.ndarray) -> tuple[Any, ...]:
    """The largest error, among the mismatches if there are any."""
    ranked = error if inside.all() else np.where(inside, -1.0, error)
    return np.unravel_index(int(np.argmax(ranked)), ranked.shape)
