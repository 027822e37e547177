"""A bundle of several kernels, each for some numbers of rows, matrices or elements along K, that
compute the same.

    manifest.json       {"format", "schema": 5, "size": "m", "kernels": [{"least", "most"}, …],
                         "ranges": [{"least", "kernel"}, …], "hashes"}
    m17.manifest.json   the manifest of the kernel from 17 rows on, as that of a bundle of its own
    m17.kernel.ptx, m17.kernel.cubin

Every number of rows has one kernel. A range goes up to where the next one begins, and a kernel may
have several of them, from its `least` to its `most`. In schema 4 there are no `ranges`: each kernel
has one, from where the one before it ends.

In schema 6 numbers of matrices have bands, each with ranges of rows of its own: "bands": [{"least",
"ranges"}, …]. There the names of a kernel's files begin with its number.

In schema 7 there are bands for rows that are multiples of a number, and bands for all others:
"bands": [{"least", "multiple", "ranges"}, …]. Rows have the bands of the largest multiple that they
are. So kernels can rely on the alignment of an A with M contiguous where it has one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from .manifest import FORMAT, BundleError, recompiled
from .manifest_fields import MANIFEST_NAME
from .schema import Integer, ListOf, OneOf, Record, Text
from .sizes import (
    OF_GRID,
    SIZE,
    SIZES,
    is_dynamic,
    multiple_of,
    size_name,
    size_names,
    size_parameter,
)

SCHEMA_OF_SEVERAL = 4
SCHEMA_OF_RANGES = 5
SCHEMA_OF_BANDS = 6
SCHEMA_OF_MULTIPLES = 7
IN_BANDS = (SCHEMA_OF_BANDS, SCHEMA_OF_MULTIPLES)
KERNELS_MAX = 64
RANGES_MAX = 512
BANDS_MAX = 64
ROWS_MOST = 2**31 - 1
ALIKE = ("target", "tensors", "epilogue", "outputs", "arguments", "math")
_ROWS = Integer(1, ROWS_MOST)
_FIELDS = {
    "format": OneOf((FORMAT,)),
    "schema": OneOf((SCHEMA_OF_SEVERAL, SCHEMA_OF_RANGES, *IN_BANDS)),
    "size": OneOf(SIZES),
    "kernels": ListOf(Record({"least": _ROWS, "most": _ROWS}), 2, KERNELS_MAX),
    "hashes": Record({MANIFEST_NAME: Text()}),
}
_RANGE = Record({"least": _ROWS, "kernel": Integer(0, KERNELS_MAX - 1)})
_RANGES = ListOf(_RANGE, 2, RANGES_MAX)
_BAND = Record({"least": _ROWS, "ranges": ListOf(_RANGE, 1, RANGES_MAX)})
_MULTIPLE = Integer(1, 256)
_BAND_OF_MULTIPLES = Record(
    {"least": _ROWS, "multiple": _MULTIPLE, "ranges": ListOf(_RANGE, 1, RANGES_MAX)}
)
_HEADS = {
    SCHEMA_OF_SEVERAL: Record(_FIELDS),
    SCHEMA_OF_RANGES: Record(_FIELDS | {"ranges": _RANGES}),
    SCHEMA_OF_BANDS: Record(
        _FIELDS | {"size": OneOf((SIZE,)), "bands": ListOf(_BAND, 2, BANDS_MAX)}
    ),
    SCHEMA_OF_MULTIPLES: Record(
        _FIELDS | {"size": OneOf((SIZE,)), "bands": ListOf(_BAND_OF_MULTIPLES, 2, BANDS_MAX)}
    ),
}
Ranges = tuple[tuple[int, int], ...]
"""Where each range of rows begins, and the number of its kernel; it ends where the next begins."""
Band = tuple[int, Ranges] | tuple[int, Ranges, int]
Bands = tuple[Band, ...]
"""Where each band of matrices begins, its ranges, and of which number their rows are multiples if
not of any; one band is for any number of matrices."""


def is_of_several(manifest: Any) -> bool:
    """Whether a manifest says that its bundle holds several kernels."""
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    return type(schema) is int and schema in _HEADS


def prefix_of(manifest: Mapping[str, Any], number: int) -> str:
    """What the names of the files of one of a manifest's kernels begin with."""
    if manifest["schema"] in IN_BANDS:
        return f"{number}."
    return f"{manifest['size']}{manifest['kernels'][number]['least']}."


def prefixes_of(manifest: Mapping[str, Any]) -> list[str]:
    """The same of each kernel."""
    return [prefix_of(manifest, number) for number in range(len(manifest["kernels"]))]


