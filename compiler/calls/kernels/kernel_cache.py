"""The cache of compiled bundles: in this process, and on disk for all processes.

An entry is a bundle `<key>.zip`; the key is the SHA-256 of all that its content follows from. It
appears whole or not at all by a rename, so processes need no lock: whoever is last replaces equal
by equal.

A pass that a user entered is no part of a key, as nobody knows what it reads: its kernels are kept
in memory alone, until a pass is entered anew.

An entry is believed because of where it lies: in a folder that only the user, or root, can write
(`runtime/private_folders.py`). Any other folder is not used, and a warning says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....dialects.errors import CompileError
from ....dialects.tables import changes, kept_until_changed
from ....dialects.target import TARGETS, find_target
from ....runtime.bundles.bundle import Bundle
from ....runtime.bundles.manifest import BundleError
from ....runtime.private_folders import UnsafePlace, check_private_file, make_private
from ...backend import versions
from ...bundle_writer import as_bundle, read_entry, write_entry
from ...compiled import Compiled
from ...driver import compile_matmul
from ...importers.linalg_text import LinalgText
from ...own_sources import source_digest
from ...pipeline import PASSES, parse_pipeline
from ...spec import MatmulSpec

VARIABLE = "TILEWRIGHT_CACHE"
FILE_MODE = 0o600
BUNDLES_KEPT = 1024  # in memory; a kernel's PTX has some hundred kilobytes


def cache_folder() -> Path:
    """$TILEWRIGHT_CACHE, else tilewright/ in $XDG_CACHE_HOME, else in ~/.cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tilewright"


@kept_until_changed(BUNDLES_KEPT)
def cached_bundle(
    source: MatmulSpec | LinalgText, target: str, pipeline: str, math: str = "", named: bool = False
) -> Bundle:
    """The kernel of a spec or a text: from memory, else from disk, else compiled and kept there.

    `pipeline` is its text, complete. The entry of one that the compiler chose, which no caller
    `named`, may be the kernel of the schedule that comes in its place (`compile_matmul`); that is
    warned of where it is compiled. An entry that is damaged, that somebody else could have
    written, or that says that it is something else, is compiled again and replaced. That, and a
    folder that can't be written or that others can write, is warned of, once for a kernel. Raises
    CompileError.
    """
    asked = source, target, pipeline, math, named
    path = cache_folder() / f"{digest(describe_request(*asked))}.zip"
    if not (_is_ours(pipeline) and _is_usable(path)):
        return _compile(*asked, None)
    return _entry(path) or _compile(*asked, path)


def _is_ours(pipeline: str) -> bool:
    """Whether all its passes are the package's own."""
    return all(PASSES.is_own(call.name) for call in parse_pipeline(pipeline))


def keep(key: str, bundle: Bundle) -> Bundle:
    """The bundle as the entry of a key, for other processes, unless it is of a user's passes; a
    folder that cannot be used is warned of."""
    path = cache_folder() / f"{key}.zip"
    ours = all(_is_ours(each.manifest["pipeline"]) for each in bundle.kernels)
    if ours and _is_usable(path):
        try:
            write_entry(path, bundle, FILE_MODE)
        except (OSError, CompileError) as error:
            _warn_of_writing(path, error)
    return bundle


def describe_request(
    source: MatmulSpec | LinalgText, target: str, pipeline: str, math: str = "", named: bool = False
) -> dict[str, Any]:
    """Everything that a bundle follows from: source, chip, schedule, tools, our own sources."""
    of_text = isinstance(source, LinalgText)
    chip = find_target(target).chip
    facts = {} if TARGETS.is_own(chip) else {"facts": repr(TARGETS[chip])}
    return {
        "spec": None if of_text else source.as_dict(),
        "text": repr(source) if of_text else None,
        "target": chip,
        **facts,
        "pipeline": pipeline,
        **({"math": math} if math else {}),
        **({"named": True} if named else {}),
        "tools": versions(),
        "sources": source_digest(),
    }


def digest(request: Mapping[str, Any]) -> str:
    """The key of a request: 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _is_usable(path: Path) -> bool:
    """Whether the folder of an entry is there and the user's own; a warning says why it is not."""
    try:
        make_private(path.parent)
        return True
    except UnsafePlace as error:
        _warn(f"{error}, or set {VARIABLE}")
    except OSError as error:
        _warn_of_writing(path, error)
    return False


def _entry(path: Path) -> Bundle | None:
    """The entry at a place; None if there is none, or none that can be believed."""
    try:
        check_private_file(path)
        return read_entry(path)
    except FileNotFoundError:
        return None
    except (UnsafePlace, BundleError) as error:
        _warn(f"an entry is compiled again and replaced, as it was refused: {error}")
        return None


def _compile(
    source: MatmulSpec | LinalgText,
    target: str,
    pipeline: str,
    math: str,
    named: bool,
    path: Path | None,
) -> Bundle:
    how = {"target": target, "pipeline": pipeline, "math": math or None}
    before, compiled = changes(), compile_matmul(source, **how, replaceable=not named)
    warn_of_room(compiled)
    if path is not None and changes() == before:  # else of passes that may be another's
        try:
            return write_entry(path, as_bundle(compiled), FILE_MODE)
        except (OSError, CompileError) as error:
            _warn_of_writing(path, error)
    return as_bundle(compiled)


def warn_of_room(compiled: Compiled) -> None:
    """Say which schedule came in the place of one that was chosen and has no room."""
    if compiled.given_up:
        warnings.warn(compiled.remarks[-1].removeprefix("remark: "), stacklevel=4)


def _warn_of_writing(path: Path, error: Exception) -> None:
    reason = getattr(error, "strerror", None) or error
    _warn(f"{path.parent} must be writable, got {reason}; set {VARIABLE}")


def _warn(what: str) -> None:
    warnings.warn(f"cache: {what}", stacklevel=3)
