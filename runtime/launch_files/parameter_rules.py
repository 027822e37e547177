"""What the schema cannot say about parameters; each rule yields `path: must …`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .element_types import SCALAR_TYPES
from .rules import quoted
from .tensor_rules import Tensor, offset_contradictions

POINTER_BYTES = 8
TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGN = 64

Parameter = Mapping[str, Any]


def size_of(parameter: Parameter) -> int:
    """Bytes of a parameter or of a struct's field."""
    if any(kind in parameter for kind in ("pointer", "tensor_map_array", "pointer_array")):
        return POINTER_BYTES
    if "tensor_map" in parameter:
        return TENSOR_MAP_BYTES
    if "scalar" in parameter:
        return SCALAR_TYPES[parameter["type"]].bits // 8
    return parameter["size_bytes"] if "struct" in parameter else len(parameter["hex"]) // 2


def parameter_contradictions(
    parameters: list[Parameter], tensors: Mapping[str, Tensor], maps: list[str]
) -> Iterator[str]:
    """Rules between the parameters, the tensors they name and their own fields."""
    for i, parameter in enumerate(parameters):
        where = f"parameters[{i}]"
        yield from _value_contradictions(parameter, tensors, maps, where)
        for j, field in enumerate(parameter.get("struct", ())):
            yield from _value_contradictions(field, tensors, maps, f"{where}.struct[{j}]")
        if "struct" in parameter:
            yield from _struct_contradictions(parameter, where)


def unread_contradictions(
    parameters: list[Parameter], tensors: list[Tensor], maps: list[Mapping[str, Any]]
) -> Iterator[str]:
    """Each map is in a parameter, and each tensor there or under a map: nothing reads another."""
    held = [each for one in parameters for each in (one, *one.get("struct", ()))]
    mapped = _named(held, "tensor_map", "tensor_map_array")
    pointed = _named(held, "pointer", "pointer_array") | {each["tensor"] for each in maps}
    for where, entries, read in (("tensors", tensors, pointed), ("tensor_maps", maps, mapped)):
        for i, each in enumerate(entries):
            if each["name"] not in read:
                yield f"{where}[{i}].name: must be in a parameter, got '{each['name']}' in none"


def _named(parameters: list[Parameter], one: str, several: str) -> set[str]:
    """What parameters of these two kinds name."""
    alone = {each[one] for each in parameters if one in each}
    return alone | {name for each in parameters for name in each.get(several, ())}


def _value_contradictions(
    parameter: Parameter, tensors: Mapping[str, Tensor], maps: list[str], where: str
) -> Iterator[str]:
    known = {"pointer": list(tensors), "tensor_map": maps}
    for kind, names in known.items():
        if kind in parameter and parameter[kind] not in names:
            yield f"{where}.{kind}: must be one of {quoted(names)}, got '{parameter[kind]}'"
            return
    for kind, names in {"tensor_map_array": maps, "pointer_array": list(tensors)}.items():
        for j, name in enumerate(parameter.get(kind, ())):
            if name not in names:
                yield f"{where}.{kind}[{j}]: must be one of {quoted(names)}, got '{name}'"
    if "pointer" in parameter:
        yield from offset_contradictions(parameter, tensors[parameter["pointer"]], where)
    if "scalar" in parameter:
        yield from _scalar_contradictions(parameter, where)


def _scalar_contradictions(parameter: Parameter, where: str) -> Iterator[str]:
    kind, value = SCALAR_TYPES[parameter["type"]], parameter["scalar"]
    if kind.kind == "f":
        return
    low, high = kind.integer_range()
    if not isinstance(value, int) or not low <= value <= high:
        rule = f"must be an integer from {low} to {high} for {kind.name}"
        yield f"{where}.scalar: {rule}, got {value!r}"


def _struct_contradictions(parameter: Parameter, where: str) -> Iterator[str]:
    taken: list[tuple[int, int]] = []
    for j, field in enumerate(parameter["struct"]):
        start, end = field["at"], field["at"] + size_of(field)
        place = f"{where}.struct[{j}].at"
        if end > parameter["size_bytes"]:
            rule = f"must leave the field within {parameter['size_bytes']} bytes"
            yield f"{place}: {rule}, got {start} for {end - start} bytes"
        if any(start < other_end and other < end for other, other_end in taken):
            yield f"{place}: must not overlap an earlier field, got {start}"
        if "tensor_map" in field and start % TENSOR_MAP_ALIGN:
            yield f"{place}: must be a multiple of {TENSOR_MAP_ALIGN} for a map, got {start}"
        taken.append((start, end))
