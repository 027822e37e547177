"""Checks that a launch file fits the kernel: each rule yields `path: must …, got …`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from ..emulator.ptx.layout import MAX_SHARED_BYTES, variable_alignment
from ..emulator.ptx.program import Program
from ..emulator.ptx.syntax import Variable
from .description import triple
from .parameter_rules import TENSOR_MAP_ALIGN, size_of

MAX_CLUSTER = 16
MAX_THREADS = 1024
MAX_EXTENTS = {"grid": (2**31 - 1, 65_535, 65_535), "block": (1024, 1024, 64)}


def misfits(launch: Mapping[str, Any], program: Program) -> Iterator[str]:
    """Every entry that does not fit; PTX ISA §11.4 for the directives of the kernel."""
    yield from _extents(launch)
    yield from _block(launch, program.function.directives)
    yield from _cluster(launch, program.function.directives)
    yield from _preferred(launch, program.function.directives)
    yield from _shared(launch, program)
    yield from _parameters(launch, program)


def _extents(launch: Mapping[str, Any]) -> Iterator[str]:
    for name, limits in MAX_EXTENTS.items():
        for i, (count, limit) in enumerate(zip(launch[name], limits, strict=False)):
            if count > limit:
                yield f"{name}[{i}]: must be at most {limit}, got {count}"
    if prod(launch["block"]) > MAX_THREADS:
        yield f"block: must be at most {MAX_THREADS} threads, got {prod(launch['block'])}"
    for name in ("cluster", "preferred_cluster"):
        ctas = prod(launch.get(name, [1]))
        if ctas > MAX_CLUSTER:
            yield f"{name}: must be at most {MAX_CLUSTER} CTAs, got {ctas}"


def _block(launch: Mapping[str, Any], directives: Mapping[str, Any]) -> Iterator[str]:
    block = triple(launch["block"])
    if "reqntid" in directives:
        required = triple(list(directives["reqntid"]))
        if block != required:
            yield f"block: must be {list(required)} (.reqntid), got {list(block)}"
    if "maxntid" in directives and prod(block) > prod(directives["maxntid"]):
        most = prod(directives["maxntid"])
        yield f"block: must be at most {most} threads (.maxntid), got {prod(block)}"


def _cluster(launch: Mapping[str, Any], directives: Mapping[str, Any]) -> Iterator[str]:
    asked, grid = triple(launch.get("cluster", [1])), triple(launch["grid"])
    if not directives.get("reqnctapercluster"):
        return
    required = triple(list(directives["reqnctapercluster"]))
    if "cluster" in launch and asked != required:
        yield f"cluster: must be {list(required)} (.reqnctapercluster), got {list(asked)}"
    if any(count % size for count, size in zip(grid, required, strict=True)):
        rule = f"must be a multiple of the cluster {list(required)} (.reqnctapercluster)"
        yield f"grid: {rule}, got {list(grid)}"


def _preferred(launch: Mapping[str, Any], directives: Mapping[str, Any]) -> Iterator[str]:
    """CUDA driver API, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION."""
    if "preferred_cluster" not in launch:
        return
    preferred, cluster = launch["preferred_cluster"], launch.get("cluster", [1])
    if directives.get("reqnctapercluster"):
        yield f"preferred_cluster: must be left out (.reqnctapercluster), got {preferred}"
    if any(map(int.__mod__, triple(preferred), triple(cluster))):
        yield f"preferred_cluster: must be a multiple of the cluster {cluster}, got {preferred}"
    if any(map(int.__mod__, triple(launch["grid"]), triple(preferred))):
        yield f"grid: must be a multiple of the preferred {preferred}, got {launch['grid']}"


def _shared(launch: Mapping[str, Any], program: Program) -> Iterator[str]:
    static, dynamic = program.shared.static_bytes, launch.get("shared_bytes", 0)
    most = MAX_SHARED_BYTES - static
    if dynamic > most:
        yield f"shared_bytes: must be at most {most} beside {static} static bytes, got {dynamic}"


def _parameters(launch: Mapping[str, Any], program: Program) -> Iterator[str]:
    given, expected = launch["parameters"], program.parameter_sizes()
    if len(given) != len(expected):
        names = ", ".join(variable.name for variable, _, _ in expected) or "none"
        rule = f"must have {len(expected)} items for kernel {program.entry} ({names})"
        yield f"parameters: {rule}, got {len(given)}"
        return
    for i, (parameter, (variable, _, size)) in enumerate(zip(given, expected, strict=True)):
        where = f"parameters[{i}]"
        if size_of(parameter) != size:
            rule = f"must be {size} bytes for {variable.name}"
            yield f"{where}: {rule}, got {size_of(parameter)} ({_kind(parameter)})"
        yield from _map_alignment(parameter, variable, where)


def _map_alignment(parameter: Mapping[str, Any], variable: Variable, where: str) -> Iterator[str]:
    held = [parameter, *parameter.get("struct", ())]
    align = variable_alignment(variable)
    if align % TENSOR_MAP_ALIGN and any("tensor_map" in each for each in held):
        rule = f"must go to a parameter with .align {TENSOR_MAP_ALIGN}, as it has a tensor map"
        yield f"{where}: {rule}, got .align {align} of {variable.name}"


def _kind(parameter: Mapping[str, Any]) -> str:
    if "scalar" in parameter:
        return parameter["type"]
    kinds = ("pointer", "tensor_map", "tensor_map_array", "pointer_array", "hex", "struct")
    return next(kind for kind in kinds if kind in parameter)
