"""Reading a launch file: JSON, the schema, and what its entries say about each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..bundles.name_rules import name_contradictions
from ..errors import LaunchError
from ..regular_files import UnfitFile, read_regular
from ..strict_json import parse_json
from .parameter_rules import parameter_contradictions, unread_contradictions
from .rules import quoted
from .schema import LAUNCH
from .tensor_rules import map_contradictions, tensor_contradictions

MAX_FILE_BYTES = 16 * 2**20
CURE = "docs/emulate.md has the schema"
PATH = "check the path"


def read_launch_file(path: Path) -> dict[str, Any]:
    """The launch that the file describes; raises LaunchError with the first broken rule."""
    launch = _parse(path, read_limited(path, MAX_FILE_BYTES))
    broken = LAUNCH.check(launch, "") or next(_contradictions(launch), None)
    if broken:
        raise LaunchError(f"{path}: {broken}; {CURE}")
    return launch


def read_limited(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file of at most `limit_bytes`; raises LaunchError otherwise."""
    try:
        return read_regular(path, limit_bytes)
    except UnfitFile as error:
        got = "no such file" if error.missing else error.got
    raise LaunchError(f"{path}: must be a file of at most {limit_bytes} bytes, got {got}; {PATH}")


def triple(extent: list[int]) -> tuple[int, int, int]:
    """x, y, z; missing axes are 1."""
    x, y, z = [*extent, 1, 1][:3]
    return x, y, z


def _parse(path: Path, content: bytes) -> Any:
    try:
        return parse_json(content)
    except ValueError as error:
        raise LaunchError(f"{path}: must be JSON, got {error}; {CURE}") from error


def _contradictions(launch: Mapping[str, Any]) -> Iterator[str]:
    tensors, maps = launch["tensors"], launch.get("tensor_maps", [])
    yield from _twice(tensors, "tensors")
    yield from _twice(maps, "tensor_maps")
    yield from tensor_contradictions(tensors)
    known = {tensor["name"]: tensor for tensor in tensors}
    yield from map_contradictions(maps, known)
    names = [each["name"] for each in maps]
    yield from parameter_contradictions(launch["parameters"], known, names)
    yield from _grid_contradictions(launch)
    shared, block = launch.get("shared_bytes", 0), launch["block"]
    yield from name_contradictions(launch.get("names"), shared, block, "names")
    yield from unread_contradictions(launch["parameters"], tensors, maps)


def _twice(entries: list[Any], where: str) -> Iterator[str]:
    names = [entry["name"] for entry in entries]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield f"{where}[{i}].name: must differ from {quoted(names[:i])}, got '{name}'"


def _grid_contradictions(launch: Mapping[str, Any]) -> Iterator[str]:
    cluster = launch.get("cluster", [1])
    pairs = zip(triple(launch["grid"]), triple(cluster), strict=True)
    if any(count % size for count, size in pairs):
        yield f"grid: must be a multiple of the cluster {cluster}, got {launch['grid']}"
