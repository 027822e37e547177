"""Checks that redundant records of a manifest agree.

The spec and the schedule are for people, and no launch needs them. But who has changed only one of
the two has a kernel that is not what the bundle says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..element_types import DTYPES, ITEM_BYTES

Tensor = Mapping[str, Any]


def spec_contradictions(
    spec: Mapping[str, Any] | None,
    operands: Sequence[Tensor],
    output: Tensor,
    sizes: Mapping[str, int | str],
    where: str,
) -> Iterator[str]:
    """Sizes and types of the spec are those of the tensors; `sizes` are m, n and k as these have
    them, names where a launch says them. Threads multiply a tf32 as the f32 that lies in memory."""
    if not spec:
        return
    for name, size in sizes.items():
        if isinstance(size, int) and (got := spec.get(name)) != size:
            yield f"{where}.{name}: must be the {size} of the tensors, got {got!r:.60}"
    for name, tensor in zip("abc", (*operands, output), strict=True):
        dtype = spec.get(f"{name}_dtype", "")
        if not isinstance(dtype, str):
            yield f"{where}.{name}_dtype: must be a text, got {dtype!r:.60}"
        elif dtype in ITEM_BYTES and tensor["dtype"] not in (dtype, DTYPES[dtype].mlir):
            yield f"{where}.{name}_dtype: must be the tensor's {tensor['dtype']}, got '{dtype}'"


def order_contradictions(
    parameters: Sequence[Mapping[str, Any]], tensors: Sequence[Tensor], where: str
) -> Iterator[str]:
    """A kernel's parameters stand in the order of the tensors, each of which it takes."""
    names = [tensor["name"] for tensor in tensors]
    used = [each["tensor"] for each in parameters if "tensor" in each]
    known = [name for name in used if name in names]
    if missing := [name for name in names if name not in known]:
        yield f"{where}: must take each tensor, got none that takes '{missing[0]}'"
    elif known != sorted(known, key=names.index):
        yield f"{where}: must be in the order of the tensors, {names}, got {known}"


def swizzle_contradictions(
    schedule: Mapping[str, Any],
    parameters: Sequence[Mapping[str, Any]],
    operands: Sequence[Tensor],
    where: str,
) -> Iterator[str]:
    """Tensor maps of a and b swizzle as the schedule says of their tiles."""
    swizzles = schedule.get("swizzle")
    if not (isinstance(swizzles, list) and len(swizzles) == 2):
        return
    pairs = zip(operands, reversed(swizzles) if schedule.get("swapped") else swizzles, strict=True)
    wanted = {tensor["name"]: swizzle for tensor, swizzle in pairs}
    for i, each in enumerate(parameters):
        if each["kind"] != "tensor_map" or each["tensor"] not in wanted:
            continue
        swizzle = wanted[each["tensor"]]
        if each["swizzle"] != swizzle:
            rule = f"must be the schedule's {swizzle!r:.60}"
            yield f"{where}[{i}].swizzle: {rule}, got '{each['swizzle']}'"
