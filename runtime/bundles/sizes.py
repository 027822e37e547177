"""A manifest of a kernel whose M or batch, or both, or K a launch says: as it stands, and for one
call.

In such a manifest a size is a name, "m", "batch" or "k", where the manifest of known sizes has a
number: in shapes of tensors, in dims of tensor maps, in the grid (`grid_of`) unless it is K, and as
a parameter of the kernel; steps between matrices of any M are so many for each row, as are those
along K where M is contiguous. With numbers in
these places the manifest is one of a kernel for those sizes alone (`manifest_for`), and whatever
reads manifests reads it so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..element_types import ITEM_BYTES
from ..errors import LaunchError
from ..group_sizes import FAR, OFFSETS
from .manifest_rules import ADDRESSES_BYTES, workspaces

SIZE, STACK, DEPTH = "m", "batch", "k"
SIZES = (SIZE, STACK, DEPTH)
"""The sizes that a launch may say, in the order in which it says them; K comes alone."""
OF_GRID = (SIZE, STACK)
"""Those of C, which a grid has."""
CALLED = {SIZE: "M", STACK: "the batch", DEPTH: "K"}
DEPTH_MOST = 2**30
"""The largest K: steps along it are counted in 32 bits, those ahead of it too."""
REACH = 2**31
"""Rows that tiles may name, those of whole clusters behind the last row included."""
TILES_MOST = 2**30
"""Tiles of all matrices of a stack, which are counted in 32 bits with a step behind the last."""
BETWEEN = 64  # of K, of a step
ROWS_OF_GRID = 65_535  # CTAs along y that a GPU launches

Sizes = Mapping[str, int]
"""The sizes of a call by their names."""


def is_dynamic(manifest: Mapping[str, Any]) -> bool:
    """Whether a launch says a size."""
    return bool(size_names(manifest)) or has_open_grid(manifest)


def has_open_grid(manifest: Mapping[str, Any]) -> bool:
    """Whether a launch says a size of the grid."""
    return any(isinstance(extent, dict) for extent in manifest["grid"])


def formula_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """How many CTAs there are along x or y, by the sizes that a launch says."""
    return next(extent for extent in manifest["grid"] if isinstance(extent, dict))


def size_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Which sizes a launch says, in their order."""
    return tuple(each["size"] for each in manifest["parameters"] if each["kind"] == "size")


def size_name(manifest: Mapping[str, Any]) -> str:
    """The first of them, by which several kernels share the calls."""
    return size_names(manifest)[0]


def named(manifest: Mapping[str, Any], values: Sequence[int]) -> dict[str, int]:
    """The sizes of a call by their names, of values in the order of those."""
    names = size_names(manifest)
    if len(values) != len(names) or any(type(each) is not int for each in values):
        rule = f"must be an int for {' and '.join(CALLED[name] for name in names)}"
        raise LaunchError(f"kernel {manifest['entry']}: sizes {rule}, got {[*values]}")
    return dict(zip(names, values, strict=True))


def most_rows(manifest: Mapping[str, Any], others: Sizes | None = None, size: str = "") -> int:
    """The largest size, the first one unless named, beside others, of which there is one unless
    told: its tensors lie in an address space, and its tiles can be counted."""
    size = size or size_name(manifest)
    rest = dict.fromkeys(size_names(manifest), 1) | dict(others or {})
    found = _most_rows(manifest, size, rest)
    if size == SIZE and any(each["name"] == OFFSETS for each in manifest["tensors"]):
        found = min(found, FAR)  # where maps of groups end
    return found - found % multiple_of(manifest) if size == SIZE else found


