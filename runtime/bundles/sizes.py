"""A manifest of a kernel whose M or batch a launch says: as it stands, and as it is for one.

In such a manifest the size is a name, "m" or "batch", where the manifest of one size has a number:
in shapes of tensors, in dims of tensor maps, in the grid (`grid_of`), and as a parameter of the
kernel. With the number in its place the manifest is one of a kernel for that size alone
(`manifest_for`), and whatever reads manifests reads it so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..element_types import ITEM_BYTES
from .manifest_rules import ADDRESSES_BYTES, workspaces

SIZE, STACK = "m", "batch"
SIZES = (SIZE, STACK)
"""The sizes that a launch may say, one of them."""
CALLED = {SIZE: "M", STACK: "the batch"}
REACH = 2**31
"""Rows that tiles may name, those of whole clusters behind the last row included."""
TILES_MOST = 2**30
"""Tiles of all matrices of a stack, which are counted in 32 bits with a step behind the last."""
ROWS_OF_GRID = 65_535  # CTAs along y that a GPU launches


def is_dynamic(manifest: Mapping[str, Any]) -> bool:
    """Whether a launch says a size."""
    return any(isinstance(extent, dict) for extent in manifest["grid"])


def formula_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """How many CTAs there are along x or y, by the size that a launch says."""
    return next(extent for extent in manifest["grid"] if isinstance(extent, dict))


def size_name(manifest: Mapping[str, Any]) -> str:
    """Which size a launch says, of a manifest that leaves one open: "m" or "batch"."""
    return formula_of(manifest)["size"]


def most_rows(manifest: Mapping[str, Any]) -> int:
    """The largest M, or batch, that a kernel of any takes: its tensors lie in an address space."""
    size = size_name(manifest)
    steps = [
        each["strides"][each["shape"].index(size)] * ITEM_BYTES[each["dtype"]]
        for each in manifest["tensors"]
        if size in each["shape"]
    ]
    formula, within = formula_of(manifest), ADDRESSES_BYTES // max(1, *steps)
    if size == STACK:
        ctas = formula["clusters"] * formula["ctas"]
        return max(1, min(TILES_MOST // (ctas * manifest["grid"][1]), within))
    reach = min(REACH - 2 * formula["rows"], within)
    if manifest["grid"][1] is formula:
        reach = min(reach, ROWS_OF_GRID // formula["ctas"] * formula["rows"])
    return min(reach, size_parameter(manifest).get("most", reach))


def least_rows(manifest: Mapping[str, Any]) -> int:
    """The fewest rows, or matrices, that a kernel of any takes."""
    return size_parameter(manifest).get("least", 1)


def sizes_to_check(manifest: Mapping[str, Any]) -> list[int]:
    """The least size, the most, and one between them of more than a tile or a matrix."""
    least, most = least_rows(manifest), most_rows(manifest)
    between = formula_of(manifest)["rows"] + 1
    return sorted({least, min(max(least, between), most), most})


def size_parameter(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameter by which a launch says the size."""
    return next((each for each in manifest["parameters"] if each["kind"] == "size"), {})


def grid_of(formula: Mapping[str, Any], m: int) -> int:
    """CTAs along x or y for M rows: `ctas` for each of the clusters, `most` clusters at most.

    There are as many clusters as hold `rows` rows each, `clusters` times as many where N is walked
    by the same ones. Of a batch `rows` is 1, and each matrix has `clusters`.
    """
    clusters = -(-m // formula["rows"]) * formula["clusters"]
    return min(clusters, formula.get("most", clusters)) * formula["ctas"]


def manifest_for(manifest: Mapping[str, Any], m: int) -> dict[str, Any]:
    """The manifest of the kernel for one size; the same hashes, those of what was read."""
    grid = [grid_of(e, m) if isinstance(e, dict) else e for e in manifest["grid"]]
    tensors = [{**each, "shape": _numbers(each["shape"], m)} for each in manifest["tensors"]]
    parameters = [_parameter(each, m) for each in manifest["parameters"]]
    one = {**manifest, "grid": grid, "tensors": tensors, "parameters": parameters}
    return one | {"workspace_bytes": sum(size for size, _ in workspaces(one))}


def size_of(tensors: Sequence[Mapping[str, Any]], shapes: Sequence[Sequence[int]]) -> int | None:
    """The size as the first tensor says it that has a dynamic extent; None where its rank is
    another."""
    for declared, shape in zip(tensors, shapes, strict=True):
        axis = dynamic_axis(declared)
        if axis is not None and len(shape) == len(declared["shape"]):
            return shape[axis]
    return None


def dynamic_axis(declared: Mapping[str, Any]) -> int | None:
    """The dim of a tensor that a launch says, None where all are known."""
    found = (axis for axis, size in enumerate(declared["shape"]) if isinstance(size, str))
    return next(found, None)


def _numbers(extents: Sequence[int | str], m: int) -> list[int]:
    return [m if isinstance(extent, str) else extent for extent in extents]


def _parameter(declared: Mapping[str, Any], m: int) -> Mapping[str, Any]:
    if declared["kind"] == "size":
        return {**declared, "value": m}
    if declared["kind"] == "tensor_map":
        box = [min(m, e["most"]) if isinstance(e, dict) else e for e in declared["box"]]
        return {**declared, "dims": _numbers(declared["dims"], m), "box": box}
    return declared
