"""Which parts of a bundle's tensors its kernel must write or read completely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bundles.manifest import k_of, offsets_of, operands, outputs, rows_of, second_b
from ..bundles.weight_rules import KINDS
from ..group_sizes import ORDER
from ..operands.tensors import BoundTensor

ATOM = (32, 4, 4)
"""The last dimensions of blocked scales: an atom of 128 rows and 4 blocks."""
BLOCK = 128
"""Elements of K that share a scale in f32."""
Bound = Mapping[str, BoundTensor]


def written_whole(manifest: Mapping[str, Any], bound: Bound) -> list[np.ndarray]:
    """What the kernel writes all of: outputs, but for the rows past the last group, and for
    groups that an order leaves out."""
    results = [_elements(bound[each["name"]]) for each in outputs(manifest)]
    if ORDER in bound and not _names_each(bound[ORDER].memory):
        return []
    if offsets_of(manifest) is None or results[0].ndim == 3:  # groups of K have a matrix each
        return results
    ends = _ends(manifest, bound)
    return [] if ends is None else [each[: ends[-1]] for each in results]


def read_whole(manifest: Mapping[str, Any], bound: Bound) -> list[np.ndarray]:
    """What the kernel reads all of: operands and their scales; where rows are grouped, the rows up
    to the last group's end, unless they are gathered, and weights of groups that have rows."""
    a, *weights = (
        _elements(bound[each["name"]]) for each in (*operands(manifest), second_b(manifest)) if each
    )
    if offsets_of(manifest) is None:
        return [a, *weights, *_scales(manifest, bound)]
    ends = _ends(manifest, bound)
    if len(outputs(manifest)[0]["shape"]) == 3 or ends is None:
        return []
    filled = np.diff(ends, prepend=0) > 0
    rows = [] if rows_of(manifest) else [a[: ends[-1]]]
    if filled.all():
        return [*rows, *weights]
    return [*rows, *(each[group] for each in weights for group in np.flatnonzero(filled))]


def _scales(manifest: Mapping[str, Any], bound: Bound) -> list[np.ndarray]:
    """Of blocked scales the first of each atom, as others may be padding; of those of 128x128 what
    lies before the end of K; else all."""
    forms = manifest.get("blockwise", {})
    needed = []
    for operand, name in zip(operands(manifest), "ab", strict=True):
        if f"{name}_scales" in bound:
            scales = _elements(bound[f"{name}_scales"])
            if scales.shape[-3:] == ATOM:
                scales = scales[..., :1, :1, :1]
            elif forms.get(name) == "128x128":
                scales = scales[..., : -(-k_of(operand) // BLOCK)]
            needed.append(scales)
    of_weights = KINDS if "weights" in manifest else ()
    return [*needed, *(_elements(bound[name]) for name in of_weights if name in bound)]


def _ends(manifest: Mapping[str, Any], bound: Bound) -> np.ndarray | None:
    """Where each group of rows ends; None where one ends before the one before it, or too late."""
    offsets = offsets_of(manifest)
    assert offsets is not None
    ends = _elements(bound[offsets["name"]]).view(np.int32)
    rows = outputs(manifest)[0]["shape"][0]
    return None if np.any(np.diff(ends, prepend=0) < 0) or ends[-1] > rows else ends


def _names_each(order: np.ndarray) -> bool:
    """Whether an order of groups names each; a number that is too large counts as the last one."""
    return len(np.unique(np.minimum(order, order.size - 1))) == order.size


def _elements(tensor: BoundTensor) -> np.ndarray:
    """A tensor's elements, as raw bits, without the gaps between them."""
    item, declared = tensor.memory.itemsize, tensor.declared
    strides = [step * item for step in declared["strides"]]
    return np.lib.stride_tricks.as_strided(tensor.memory, declared["shape"], strides)
