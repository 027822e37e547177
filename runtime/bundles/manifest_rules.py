"""Rules between the parts of a manifest, so that its launch is sound.

Each rule yields `where: must …, got …`. Nothing is asked of fields that a reader may miss, nor of
epilogue operations that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from ..element_types import DTYPES, ITEM_BYTES, PADDED_TYPES
from ..group_sizes import OFFSETS, is_ragged, tiles_of_groups
from ..math_policies import CIRCULAR, LOGARITHMS

# CUDA C++ Programming Guide, table of technical specifications per compute capability (9.0, 10.0).
EXTENTS = {
    "grid": (2**31 - 1, 65_535, 65_535),
    "block": (1024, 1024, 64),
    **dict.fromkeys(("cluster", "preferred_cluster"), (16, 16, 16)),
}
MOST_THREADS, MOST_CLUSTER = 1024, 16
SHARED_BYTES = 227 * 2**10
ADDRESSES_BYTES = 2**47
# cuTensorMapEncodeTiled (CUDA driver API): globalStrides, boxDim and swizzle.
UNIT_BYTES = 16
SWIZZLE_BYTES = {"32B": 32, "64B": 64, "128B": 128}
NARROWER = ("bf16", "f16", "f32", "e4m3", "e5m2")
# How many operands the operations of an epilogue take (docs/manifest.md).
OPERANDS = {
    **dict.fromkeys(("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.addi"), 2),
    **dict.fromkeys(("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"), 2),
    **dict.fromkeys(("arith.negf", "arith.truncf", "arith.extf", "arith.sitofp"), 1),
    **dict.fromkeys(("math.absf", "math.erf", "math.exp", "math.exp2", "math.tanh"), 1),
    **dict.fromkeys(("math.sqrt", "math.rsqrt", *CIRCULAR, *LOGARITHMS), 1),
    **dict.fromkeys(("math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc"), 1),
    "arith.constant": 0,
    "arith.cmpf": 2,
    "arith.select": 3,
    "math.fma": 3,
}


def launch_contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """Extents and shared memory that a GPU can have, and whether the grid covers the output."""
    for name, limits in EXTENTS.items():
        for i, (extent, most) in enumerate(zip(manifest.get(name, ()), limits, strict=False)):
            if extent > most:
                yield f"{where}.{name}[{i}]: must be at most {most}, got {extent}"
    most_of = {"block": MOST_THREADS, "cluster": MOST_CLUSTER, "preferred_cluster": MOST_CLUSTER}
    for name, most in most_of.items():
        if prod(manifest.get(name, ())) > most:
            yield f"{where}.{name}: must have a product of at most {most}, got {manifest[name]}"
    grid, cluster = manifest["grid"], largest_cluster(manifest)
    if any(map(int.__mod__, cluster, manifest["cluster"])):
        rule = f"must be a multiple of the cluster {manifest['cluster']}"
        yield f"{where}.preferred_cluster: {rule}, got {cluster}"
    if any(extent % size for extent, size in zip(grid, cluster, strict=True)):
        yield f"{where}.grid: must be a multiple of the cluster {cluster}, got {grid}"
    shared = manifest["dynamic_shared_bytes"] + manifest["resources"]["static_shared_bytes"]
    if shared > SHARED_BYTES:
        rule = f"must be at most {SHARED_BYTES} with static shared memory"
        yield f"{where}.dynamic_shared_bytes: {rule}, got {shared}"
    yield from _grid_contradictions(manifest, f"{where}.grid")


def largest_cluster(manifest: Mapping[str, Any]) -> Sequence[int]:
    """CTAs along x, y and z of the cluster of which the grid is whole ones."""
    return manifest.get("preferred_cluster", manifest["cluster"])


def _grid_contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """A CTA for each tile, or, where CTAs take tiles at a stride, one row of clusters."""
    schedule, grid, cluster = manifest["schedule"], manifest["grid"], largest_cluster(manifest)
    tile, scheduler = schedule.get("tile"), schedule.get("scheduler")
    if not _are_sizes(tile) or scheduler not in ("none", "static", "clc"):
        return
    c = next(tensor for tensor in manifest["tensors"] if tensor["role"] == "output")
    bits = min(8, DTYPES[c["dtype"]].bits)  # an array of packed elements is of bytes
    sizes = [*c["shape"][:-1], c["shape"][-1] * 8 // bits]
    if schedule.get("swapped"):  # a tile's rows are columns of the output
        sizes[-2:] = sizes[:-3:-1]
    tiles = [-(-size // extent) for size, extent in zip(sizes[-2:], tile, strict=False)]
    whole = [-(-count // size) * size for count, size in zip(tiles, cluster, strict=False)]
    whole[0] *= prod(sizes[:-2])
    parts = schedule.get("split_k") if schedule.get("split_k_over") == "grid" else cluster[2]
    of_rows = [t["shape"] for t in manifest["tensors"] if t["name"] == OFFSETS and len(sizes) == 2]
    for offsets in of_rows:
        axis = int(bool(schedule.get("swapped")))  # along which rows lie
        whole[axis] = tiles_of_groups(sizes[axis], prod(offsets), tile[axis], cluster[axis])
    if scheduler != "static" and grid != [*whole, parts]:
        rule = f"must be {[*whole, parts]}, a CTA for each tile of {tile[:2]}"
        yield f"{where}: {rule} of an output of {sizes}, got {grid}"
    if scheduler == "static" and (grid[1:] != cluster[1:] or prod(grid) > prod(whole)):
        yield f"{where}: must be one row of clusters for at most {prod(whole)} tiles, got {grid}"


def workspaces(manifest: Mapping[str, Any]) -> list[tuple[int, bool]]:
    """(bytes, whether they must be 0 when it starts) of each workspace of a kernel's launch.

    There is one of so many bytes for each place along x and y of the grid.
    """
    stated = [each for each in manifest["parameters"] if each["kind"] == "workspace"]
    counted = any(isinstance(extent, dict) for extent in manifest["grid"])
    tiles = 1 if counted else prod(manifest["grid"][:2])
    return [(tiles * each["tile_bytes"], each["start"] == "zero") for each in stated]


def workspace_contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """All of them are as large as the manifest says."""
    needed = sum(size for size, _ in workspaces(manifest))
    if manifest["workspace_bytes"] != needed:
        rule = f"must be the {needed} of the parameters"
        yield f"{where}.workspace_bytes: {rule}, got {manifest['workspace_bytes']}"


def _are_sizes(tile: Any) -> bool:
    return (
        isinstance(tile, list)
        and len(tile) == 3
        and all(type(extent) is int and extent > 0 for extent in tile)
    )


def memory_contradictions(tensors: Sequence[Mapping[str, Any]], where: str) -> Iterator[str]:
    """Tensors that memory can hold, their elements apart, and those of a vector side by side."""
    for i, tensor in enumerate(tensors):
        if (size := span_bytes(tensor)) > ADDRESSES_BYTES:
            yield f"{where}[{i}]: must span at most {ADDRESSES_BYTES} bytes, got {size}"
        if _overlaps(tensor):
            rule = "must have strides that keep elements apart"
            yield f"{where}[{i}]: {rule}, got {tensor['strides']} for {tensor['shape']}"
        elif len(tensor["shape"]) == 1 and tensor["shape"][0] > 1 and tensor["strides"] != [1]:
            yield f"{where}[{i}].strides: must be [1] of a vector, got {tensor['strides']}"


def span_bytes(tensor: Mapping[str, Any]) -> int:
    """Bytes from a tensor's first element to the end of its last one."""
    steps = zip(tensor["shape"], tensor["strides"], strict=True)
    elements = 1 + sum((extent - 1) * stride for extent, stride in steps)
    return elements * ITEM_BYTES[tensor["dtype"]]