def bands_of(kernels: Sequence[Iterable[tuple[int, ...]]], multiples: Sequence[int] = ()) -> Bands:
    """The ranges in order, of those that each kernel has, from the least to the most rows; behind
    these there may be the fewest and the most matrices of a band.

    multiples: of which number the rows of each kernel are multiples, 0 or 1 for any.
    """
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, own in enumerate(kernels):
        multiple = max(1, multiples[number]) if multiples else 1
        for least, _, *matrices in own:
            band = -multiple, matrices[0] if matrices else 1
            found.setdefault(band, []).append((least, number))
    return tuple(
        _band(fewest, tuple(sorted(ranges)), -multiple)
        for (multiple, fewest), ranges in sorted(found.items())
    )


def _band(fewest: int, ranges: Ranges, multiple: int) -> Band:
    return (fewest, ranges, multiple) if multiple > 1 else (fewest, ranges)


def multiple_of_band(band: Band) -> int:
    """The number of which the rows of a band are a multiple."""
    return band[2] if len(band) > 2 else 1


def by_multiples(bands: Bands) -> list[tuple[int, Bands]]:
    """The bands of the rows that are multiples of each number, the largest number first."""
    runs = groupby(bands, key=multiple_of_band)
    return [(multiple, tuple(own)) for multiple, own in runs]


def number_of(bands: Bands, rows: int, matrices: int = 1) -> int:
    """The number of the kernel for so many rows, of so many matrices."""
    fitting = (own for multiple, own in by_multiples(bands) if rows % multiple == 0)
    found = next(fitting, bands)
    band = bisect_right(found, matrices, key=lambda each: each[0]) - 1
    ranges = found[max(0, band)][1]
    return ranges[max(0, bisect_right(ranges, rows, key=lambda each: each[0]) - 1)][1]


def bands_in(manifest: Mapping[str, Any]) -> Bands:
    """The ranges that a manifest of several kernels says."""
    if manifest["schema"] == SCHEMA_OF_MULTIPLES:
        return tuple(
            _band(each["least"], _ranges_in(each["ranges"]), each["multiple"])
            for each in manifest["bands"]
        )
    if manifest["schema"] == SCHEMA_OF_BANDS:
        return tuple((each["least"], _ranges_in(each["ranges"])) for each in manifest["bands"])
    if manifest["schema"] == SCHEMA_OF_RANGES:
        return ((1, _ranges_in(manifest["ranges"])),)
    starts = (each["least"] for each in manifest["kernels"])
    return ((1, tuple((least, number) for number, least in enumerate(starts))),)


def _ranges_in(ranges: Iterable[Mapping[str, int]]) -> Ranges:
    return tuple((each["least"], each["kernel"]) for each in ranges)


def _as_json(ranges: Ranges) -> list[dict[str, int]]:
    return [{"least": least, "kernel": number} for least, number in ranges]


def describe(manifests: Sequence[Mapping[str, Any]], bands: Bands) -> dict[str, Any]:
    """What a manifest of several kernels says of them, whose manifests are sealed."""
    size = size_name(manifests[0])
    kernels = [
        {name: size_parameter(each).get(name, ROWS_MOST) for name in ("least", "most")}
        for each in manifests
    ]
    if size != SIZE:  # no kernel knows which it is for
        ends = (_ends(bands, number) for number in range(len(manifests)))
        kernels = [{"least": least, "most": most} for least, most in ends]
    stated: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA_OF_SEVERAL}
    stated |= {"size": size, "kernels": kernels}
    if any(multiple_of_band(each) > 1 for each in bands):
        stated["schema"] = SCHEMA_OF_MULTIPLES
        stated["bands"] = [
            {"least": each[0], "multiple": multiple_of_band(each), "ranges": _as_json(each[1])}
            for each in bands
        ]
    elif len(bands) > 1:
        stated["schema"] = SCHEMA_OF_BANDS
        stated["bands"] = [{"least": each[0], "ranges": _as_json(each[1])} for each in bands]
    elif bands != bands_in(stated):
        stated["schema"] = SCHEMA_OF_RANGES
        stated["ranges"] = [each for band in bands for each in _as_json(band[1])]
    hashes = {
        prefix + MANIFEST_NAME: each["hashes"][MANIFEST_NAME]
        for prefix, each in zip(prefixes_of(stated), manifests, strict=True)
    }
    return stated | {"hashes": hashes}


