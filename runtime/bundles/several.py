"""A bundle of several kernels, each for some numbers of rows or matrices, that compute the same.

    manifest.json       {"format", "schema": 5, "size": "m", "kernels": [{"least", "most"}, …],
                         "ranges": [{"least", "kernel"}, …], "hashes"}
    m17.manifest.json   the manifest of the kernel from 17 rows on, as that of a bundle of its own
    m17.kernel.ptx, m17.kernel.cubin

Every number of rows has one kernel. A range goes up to where the next one begins, and a kernel may
have several of them, from its `least` to its `most`. In schema 4 there are no `ranges`: each kernel
has one, from where the one before it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .manifest import FORMAT, BundleError, recompiled
from .manifest_fields import MANIFEST_NAME
from .schema import Integer, ListOf, OneOf, Record, Text
from .sizes import SIZE, SIZES, STACK, is_dynamic, size_name, size_parameter

SCHEMA_OF_SEVERAL = 4
SCHEMA_OF_RANGES = 5
KERNELS_MAX = 32
RANGES_MAX = 512
ROWS_MOST = 2**31 - 1
ALIKE = ("target", "tensors", "epilogue", "outputs", "arguments", "math")
_ROWS = Integer(1, ROWS_MOST)
_FIELDS = {
    "format": OneOf((FORMAT,)),
    "schema": OneOf((SCHEMA_OF_SEVERAL, SCHEMA_OF_RANGES)),
    "size": OneOf(SIZES),
    "kernels": ListOf(Record({"least": _ROWS, "most": _ROWS}), 2, KERNELS_MAX),
    "hashes": Record({MANIFEST_NAME: Text()}),
}
_RANGE = Record({"least": _ROWS, "kernel": Integer(0, KERNELS_MAX - 1)})
_HEADS = {
    SCHEMA_OF_SEVERAL: Record(_FIELDS),
    SCHEMA_OF_RANGES: Record(_FIELDS | {"ranges": ListOf(_RANGE, 2, RANGES_MAX)}),
}
Ranges = tuple[tuple[int, int], ...]
"""Where each range of rows begins, and the number of its kernel; it ends where the next begins."""


def is_of_several(manifest: Any) -> bool:
    """Whether a manifest says that its bundle holds several kernels."""
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    return type(schema) is int and schema in _HEADS


def prefix_of(manifest: Mapping[str, Any], kernel: Mapping[str, int]) -> str:
    """What the names of the files of one of a manifest's kernels begin with."""
    return f"{manifest['size']}{kernel['least']}."


def ranges_of(kernels: Sequence[Iterable[tuple[int, int]]]) -> Ranges:
    """The ranges in order, of those that each kernel has, from the least to the most rows."""
    found = [(least, number) for number, own in enumerate(kernels) for least, _ in own]
    return tuple(sorted(found))


def told_ranges(manifest: Mapping[str, Any]) -> Ranges:
    """The ranges that a manifest of several kernels says."""
    if manifest["schema"] == SCHEMA_OF_RANGES:
        return tuple((each["least"], each["kernel"]) for each in manifest["ranges"])
    return tuple((each["least"], number) for number, each in enumerate(manifest["kernels"]))


def describe(manifests: Sequence[Mapping[str, Any]], ranges: Ranges) -> dict[str, Any]:
    """What a manifest of several kernels says of them, whose manifests are sealed."""
    size, spans = size_name(manifests[0]), _spans(ranges, len(manifests))
    kernels = [
        {name: size_parameter(each).get(name, ROWS_MOST) for name in ("least", "most")}
        for each in manifests
    ]
    if size == STACK:  # no kernel knows which it is for
        kernels = [{"least": own[0][0], "most": own[-1][1]} for own in spans]
    told: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA_OF_SEVERAL}
    told |= {"size": size, "kernels": kernels}
    hashes = {
        prefix_of(told, kernel) + MANIFEST_NAME: each["hashes"][MANIFEST_NAME]
        for kernel, each in zip(kernels, manifests, strict=True)
    }
    if ranges != told_ranges(told):
        told["schema"] = SCHEMA_OF_RANGES
        told["ranges"] = [{"least": least, "kernel": number} for least, number in ranges]
    return told | {"hashes": hashes}