def _overlaps(tensor: Mapping[str, Any]) -> bool:
    """Whether a step along one axis is no longer than all that the axes of shorter steps reach."""
    reached = 1
    for stride, extent in sorted(zip(tensor["strides"], tensor["shape"], strict=True)):
        if extent > 1:
            if stride < reached:
                return True
            reached += (extent - 1) * stride
    return False


def map_contradictions(
    declared: Mapping[str, Any], tensor: Mapping[str, Any], where: str
) -> Iterator[str]:
    """A tensor map that shows the tensor's own bytes, as the driver takes it."""
    item_bytes = ITEM_BYTES.get(declared["dtype"], 1)
    if item_bytes != ITEM_BYTES[tensor["dtype"]]:
        wanted = f"as wide as the tensor's {tensor['dtype']}"
        yield f"{where}.dtype: must be {wanted}, got '{declared['dtype']}'"
    if any(stride % UNIT_BYTES for stride in declared["strides_bytes"]):
        rule = f"must be multiples of {UNIT_BYTES}"
        yield f"{where}.strides_bytes: {rule}, got {declared['strides_bytes']}"
    inner = declared["box"][0] * item_bytes
    most = SWIZZLE_BYTES.get(declared["swizzle"], inner)
    if inner % UNIT_BYTES or inner > most:
        rule = f"must have rows of a multiple of {UNIT_BYTES} bytes, at most {most}"
        yield f"{where}.box: {rule} for swizzle '{declared['swizzle']}', got {inner}"
    dims, strides = declared["dims"], declared["strides_bytes"]
    if is_ragged(dims, strides) and len(tensor["shape"]) > 1:  # it shows all rows of the tensor
        inner = 1 if tensor["strides"][-1] == 1 else 0
        dims, strides = [dims[0], tensor["shape"][-1 - inner], *dims[2:-2]], strides[:-2]
    first, *others = dims
    row_bytes = first * PADDED_TYPES.get(declared["dtype"], 8 * item_bytes) // 8
    steps = zip(others, strides, strict=True)
    reach = row_bytes + sum((extent - 1) * stride for extent, stride in steps)
    if reach != span_bytes(tensor):
        rule = f"must reach over the {span_bytes(tensor)} bytes of tensor '{tensor['name']}'"
        yield f"{where}: {rule}, got {reach}"


def pointer_contradictions(declared: Mapping[str, Any], where: str) -> Iterator[str]:
    """An alignment is a power of two."""
    alignment = declared["alignment_bytes"]
    if alignment & (alignment - 1):
        yield f"{where}.alignment_bytes: must be a power of two, got {alignment}"


def operation_contradictions(operation: Mapping[str, Any], where: str) -> Iterator[str]:
    """Contradictions in an operation: its number of operands, and attributes that it must have."""
    name, attributes = operation["name"], operation["attributes"]
    wanted, got = OPERANDS.get(name), len(operation["operands"])
    if wanted is not None and got != wanted:
        yield f"{where}.operands: must be {wanted} of {name}, got {got}"
    value = attributes.get("value")
    if name == "arith.constant" and not isinstance(value, int | float):
        yield f"{where}.attributes.value: must be a number, got {value!r:.60}"
    if name == "arith.truncf" and attributes.get("type") not in NARROWER:
        got_type = attributes.get("type")
        yield f"{where}.attributes.type: must be bf16 or f16, got {got_type!r:.60}"
