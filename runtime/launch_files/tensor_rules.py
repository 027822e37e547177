"""What the schema cannot say about tensors and tensor maps; each rule yields `path: must …`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from .element_types import ELEMENT_TYPES, ElementType
from .rules import quoted

MAX_TENSOR_BYTES = 4 * 2**30
"""All tensors of a launch together."""
EXACT_INTEGERS = (-(2**53), 2**53)
"""What a float64 holds exactly."""

Tensor = Mapping[str, Any]


def strides_of(tensor: Tensor) -> list[int]:
    """Elements between neighbours along each axis; dense row-major unless given."""
    shape = tensor["shape"]
    return tensor.get("strides") or [prod(shape[i + 1 :]) for i in range(len(shape))]


def span_of(tensor: Tensor) -> int:
    """Elements from the tensor's first one to its last one, both included."""
    pairs = zip(tensor["shape"], strides_of(tensor), strict=True)
    return 1 + sum((extent - 1) * stride for extent, stride in pairs)


def bytes_of(tensor: Tensor) -> int:
    """Bytes of memory that the tensor spans."""
    return -(-span_of(tensor) * ELEMENT_TYPES[tensor["dtype"]].bits // 8)


def tensor_contradictions(tensors: list[Tensor]) -> Iterator[str]:
    """Rules between the fields of each tensor, and the limit on all of them."""
    total = 0
    for i, tensor in enumerate(tensors):
        where = f"tensors[{i}]"
        yield from _stride_contradictions(tensor, where)
        total += bytes_of(tensor)
        if total > MAX_TENSOR_BYTES:
            rule = f"must leave all tensors within {MAX_TENSOR_BYTES} bytes"
            yield f"{where}.shape: {rule}, got {total} up to here"
        yield from _contents_contradictions(tensor, where)


def map_contradictions(
    maps: list[Mapping[str, Any]], tensors: Mapping[str, Tensor]
) -> Iterator[str]:
    """Rules between a tensor map, its tensor and its own fields."""
    for i, each in enumerate(maps):
        where, rank = f"tensor_maps[{i}]", len(each["dims"])
        if each["tensor"] not in tensors:
            yield f"{where}.tensor: must be one of {quoted(tensors)}, got '{each['tensor']}'"
            continue
        for name, length in (("strides_bytes", rank - 1), ("box", rank), ("element_strides", rank)):
            yield from _length_contradictions(each, name, length, where)
        for name in ("lower", "upper"):
            corners = each.get("im2col", {})
            yield from _length_contradictions(corners, name, rank - 2, f"{where}.im2col")


def _length_contradictions(
    entry: Mapping[str, Any], name: str, length: int, where: str
) -> Iterator[str]:
    if name in entry and len(entry[name]) != length:
        yield f"{where}.{name}: must have {length} items, got {len(entry[name])}"


def offset_contradictions(entry: Mapping[str, Any], tensor: Tensor, where: str) -> Iterator[str]:
    """An offset into a tensor must lie inside it."""
    offset, size = entry.get("offset_bytes", 0), bytes_of(tensor)
    if offset >= size:
        yield f"{where}.offset_bytes: must be below the tensor's {size} bytes, got {offset}"


def _stride_contradictions(tensor: Tensor, where: str) -> Iterator[str]:
    shape, strides = tensor["shape"], tensor.get("strides")
    if strides is None:
        return
    if len(strides) != len(shape):
        yield f"{where}.strides: must have {len(shape)} items, one an axis, got {len(strides)}"
    elif tensor["role"] != "input" and _overlaps(shape, strides):
        yield f"{where}.strides: must give each element a place of its own, got {strides}"


def _overlaps(shape: list[int], strides: list[int]) -> bool:
    reach = 0
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1 and stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


def _contents_contradictions(tensor: Tensor, where: str) -> Iterator[str]:
    contents = tensor.get("contents")
    if tensor["role"] == "output":
        if contents is not None:
            yield f"{where}.contents: must be left out for an output, got {quoted(contents)}"
    elif contents is None:
        yield f"{where}.contents: must be given for an {tensor['role']}, got none"
    else:
        kind = ELEMENT_TYPES[tensor["dtype"]]
        yield from _value_contradictions(contents, kind, f"{where}.contents")


def _value_contradictions(
    contents: Mapping[str, Any], kind: ElementType, where: str
) -> Iterator[str]:
    distribution = contents.get("distribution")
    if distribution == "normal" and ("low" in contents or "high" in contents):
        yield f"{where}: must not have 'low' or 'high' with the distribution 'normal', got them"
    if distribution in ("normal", "uniform") and kind.kind != "f":
        yield f"{where}.distribution: must be 'integers' for {kind.name}, got '{distribution}'"
    if distribution == "integers" or kind.kind != "f":
        yield from _integer_contradictions(contents, kind, where)
    low, high = bounds(contents, kind)
    if not low <= high:
        yield f"{where}.high: must be at least low, which is {low}, got {high}"


def bounds(contents: Mapping[str, Any], kind: ElementType) -> tuple[float, float]:
    """low and high of a random tensor, as given or by default."""
    integers = contents.get("distribution") == "integers"
    default = 4 if integers else 1
    low = contents.get("low", 0 if kind.kind == "u" else -default)
    return low, contents.get("high", default)


def _integer_contradictions(
    contents: Mapping[str, Any], kind: ElementType, where: str
) -> Iterator[str]:
    for name in ("low", "high", "ramp", "step", "constant"):
        value = contents.get(name, 0)
        if not isinstance(value, int):
            yield f"{where}.{name}: must be an integer here, got {value!r}"
            return
    low, high = kind.integer_range() if kind.kind != "f" else EXACT_INTEGERS
    for name in ("low", "high", "ramp", "constant"):
        if not low <= contents.get(name, 0) <= high:
            yield f"{where}.{name}: must be from {low} to {high}, got {contents[name]}"
