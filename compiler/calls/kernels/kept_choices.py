"""A disk cache of which kernels share all sizes: choosing them takes a second.

An entry is `choices/<key>.json` beside the kernels of the cache, and is believed as they are
(`kernel_cache.py`). The key is the SHA-256 of all that the choice follows from: the spec, the
target, the tables of measured schedules, our sources.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ....dialects.errors import CompileError
from ....dialects.target import find_target
from ....runtime.atomic import write_file
from ....runtime.bundles.schema import Integer, ListOf, Record, Text
from ....runtime.private_folders import UnsafePlace, check_private_file, make_private
from ...buckets import buckets_for
from ...own_sources import source_digest
from ...pipeline import parse_pipeline
from ...schedule.any_size.buckets import Bucket
from ...schedule.tuned_schedules import tables_of
from ...spec import ROWS_MOST, MatmulSpec
from .kernel_cache import FILE_MODE, cache_folder, digest

FOLDER = "choices"
SIZES = ("m", "least_m", "most_m", "multiple_m", "batch", "k")
"""What the specs of kernels that share all sizes differ in."""
_SIZE = Integer(0, ROWS_MOST)
_RANGE = ListOf(ListOf(_SIZE, 2, 2), 1, 2)
"""The least and the most rows; in bands the fewest and the most matrices."""
_ENTRY = ListOf(
    Record(
        {
            "sizes": Record(dict.fromkeys(SIZES, _SIZE)),
            "pipeline": Text(4096),
            "ranges": ListOf(_RANGE, 1, 4096),
        }
    ),
    1,
    4096,
)


def kept_buckets(spec: MatmulSpec, target: str) -> list[Bucket]:
    """The kernels that `buckets_for` chooses, as another process has left them, or chosen now.

    Raises CompileError.
    """
    place = _place(spec, target)
    found = _read(place, spec)
    if found is None:
        found = buckets_for(spec, target)
        if all(_same_but_sizes(each.spec, spec) for each in found):
            _keep(place, found)
    return found


def are_kept(spec: MatmulSpec, target: str) -> bool:
    """Whether `kept_buckets` has nothing to choose."""
    return _read(_place(spec, target), spec) is not None


def _place(spec: MatmulSpec, target: str) -> Path:
    return cache_folder() / FOLDER / f"{_key(spec, target)}.json"


def _key(spec: MatmulSpec, target: str) -> str:
    files = tables_of(find_target(target).chip)
    tables = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    facts = repr(find_target(target))  # a user may have entered a chip anew
    about = {"spec": repr(spec), "target": target, "facts": facts, "tables": tables}
    return digest({**about, "by": source_digest()})


def _same_but_sizes(one: MatmulSpec, other: MatmulSpec) -> bool:
    named = (field.name for field in fields(one) if field.name not in SIZES)
    return all(getattr(one, name) == getattr(other, name) for name in named)


def _read(place: Path, spec: MatmulSpec) -> list[Bucket] | None:
    """The entry, None where there is none that can be believed."""
    try:
        check_private_file(place)
        entry = json.loads(place.read_text("utf-8"))
        if _ENTRY.check(entry, "entry"):
            return None
        return [_bucket(spec, each) for each in entry]
    except (OSError, UnsafePlace, ValueError, CompileError):
        return None


def _bucket(spec: MatmulSpec, entry: Mapping[str, Any]) -> Bucket:
    parse_pipeline(entry["pipeline"])
    ranges = tuple(tuple(chain(*each)) for each in entry["ranges"])
    sizes = {name: entry["sizes"][name] for name in SIZES}
    return Bucket(replace(spec, **sizes), entry["pipeline"], ranges)


def _keep(place: Path, buckets: list[Bucket]) -> None:
    """Write the entry where the folder lets us: without it the next process chooses again."""
    entry = [
        {
            "sizes": {name: getattr(each.spec, name) for name in SIZES},
            "pipeline": each.pipeline,
            "ranges": [[own[:2], own[2:]][: len(own) // 2] for own in each.ranges],
        }
        for each in buckets
    ]
    try:
        make_private(place.parent)
        write_file(place, json.dumps(entry).encode(), FILE_MODE, synced=False)
    except (OSError, UnsafePlace):
        return
