"""What a manifest must say of a size that a launch says: in all places the same one, or in none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .sizes import SIZE, STACK, is_dynamic, size_name, size_parameter

Tensor = Mapping[str, Any]


def size_contradictions(
    manifest: Mapping[str, Any],
    operands: Sequence[Tensor],
    outputs: Sequence[Tensor],
    where: str,
) -> Iterator[str]:
    """The size is dynamic everywhere or nowhere; in the grid along x or along y."""
    dynamic = is_dynamic(manifest)
    counted = [isinstance(extent, dict) for extent in manifest["grid"]]
    if counted[2] or sum(counted) > 1:
        yield f"{where}.grid: must have one formula, along x or y, got {manifest['grid']}"
        return
    size = size_name(manifest) if dynamic else ""
    told = [each["size"] for each in manifest["parameters"] if each["kind"] == "size"]
    if len(told) != dynamic:
        yield f"{where}.parameters: must have {int(dynamic)} of kind 'size', got {len(told)}"
    low, high = (size_parameter(manifest).get(name) for name in ("least", "most"))
    if low is not None and high is not None and low > high:
        yield f"{where}.parameters: must have least up to most of a size, got {low} and {high}"
    for name, given in _given(manifest, where):
        if given != size:
            rule = "must have numbers alone where no launch says a size"
            rule = f"must be the '{size}' of the grid" if dynamic else rule
            yield f"{name}: {rule}, got '{given}'"
    if size == STACK:
        yield from _of_stack(manifest, operands, outputs, where)
        return
    a, b = operands
    rows = [(each, dynamic) for each in (a, *outputs)]
    for tensor, wanted in (*rows, (b, False)):
        if (SIZE in tensor["shape"][-2:-1]) != wanted:
            rule = f"must {'have' if wanted else 'not have'} '{SIZE}' as its rows"
            yield f"{where}.tensors: {tensor['name']} {rule}, got {tensor['shape']}"


def _given(manifest: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Every place that names a size, and the name."""
    for number, parameter in enumerate(manifest["parameters"]):
        place = f"{where}.parameters[{number}]"
        if parameter["kind"] == "size":
            yield place, parameter["size"]
        names = [each["size"] for each in parameter.get("box", ()) if isinstance(each, dict)]
        names += [each for each in parameter.get("dims", ()) if isinstance(each, str)]
        yield from ((place, name) for name in names)
    for tensor in manifest["tensors"]:
        names = [each for each in tensor["shape"] if isinstance(each, str)]
        yield from ((f"{where}.tensors: {tensor['name']}", name) for name in names)


def _of_stack(
    manifest: Mapping[str, Any],
    operands: Sequence[Tensor],
    outputs: Sequence[Tensor],
    where: str,
) -> Iterator[str]:
    """Outputs are stacks of that many matrices, and every stack is: by its first dim, or not."""
    formula = next(each for each in manifest["grid"] if isinstance(each, dict))
    if not isinstance(manifest["grid"][0], dict) or formula["rows"] != 1:
        yield f"{where}.grid: must count each of a batch along x, got {manifest['grid']}"
    for tensor in manifest["tensors"]:
        shape = tensor["shape"]
        if STACK in shape[1:]:
            rule = f"must have '{STACK}' as its first dim alone"
            yield f"{where}.tensors: {tensor['name']} {rule}, got {shape}"
    for tensor in (*operands, *outputs):
        shape, is_output = tensor["shape"], tensor["role"] == "output"
        if (shape[:1] == [STACK]) != (len(shape) == 3) or (is_output and len(shape) != 3):
            rule = f"must be a stack of '{STACK}' matrices" + ("" if is_output else ", or a matrix")
            yield f"{where}.tensors: {tensor['name']} {rule}, got {shape}"
