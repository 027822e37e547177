"""The epilogue program of a manifest, evaluated on intervals (docs/manifest.md, "epilogue")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..element_types import INTEGERS, torch_dtype
from ..errors import DeviceError
from . import intervals
from .intervals import Interval

Operation = Callable[..., Interval]

OPERATIONS: dict[str, Operation] = {
    **intervals.FLOAT_OPERATIONS,
    "arith.addi": lambda a, b: intervals.add(a, b).map(intervals.wrapped),
    "arith.select": intervals.choose,
    "arith.extf": lambda a: a,
    "arith.sitofp": lambda a: a,
}
PREDICATES = (
    *(order + relation for order in "ou" for relation in ("eq", "ne", "lt", "le", "gt", "ge")),
    *intervals.ORDERS,
)


LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
"""OCP 8-bit Floating Point Specification (OFP8) 1.0, table of formats."""


def evaluate(
    epilogue: Mapping[str, Any], sums: Sequence[Interval], tensors: Mapping[str, np.ndarray]
) -> Interval:
    """What the epilogue may make of the sums [m, n] of each product, given its extra tensors in
    float64.

    A tensor of rank 1 is indexed by the axis its argument names. Raises DeviceError for an
    operation that is not in `OPERATIONS`.
    """
    others = epilogue["arguments"][len(sums) :]
    values = [*sums, *(_argument(argument, tensors) for argument in others)]
    with np.errstate(all="ignore"):
        for operation in epilogue["operations"]:
            inputs = [values[operand] for operand in operation["operands"]]
            values.append(_apply(operation["name"], operation["attributes"], inputs))
    return values[epilogue["result"]]


def round_to(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 values rounded to nearest even in f32 and then in `dtype`, as float64 again.

    Integers and f64 stay as they are. Beyond the largest number of a type of 8 bits there is that
    number (PTX ISA, cvt.rn.satfinite).
    """
    if dtype in INTEGERS or dtype == "f64":
        return values
    import torch

    if dtype in LARGEST:
        values = np.clip(values, -LARGEST[dtype], LARGEST[dtype])

    single = torch.tensor(np.asarray(values)).to(torch.float32)
    return single.to(torch_dtype(dtype)).to(torch.float64).numpy()


def _argument(argument: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Interval:
    value = Interval.exactly(tensors[argument["tensor"]])
    return value.reshaped(lambda part: part[:, None]) if argument["axes"][-1:] == ["m"] else value


def _truncated(value: Interval, dtype: str) -> Interval:
    """The limits are rounded; the exact value stays exact, so that errors are told against it."""
    low, high = (round_to(part, dtype) for part in (value.low, value.high))
    return Interval(low, value.middle, high, value.nan)


def _predicate(attributes: Mapping[str, Any]) -> str:
    predicate = attributes.get("predicate")
    if predicate not in PREDICATES:
        known = ", ".join(PREDICATES)
        raise DeviceError(f"reference: arith.cmpf predicate must be {known}, got {predicate!r}")
    return predicate


def _apply(name: str, attributes: Mapping[str, Any], inputs: Sequence[Interval]) -> Interval:
    if name == "arith.constant":
        return Interval.exactly(attributes["value"])
    if name == "arith.cmpf":
        return intervals.compare(_predicate(attributes), *inputs)
    if name == "arith.truncf":
        return _truncated(inputs[0], attributes["type"])
    if name not in OPERATIONS:
        known = ", ".join(sorted(OPERATIONS))
        raise DeviceError(f"reference: epilogue operation must be one of {known}, got {name}")
    return intervals.rounded(name, OPERATIONS[name](*inputs), *inputs)
