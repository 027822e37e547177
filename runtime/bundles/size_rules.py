"""Rules for sizes of a manifest that are known only at launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .sizes import (
    DEPTH,
    OF_GRID,
    SIZE,
    STACK,
    formula_of,
    has_open_grid,
    multiple_of,
    size_names,
    size_parameter,
)

Tensor = Mapping[str, Any]


def size_contradictions(
    manifest: Mapping[str, Any],
    operands: Sequence[Tensor],
    outputs: Sequence[Tensor],
    where: str,
) -> Iterator[str]:
    """A size is dynamic everywhere or nowhere; in the grid along x or along y, unless it is K."""
    counted = [isinstance(extent, dict) for extent in manifest["grid"]]
    if counted[2] or sum(counted) > 1:
        yield f"{where}.grid: must have one formula, along x or y, got {manifest['grid']}"
        return
    wanted = _wanted(manifest, operands, outputs)
    stated = list(size_names(manifest))
    if stated != wanted:
        rule, got = f"must have {len(wanted)} of kind 'size'", f"{len(stated)}"
        if len(stated) == len(wanted):
            rule, got = f"must be the {_named(wanted)} of {_where(wanted)}", _named(stated)
        yield f"{where}.parameters: {rule}, got {got}"
        return
    low, high = (size_parameter(manifest).get(name) for name in ("least", "most"))
    if low is not None and high is not None and low > high:
        yield f"{where}.parameters: must have least up to most of a size, got {low} and {high}"
    if any("multiple" in each and each["size"] != SIZE for each in _sizes(manifest)):
        yield f"{where}.parameters: must have multiple of the size '{SIZE}' alone"
    multiple = multiple_of(manifest)
    if high is not None and high // multiple * multiple < (low or 1):
        yield f"{where}.parameters: must have a multiple of {multiple} from least to most of a size"
    for name, given in _given(manifest, where):
        if given not in wanted:
            rule = "must have numbers alone where no launch says a size"
            rule = f"must be the {_named(wanted)} of {_where(wanted)}" if wanted else rule
            yield f"{name}: {rule}, got '{given}'"
    if DEPTH in wanted:
        yield from _of_depth(manifest, operands, wanted, where)
    elif wanted:
        yield from _of_grid(manifest, wanted, where)
    if STACK in wanted:
        yield from _of_stack(manifest, operands, outputs, where)
    a, b = operands
    for tensor, has_rows in (*((each, SIZE in wanted) for each in (a, *outputs)), (b, False)):
        if (SIZE in tensor["shape"][-2:-1]) != has_rows:
            rule = f"must {'have' if has_rows else 'not have'} '{SIZE}' as its rows"
            yield f"{where}.tensors: {tensor['name']} {rule}, got {tensor['shape']}"
    yield from _of_steps(manifest, a, where)


def _sizes(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in manifest["parameters"] if each["kind"] == "size"]


def _named(sizes: list[str]) -> str:
    return " and ".join(map(repr, sizes))


def _where(sizes: list[str]) -> str:
    return "the operands" if DEPTH in sizes else "the grid"


def _wanted(
    manifest: Mapping[str, Any], operands: Sequence[Tensor], outputs: Sequence[Tensor]
) -> list[str]:
    """The sizes that the first output has, if the grid has a formula, and the K of operands."""
    depth = [DEPTH] if any(DEPTH in each["shape"] for each in operands) else []
    if not has_open_grid(manifest):
        return depth
    formula, shape = formula_of(manifest), outputs[0]["shape"]
    named = formula["size"], formula.get("times")
    return [name for name in OF_GRID if name in named or name in shape] + depth


def _of_depth(
    manifest: Mapping[str, Any], operands: Sequence[Tensor], sizes: list[str], where: str
) -> Iterator[str]:
    """K is that of both operands and of nothing else, and no other size is dynamic beside it."""
    if sizes != [DEPTH]:
        yield f"{where}.parameters: must have '{DEPTH}' alone, got {_named(sizes)}"
    names = [each["name"] for each in operands]
    for tensor in manifest["tensors"]:
        places = [at for at, each in enumerate(tensor["shape"]) if each == DEPTH]
        if places != ([1] if tensor["name"] in names else []):
            rule = f"must have '{DEPTH}' as the columns of both operands alone"
            yield f"{where}.tensors: {tensor['name']} {rule}, got {tensor['shape']}"


def _of_grid(manifest: Mapping[str, Any], sizes: list[str], where: str) -> Iterator[str]:
    """Rows are counted along x or y, and matrices along x, each with the tiles of its rows."""
    formula = formula_of(manifest)
    of_both = formula.get("times") == STACK
    if of_both and (formula["size"], sizes) != (SIZE, list(OF_GRID)):
        yield f"{where}.grid: must be of '{SIZE}' times '{STACK}', got {manifest['grid']}"
    by_matrix = STACK in sizes and not of_both
    if by_matrix and (formula["size"] != STACK or formula["rows"] != 1):
        yield f"{where}.grid: must count each of a batch along x, got {manifest['grid']}"
    elif STACK in sizes and manifest["grid"][0] is not formula:
        yield f"{where}.grid: must count each of a batch along x, got {manifest['grid']}"


def _of_steps(manifest: Mapping[str, Any], a: Tensor, where: str) -> Iterator[str]:
    """The step between matrices of any M, and along K where M is contiguous in a, is so many for
    each row, in a tensor and in its map."""
    rule = "must have a step for each row between matrices of any M, or along the columns of an a"
    rule += " that has M contiguous, and nowhere else"
    transposed = _is_long_as_m(a)
    for tensor in manifest["tensors"]:
        steps, both = tensor["strides"], tensor["shape"][:2] == [STACK, SIZE]
        wanted = [both, *(False for _ in steps[1:])][: len(steps)]
        if transposed and tensor is a:
            wanted[-1] = True
        if [isinstance(each, dict) for each in steps] != wanted:
            yield f"{where}.tensors: {tensor['name']} {rule}, got {steps}"
    for number, parameter in enumerate(manifest["parameters"]):
        dims, steps = parameter.get("dims", ()), parameter.get("strides_bytes", ())
        wanted = [False for _ in steps]
        if wanted and transposed and parameter["tensor"] == a["name"]:
            wanted[0] = True
        if STACK in dims and SIZE in dims:
            wanted[-1] = True
        if [isinstance(each, dict) for each in steps] != wanted:
            place = f"{where}.parameters[{number}].strides_bytes"
            yield f"{place}: {rule}, got {steps}"


def _is_long_as_m(a: Tensor) -> bool:
    """Whether a has M contiguous, so that its rows in memory are as long as a launch says."""
    has_rows = a["shape"][-2:-1] == [SIZE]
    return has_rows and a["strides"][-2:-1] == [1] and isinstance(a["strides"][-1], dict)


def _given(manifest: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Every place that names a size, and the name."""
    for number, parameter in enumerate(manifest["parameters"]):
        place = f"{where}.parameters[{number}]"
        places = [*parameter.get("box", ()), *parameter.get("strides_bytes", ())]
        names = [each["size"] for each in places if isinstance(each, dict)]
        names += [each for each in parameter.get("dims", ()) if isinstance(each, str)]
        yield from ((place, name) for name in names)
    for tensor in manifest["tensors"]:
        names = [each for each in tensor["shape"] if isinstance(each, str)]
        names += [each["size"] for each in tensor["strides"] if isinstance(each, dict)]
        yield from ((f"{where}.tensors: {tensor['name']}", name) for name in names)


def _of_stack(
    manifest: Mapping[str, Any],
    operands: Sequence[Tensor],
    outputs: Sequence[Tensor],
    where: str,
) -> Iterator[str]:
    """Outputs are stacks of that many matrices, and every stack is: by its first dim, or not."""
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
