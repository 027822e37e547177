"""A bundle of several kernels, each for some numbers of rows, that compute the same.

    manifest.json       {"format", "schema": 4, "size": "m", "kernels": [{"least", "most"}, …],
                         "hashes"}
    m17.manifest.json   the manifest of the kernel from 17 rows on, as that of a bundle of its own
    m17.kernel.ptx, m17.kernel.cubin

Every number of rows has one kernel: the first is from one row on, each next one from where the one
before it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .manifest import FORMAT, BundleError, recompiled
from .manifest_fields import MANIFEST_NAME
from .schema import Integer, ListOf, OneOf, Record, Text
from .sizes import SIZE, size_parameter

SCHEMA_OF_SEVERAL = 4
KERNELS_MAX = 16
ROWS_MOST = 2**31 - 1
ALIKE = ("target", "tensors", "epilogue", "outputs", "arguments", "math")
_ROWS = Integer(1, ROWS_MOST)
_HEAD = Record(
    {
        "format": OneOf((FORMAT,)),
        "schema": OneOf((SCHEMA_OF_SEVERAL,)),
        "size": OneOf((SIZE,)),
        "kernels": ListOf(Record({"least": _ROWS, "most": _ROWS}), 2, KERNELS_MAX),
        "hashes": Record({MANIFEST_NAME: Text()}),
    }
)


def is_of_several(manifest: Any) -> bool:
    """Whether a manifest says that its bundle holds several kernels."""
    return isinstance(manifest, dict) and manifest.get("schema") == SCHEMA_OF_SEVERAL


def prefix_of(kernel: Mapping[str, int]) -> str:
    """What the names of a kernel's files begin with."""
    return f"{SIZE}{kernel['least']}."


def describe(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a manifest of several kernels says of them, whose manifests are sealed."""
    kernels = [
        {name: size_parameter(each).get(name, ROWS_MOST) for name in ("least", "most")}
        for each in manifests
    ]
    hashes = {
        prefix_of(kernel) + MANIFEST_NAME: each["hashes"][MANIFEST_NAME]
        for kernel, each in zip(kernels, manifests, strict=True)
    }
    head = {"format": FORMAT, "schema": SCHEMA_OF_SEVERAL, "size": SIZE}
    return {**head, "kernels": kernels, "hashes": hashes}


def validate_several(manifest: Any, where: str) -> dict[str, Any]:
    """Return the manifest if it obeys its schema; raises BundleError with the first broken rule."""
    broken = _HEAD.check(manifest, where) or next(_contradictions(manifest, where), None)
    if broken:
        raise BundleError(recompiled(broken))
    return manifest


def check_together(
    manifest: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]], where: str
) -> None:
    """Refuse kernels that are for other rows than told, or compute something else."""
    for kernel, each in zip(manifest["kernels"], manifests, strict=True):
        told, size = (kernel["least"], kernel["most"]), size_parameter(each)
        got = size.get("least"), size.get("most")
        if told != got:
            rule = f"{where}.kernels: must be of {told[0]} to {told[1]} rows as the kernel is"
            raise BundleError(recompiled(f"{rule}, got {got[0]} to {got[1]}"))
        for name in ALIKE:
            if each.get(name) != manifests[0].get(name):
                rule = f"{where}.kernels: all must have the same {name}"
                raise BundleError(recompiled(f"{rule}, got another from {kernel['least']} rows on"))


def _contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    kernels = manifest["kernels"]
    ends = [{"most": 0}, *kernels, {"least": ROWS_MOST + 1}]
    for before, kernel in pairwise(ends):
        if kernel["least"] != before["most"] + 1:
            rule = f"must go on from {before['most'] + 1} rows"
            yield f"{where}.kernels: {rule}, got {kernel['least']}"
    for kernel in kernels:
        if kernel["least"] > kernel["most"]:
            got = f"{kernel['least']} to {kernel['most']}"
            yield f"{where}.kernels: must be for some rows each, got {got}"
    for kernel in kernels:
        name = prefix_of(kernel) + MANIFEST_NAME
        broken = Record({name: Text()}).check(manifest["hashes"], f"{where}.hashes")
        if broken:
            yield broken