def _spans(ranges: Ranges, kernels: int) -> list[list[tuple[int, int]]]:
    """The first and the last row of each range, for each kernel."""
    ends = [*(least - 1 for least, _ in ranges[1:]), ROWS_MOST]
    pairs = list(zip(ranges, ends, strict=True))
    return [
        [(least, most) for (least, each), most in pairs if each == number]
        for number in range(kernels)
    ]


def validate_several(manifest: Any, where: str) -> dict[str, Any]:
    """Return the manifest if it obeys its schema; raises BundleError with the first broken rule."""
    broken = _HEADS[manifest["schema"]].check(manifest, where)
    broken = broken or next(_contradictions(manifest, where), None)
    if broken:
        raise BundleError(recompiled(broken))
    return manifest


def check_together(
    manifest: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]], where: str
) -> None:
    """Refuse kernels that are for other rows than told, or compute something else."""
    for kernel, each in zip(manifest["kernels"], manifests, strict=True):
        told, size = (kernel["least"], kernel["most"]), size_parameter(each)
        if not is_dynamic(each) or size_name(each) != manifest["size"]:
            rule = f"{where}.size: must be what launches of its kernels say"
            raise BundleError(recompiled(f"{rule}, got '{manifest['size']}'"))
        got = size.get("least"), size.get("most")
        if told != got and manifest["size"] == SIZE:
            rule = f"{where}.kernels: must be of {told[0]} to {told[1]} rows as the kernel is"
            raise BundleError(recompiled(f"{rule}, got {got[0]} to {got[1]}"))
        for name in ALIKE:
            if each.get(name) != manifests[0].get(name):
                rule = f"{where}.kernels: all must have the same {name}"
                raise BundleError(recompiled(f"{rule}, got another from {kernel['least']} rows on"))


def _contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    kernels = manifest["kernels"]
    for kernel in kernels:
        if kernel["least"] > kernel["most"]:
            got = f"{kernel['least']} to {kernel['most']}"
            yield f"{where}.kernels: must be for some rows each, got {got}"
    has_ranges = manifest["schema"] == SCHEMA_OF_RANGES
    yield from _uneven(manifest, where) if has_ranges else _gaps(kernels, where)
    for kernel in kernels:
        name = prefix_of(manifest, kernel) + MANIFEST_NAME
        broken = Record({name: Text()}).check(manifest["hashes"], f"{where}.hashes")
        if broken:
            yield broken


def _gaps(kernels: Sequence[Mapping[str, int]], where: str) -> Iterator[str]:
    ends = [{"most": 0}, *kernels, {"least": ROWS_MOST + 1}]
    for before, kernel in pairwise(ends):
        if kernel["least"] != before["most"] + 1:
            rule = f"must go on from {before['most'] + 1} rows"
            yield f"{where}.kernels: {rule}, got {kernel['least']}"


def _uneven(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """Ranges in order from one row on, and kernels in the order of their first ones, whose rows
    those of each are."""
    kernels, ranges = manifest["kernels"], told_ranges(manifest)
    if ranges[0][0] != 1:
        yield f"{where}.ranges: must begin with 1 row, got {ranges[0][0]}"
    for (before, _), (least, _) in pairwise(ranges):
        if least <= before:
            yield f"{where}.ranges: must begin in order, got {least} behind {before}"
    order = list(dict.fromkeys(number for _, number in ranges))
    if order != list(range(len(kernels))):
        rule = f"must name each of {len(kernels)} kernels, in the order of their first ranges"
        yield f"{where}.ranges: {rule}, got {', '.join(map(str, order))}"
    spans = _spans(ranges, len(kernels))
    for number, (kernel, own) in enumerate(zip(kernels, spans, strict=True)):
        told, got = (kernel["least"], kernel["most"]), (own[0][0], own[-1][1])
        if told != got:
            rule = f"must be {told[0]} to {told[1]} for kernel {number}, as the kernel is"
            yield f"{where}.ranges: {rule}, got {got[0]} to {got[1]}"
