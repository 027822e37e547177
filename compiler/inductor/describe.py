"""Regions in words: what distinguishes them, and their line of the report."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import fx

from ...dialects.errors import CompileError
from ...dialects.tables import kept_until_changed
from ...dialects.target import find_target
from ..schedule.estimates.estimate import estimate
from ..schedule.kinds.lane_schedule import is_by_lanes, lanes_us
from ..schedule.problem import Problem
from ..schedule.search.choice import choose_schedule
from ..spec import MatmulSpec
from .convolutions import STANDS_FOR
from .products import dtype_of, sizes_of
from .region import Region, is_constant, name_of, truth_behind
from .report import Row
from .row_regions import AnyPrepared


def described(region: Region) -> str:
    """Equal for regions for which one kernel does: operators, sizes, types and strides."""
    names = {node: f"${number}" for number, node in enumerate(region.reads)}
    names |= {each.a: "$0" for each in region.products}
    of_bools = [node for node in region.operands if truth_behind(node) is not node]
    lines = [f"{names[node]}: {_value(node)}" for node in dict.fromkeys(region.reads)]
    lines += [f"{names[node]}: converted from a bool" for node in of_bools]
    for number, node in enumerate(region.nodes):
        names[node] = f"%{number}"
        given = [*node.args, *sorted(node.kwargs.items())]
        stands = node.meta.get(STANDS_FOR, "")
        lines.append(
            f"%{number} = {node.target}{stands}({_arguments(given, names)}): {_value(node)}"
        )
    return "\n".join([*lines, f"return {', '.join(names[each] for each in region.outputs)}"])


def _arguments(given: Any, names: dict[fx.Node, str]) -> str:
    if isinstance(given, list | tuple):
        return f"({', '.join(_arguments(each, names) for each in given)})"
    if isinstance(given, fx.Node):
        if given not in names and is_constant(given):
            return f"{given.args[-1]!r}:{dtype_of(given)}"
        return names[given]
    return repr(given)


def _value(node: fx.Node) -> str:
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):  # a split
        return str(len(value))
    return f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device.type}"


def row_of(node: fx.Node, reason: str = "") -> Row:
    """The line of a product that stands alone."""
    a: Any = node.args[1 if "add" in name_of(node) else 0]
    *stack, m, n = _numbers(node)
    dtype = str(dtype_of(a)).removeprefix("torch.")
    product = "convolution" if STANDS_FOR in node.meta else name_of(node)
    return Row(node.name, product, (*stack, m, n, _numbers(a)[-1]), dtype, reason=reason)


def row_of_region(region: Region, prepared: AnyPrepared) -> Row:
    """The line of a region, before it is judged."""
    row = row_of(region.products[0].multiplies)
    row.sizes = (*region.frame, row.sizes[-1])
    if len(region.products) == 2:
        row.product = f"2 {row.product}"
    row.fused, row.stop, row.pipeline = region.fused(), region.stop, prepared.pipeline
    row.estimate = Estimate(prepared.spec, prepared.target)
    return row


class Estimate(NamedTuple):
    """Microseconds by the estimate, when it is called; None for products that it doesn't know."""

    spec: MatmulSpec
    chip: str

    def __call__(self) -> float | None:
        return _estimated_us(self.spec, self.chip)


@kept_until_changed(4096)
def _estimated_us(spec: MatmulSpec, chip: str) -> float | None:
    target = find_target(chip)
    if target.threads_multiply or spec.is_scaled:
        return None
    try:
        if is_by_lanes(spec, target):
            return lanes_us(spec, target)
        problem = Problem.of(spec, target)
        return estimate(problem, choose_schedule(spec, target), target).total_us
    except (ArithmeticError, LookupError, ValueError, TypeError, CompileError):
        return None


def _numbers(node: fx.Node) -> tuple[int | str, ...]:
    return tuple(each if type(each) is int else str(each) for each in sizes_of(node))