def _most_rows(manifest: Mapping[str, Any], size: str, rest: Sizes) -> int:
    """The same, whatever it is a multiple of."""
    within = ADDRESSES_BYTES // max(1, *_steps(manifest, size, rest))
    if size == DEPTH:
        return min(DEPTH_MOST, within)
    formula = formula_of(manifest)
    if size == STACK:
        along_y = manifest["grid"][1]
        tiles = grid_of({**formula, "most": REACH}, {**rest, STACK: 1}) * along_y
        return max(1, min(TILES_MOST // tiles, within))
    within = min(within, size_parameter(manifest).get("most", within))
    if formula["size"] != SIZE:
        return min(REACH - 1, within)
    reach = min(REACH - 2 * formula["rows"] - formula.get("spare", 0), within)
    if manifest["grid"][1] is formula:
        within_grid = ROWS_OF_GRID // formula["ctas"] * formula["rows"] - formula.get("spare", 0)
        return min(reach, within_grid)
    if "times" in formula:
        tiles = rest[STACK] * formula["clusters"] * formula["ctas"] * manifest["grid"][1]
        reach = min(reach, TILES_MOST // tiles * formula["rows"])
    return reach


def _steps(manifest: Mapping[str, Any], size: str, sizes: Sizes) -> list[int]:
    """Bytes by which one more of a size is further on in each tensor."""
    found = []
    for each in manifest["tensors"]:
        strides = _strides(each["strides"], sizes)
        if size in each["shape"]:
            axis = each["shape"].index(size)
            step = strides[axis]
            if size == SIZE and len(each["shape"]) > 1 and STACK in each["shape"]:
                step *= sizes[STACK]
            if size == SIZE and isinstance(each["strides"][-1], dict):  # so long are rows along K
                step *= each["shape"][-1]
            found.append(step * ITEM_BYTES[each["dtype"]])
    return found


def least_rows(manifest: Mapping[str, Any]) -> int:
    """The fewest rows, or matrices, that a kernel of any takes."""
    multiple = multiple_of(manifest)
    return -(-size_parameter(manifest).get("least", 1) // multiple) * multiple


def multiple_of(manifest: Mapping[str, Any]) -> int:
    """The number of which the rows of a launch are a multiple."""
    return size_parameter(manifest).get("multiple", 1)


def refusal(manifest: Mapping[str, Any], sizes: Sizes) -> str | None:
    """Why a kernel of any size takes none of a call's, or None where it takes them."""
    for name in size_names(manifest):
        least = least_rows(manifest) if name == SIZE else 1
        known = sizes if name == STACK else {}
        most = most_rows(manifest, known, name)
        if not least <= sizes[name] <= most:
            cure = "multiply in parts" if sizes[name] > most else "pass more"
            beside = f" of M = {sizes[SIZE]}" if name == STACK and SIZE in sizes else ""
            rule = f"{CALLED[name]}{beside} must be {least} to {most}"
            return f"{rule}, got {sizes[name]}; {cure}"
    multiple = multiple_of(manifest)
    if SIZE in sizes and sizes[SIZE] % multiple:
        rule = f"M must be a multiple of {multiple}"
        return f"{rule}, got {sizes[SIZE]}; take a kernel for any M, or give a with K contiguous"
    return None


def sizes_to_check(manifest: Mapping[str, Any]) -> list[dict[str, int]]:
    """The least size, the most, and one between them of more than a tile or a matrix; beside an M
    the least batch, one of several matrices, and the most."""
    first, *others = size_names(manifest)
    least, most = least_rows(manifest), most_rows(manifest)
    between = (formula_of(manifest)["rows"] if has_open_grid(manifest) else BETWEEN) + 1
    between -= between % multiple_of(manifest) if first == SIZE else 0
    found = [{first: each} for each in sorted({least, min(max(least, between), most), most})]
    for name in others:
        found = [
            {**each, name: count}
            for each, most in [(each, most_rows(manifest, each, name)) for each in found]
            for count in sorted({1, min(3, most), most})
        ]
    return found


def size_parameter(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameter by which a launch says the first size."""
    return next((each for each in manifest["parameters"] if each["kind"] == "size"), {})


def grid_of(formula: Mapping[str, Any], sizes: Sizes) -> int:
    """CTAs along x or y: `ctas` for each of the clusters, `most` clusters at most.

    There are as many clusters as hold `rows` rows each, and `spare` rows more where rows are in
    groups, `clusters` times as many where N is walked by the same ones, and as many for each of the
    `times`. Of a batch `rows` is 1, and each matrix has `clusters`.
    """
    counted = sizes[formula["size"]] + formula.get("spare", 0)
    clusters = -(-counted // formula["rows"]) * formula["clusters"]
    clusters *= sizes[formula["times"]] if "times" in formula else 1
    return min(clusters, formula.get("most", clusters)) * formula["ctas"]


def manifest_for(manifest: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """The manifest of the kernel for the sizes of a call; the hashes are those of what was read."""
    grid = [grid_of(e, sizes) if isinstance(e, dict) else e for e in manifest["grid"]]
    tensors = [tensor_for(each, sizes) for each in manifest["tensors"]]
    parameters = [_parameter(each, sizes) for each in manifest["parameters"]]
    one = {**manifest, "grid": grid, "tensors": tensors, "parameters": parameters}
    return one | {"workspace_bytes": sum(size for size, _ in workspaces(one))}


def tensor_for(declared: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """A tensor with numbers for its sizes, which may be symbols."""
    shape, strides = _numbers(declared["shape"], sizes), _strides(declared["strides"], sizes)
    return {**declared, "shape": shape, "strides": strides}


def dynamic_axis(declared: Mapping[str, Any], size: str) -> int | None:
    """The dim of a tensor that has a size of a launch, None where none has."""
    found = (axis for axis, each in enumerate(declared["shape"]) if each == size)
    return next(found, None)


def _numbers(extents: Sequence[int | str], sizes: Mapping[str, Any]) -> list[Any]:
    return [sizes[extent] if isinstance(extent, str) else extent for extent in extents]


def _strides(strides: Sequence[Any], sizes: Mapping[str, Any]) -> list[Any]:
    """Steps, of which one may be so many for each row."""
    return [
        each["times"] * sizes[each["size"]] if isinstance(each, dict) else each for each in strides
    ]


def _up_to(each: Any, sizes: Sizes) -> int:
    """An extent of a box: as many rows as there are, up to those of a tile."""
    if isinstance(each, dict):
        return min(sizes[each["size"]], each["most"])
    return each


def _parameter(declared: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
    if declared["kind"] == "size":
        return {**declared, "value": sizes[declared["size"]]}
    if declared["kind"] == "tensor_map":
        box = [_up_to(each, sizes) for each in declared["box"]]
        strides = _strides(declared["strides_bytes"], sizes)
        dims = _numbers(declared["dims"], sizes)
        return {**declared, "dims": dims, "strides_bytes": strides, "box": box}
    return declared
