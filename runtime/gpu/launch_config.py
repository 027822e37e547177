"""The CUlaunchConfig of a manifest: extents, shared memory, cluster, dependent launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPENDENT_LAUNCH = "programmatic_dependent_launch"


def waits_by_itself(manifest: Mapping[str, Any]) -> bool:
    """Whether a kernel waits for the grids before it, so that it may start before they end."""
    return manifest["schedule"].get(DEPENDENT_LAUNCH, False)


def launch_config(
    api: Any, manifest: Mapping[str, Any], stream: int, dependent: bool = True
) -> Any:
    """What cuLaunchKernelEx takes besides the function and its parameters.

    A cluster of one CTA gets no attribute, unless a larger one is preferred. Programmatic stream
    serialization is set only for kernels that wait for the grids before them by themselves
    (docs/manifest.md, "schedule"), and where the launch is to be `dependent`; elsewhere such a
    kernel's wait returns at once.
    """
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = manifest["grid"]
    config.blockDimX, config.blockDimY, config.blockDimZ = manifest["block"]
    config.sharedMemBytes = manifest["dynamic_shared_bytes"]
    config.hStream = stream
    attributes = []
    if manifest["cluster"] != [1, 1, 1] or "preferred_cluster" in manifest:
        attributes.append(_cluster(api, manifest["cluster"]))
    if "preferred_cluster" in manifest:
        attributes.append(_preferred(api, manifest["preferred_cluster"]))
    if dependent and waits_by_itself(manifest):
        attributes.append(_dependent(api))
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


def describe(manifest: Mapping[str, Any]) -> str:
    """The launch in a few words, for errors."""
    names = ("grid", "cluster", "preferred_cluster", "block")
    shown = [(name, "x".join(map(str, manifest[name]))) for name in names if name in manifest]
    extents = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in shown)
    return f"it was {extents}, {manifest['dynamic_shared_bytes']} shared bytes"


def _cluster(api: Any, cluster: list[int]) -> Any:
    return _of_extents(api, "CLUSTER_DIMENSION", "clusterDim", cluster)


def _preferred(api: Any, cluster: list[int]) -> Any:
    """A larger cluster, where there is room for it (CUDA 12.8)."""
    return _of_extents(api, "PREFERRED_CLUSTER_DIMENSION", "preferredClusterDim", cluster)


def _of_extents(api: Any, name: str, field: str, cluster: list[int]) -> Any:
    attribute = api.CUlaunchAttribute()
    attribute.id = getattr(api.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    extents = getattr(attribute.value, field)
    extents.x, extents.y, extents.z = cluster
    return attribute


def _dependent(api: Any) -> Any:
    attribute = api.CUlaunchAttribute()
    ids = api.CUlaunchAttributeID
    attribute.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    return attribute
