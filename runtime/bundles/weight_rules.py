"""Rules of a manifest for narrow weights with group scales (docs/manifest.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..element_types import DTYPES, WEIGHT_DTYPES

SCALES, ZEROS = "scales", "zeros"
KINDS = {SCALES: ("bf16", "f16", "f32"), ZEROS: ("u8",)}


def weight_contradictions(
    manifest: Mapping[str, Any], b: Mapping[str, Any], where: str
) -> Iterator[str]:
    """The scales, and zero points if there are some, are one for each group of each row of b."""
    if "weights" not in manifest:
        return
    group, (rows, columns) = manifest["weights"]["group"], b["shape"][-2:]
    tensors = {tensor["name"]: tensor for tensor in manifest["tensors"]}
    if b["dtype"] not in WEIGHT_DTYPES or len(b["shape"]) != 2:
        yield f"{where}: b must be a matrix of weights, got {b['dtype']} {b['shape']}"
        return
    k = columns * 8 // DTYPES[b["dtype"]].bits
    if k % group:
        yield f"{where}.group: must divide the {k} elements along K, got {group}"
        return
    for name, kinds in KINDS.items():
        tensor = tensors.get(name)
        if tensor is None and name == ZEROS:
            continue
        shape, dtype = (tensor["shape"], tensor["dtype"]) if tensor else (None, None)
        if shape != [rows, k // group] or dtype not in kinds:
            rule = f"'{name}' must be {', '.join(kinds)} {[rows, k // group]}"
            yield f"{where}: {rule}, got {dtype} {shape}"