def _ends(bands: Bands, kernel: int) -> tuple[int, int]:
    """The first and the last row of all ranges of a kernel."""
    found = []
    for _, ranges, *_ in bands:
        ends = [*(least - 1 for least, _ in ranges[1:]), ROWS_MOST]
        pairs = zip(ranges, ends, strict=True)
        found += [(least, most) for (least, number), most in pairs if number == kernel]
    return min(least for least, _ in found), max(most for _, most in found)


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
    in_bands = manifest["schema"] == SCHEMA_OF_BANDS
    multiples = _multiples(bands_in(manifest))
    for number, (kernel, each) in enumerate(zip(manifest["kernels"], manifests, strict=True)):
        stated, size = (kernel["least"], kernel["most"]), size_parameter(each)
        if not is_dynamic(each) or size_name(each) != manifest["size"]:
            rule = f"{where}.size: must be what launches of its kernels say"
            raise BundleError(recompiled(f"{rule}, got '{manifest['size']}'"))
        if in_bands and size_names(each) != OF_GRID:
            rule = f"{where}.bands: must be of kernels for any batch"
            raise BundleError(recompiled(f"{rule}, got one for {size_names(each)[0]} alone"))
        if multiples[number] != {multiple_of(each)}:
            rule = f"{where}.bands: must be of the multiples that kernel {number} takes"
            multiples_in = " and ".join(map(str, sorted(multiples[number])))
            raise BundleError(recompiled(f"{rule}, {multiple_of(each)}, got {multiples_in}"))
        got = size.get("least"), size.get("most")
        if stated != got and manifest["size"] == SIZE:
            rule = f"{where}.kernels: must be of {stated[0]} to {stated[1]} rows as the kernel is"
            raise BundleError(recompiled(f"{rule}, got {got[0]} to {got[1]}"))
        for name in ALIKE:
            if each.get(name) != manifests[0].get(name):
                rule = f"{where}.kernels: all must have the same {name}"
                raise BundleError(recompiled(f"{rule}, got another from {kernel['least']} rows on"))


def _multiples(bands: Bands) -> dict[int, set[int]]:
    """For each kernel, the numbers of which its rows are multiples."""
    found: dict[int, set[int]] = {}
    for band in bands:
        for _, number in band[1]:
            found.setdefault(number, set()).add(multiple_of_band(band))
    return found


def _contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    kernels = manifest["kernels"]
    for kernel in kernels:
        if kernel["least"] > kernel["most"]:
            got = f"{kernel['least']} to {kernel['most']}"
            yield f"{where}.kernels: must be for some rows each, got {got}"
    is_plain = manifest["schema"] == SCHEMA_OF_SEVERAL
    yield from _gaps(kernels, where) if is_plain else _uneven(manifest, where)
    for prefix in prefixes_of(manifest):
        name = prefix + MANIFEST_NAME
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
    """Bands and their ranges in order from one on, and kernels in the order of their first ranges,
    whose rows those of each are."""
    kernels, bands = manifest["kernels"], bands_in(manifest)
    in_bands = manifest["schema"] in IN_BANDS
    place = f"{where}.bands" if in_bands else f"{where}.ranges"
    for _, alike in by_multiples(bands) if in_bands else ():
        yield from _out_of_order([each[0] for each in alike], place, "1 matrix")
    multiples = [multiple for multiple, _ in by_multiples(bands)]
    if multiples[-1] != 1 or any(low >= high for high, low in pairwise(multiples)):
        rule = "must begin with those of the largest multiple, and end with those of 1"
        yield f"{place}: {rule}, got {', '.join(map(str, multiples))}"
    for number, (_, ranges, *_) in enumerate(bands):
        own = f"{place}[{number}].ranges" if in_bands else place
        yield from _out_of_order([least for least, _ in ranges], own, "1 row")
    order = list(dict.fromkeys(number for band in bands for _, number in band[1]))
    if order != list(range(len(kernels))):
        rule = f"must name each of {len(kernels)} kernels, in the order of their first ranges"
        yield f"{place}: {rule}, got {', '.join(map(str, order))}"
        return
    for number, kernel in enumerate(kernels):
        stated, got = (kernel["least"], kernel["most"]), _ends(bands, number)
        if stated != got:
            rule = f"must be {stated[0]} to {stated[1]} for kernel {number}, as the kernel is"
            yield f"{place}: {rule}, got {got[0]} to {got[1]}"


def _out_of_order(starts: Sequence[int], place: str, first: str) -> Iterator[str]:
    if starts[0] != 1:
        yield f"{place}: must begin with {first}, got {starts[0]}"
    for before, least in pairwise(starts):
        if least <= before:
            yield f"{place}: must begin in order, got {least} behind {before}"
