"""Counts of a large launch from two of its clusters, where that is exact.

It is exact where every cluster has tiles of its own, all of them whole: then each does the same to
other addresses, which start where a line starts. The first and the last cluster are run, and must
agree in every count. What the tensors have in bytes is what HBM moves: all of it is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from ...compiler.schedule.chips.ceilings import HBM
from ...dialects.errors import CompileError
from ...runtime.bundles.bundle import Bundle
from ...runtime.bundles.manifest import columns_of, output
from ...runtime.element_types import torch_dtype
from ...runtime.emulator.observe.global_requests import LINE
from ...runtime.launch.devices import open_device
from .model import Counts, counts_of


def scaled_counts(
    name: str, bundle: Bundle, tensors: Mapping[str, Any], how: dict[str, Any]
) -> Counts:
    """The counts of the whole launch; CompileError where its clusters may differ."""
    manifest = bundle.manifest
    reason = why_not(manifest)
    if reason is not None:
        raise CompileError(f"{name}: --scale: {reason}; leave it out")
    clusters = [n // c for n, c in zip(manifest["grid"], manifest["cluster"], strict=True)]
    ends = (0, 0, 0), tuple(count - 1 for count in clusters)
    device, ctas = open_device("emulator"), prod(manifest["grid"])
    parts = []
    for cluster in ends:
        report = device.launch(bundle, tensors, 0, only=[cluster], **how)
        parts.append(counts_of(name, manifest["target"], ctas, report.profile))
    if parts[0] != parts[1]:
        raise CompileError(f"{name}: --scale: clusters must do the same, got two that do not")
    return _times(parts[0], prod(clusters), _tensor_bytes(manifest))


def why_not(manifest: Mapping[str, Any]) -> str | None:
    """Why the clusters of a kernel may do different amounts of work, None where they cannot."""
    schedule, cluster = manifest["schedule"], manifest["cluster"]
    if schedule["scheduler"] != "none":
        return f"tiles must not be handed out to CTAs that go on, got {schedule['scheduler']}"
    if "preferred_cluster" in manifest:
        return f"all clusters must have one shape, got {cluster} and a preferred one"
    *_, rows, _ = output(manifest)["shape"]
    sizes = rows, columns_of(output(manifest))
    extents = zip("MN", sizes, schedule["tile"], cluster, strict=False)
    for axis, extent, tile, ctas in extents:
        if extent % (tile * ctas):
            return f"{axis} must be a multiple of {tile * ctas}, got {extent}"
    for tensor in manifest["tensors"]:
        size = torch_dtype(tensor["dtype"]).itemsize
        if any(stride != 1 and stride * size % LINE for stride in tensor["strides"]):
            return f"rows of {tensor['name']} must be a multiple of {LINE} bytes"
    return None


def _tensor_bytes(manifest: Mapping[str, Any]) -> int:
    sizes = (
        torch_dtype(each["dtype"]).itemsize * prod(each["shape"]) for each in manifest["tensors"]
    )
    return sum(sizes)


def _times(one: Counts, clusters: int, tensor_bytes: int) -> Counts:
    operations = {key: clusters * count for key, count in one.operations.items()}
    asked, moved = (
        {level: clusters * amount for level, amount in each.items()} | {HBM: tensor_bytes}
        for each in (one.asked, one.moved)
    )
    return Counts(one.name, one.target, one.ctas, operations, asked, moved)
