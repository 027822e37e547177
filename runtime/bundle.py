"""Bundles: the manifest, PTX and cubin of one kernel, as a folder or a zip, checked on reading."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .manifest import (
    CUBIN_NAME,
    FORMAT,
    MANIFEST_NAME,
    PTX_NAME,
    SCHEMA,
    BundleError,
    validate,
)

MEMBERS = (MANIFEST_NAME, PTX_NAME, CUBIN_NAME)
MEMBER_LIMIT_BYTES = 256 * 2**20
COPY_AGAIN = "copy or make the bundle again"

Reader = Callable[[str], bytes]


@dataclass(frozen=True)
class Bundle:
    """One compiled kernel. `manifest` obeys schema 2 (docs/bundle.md), `path` is where it lies."""

    manifest: Mapping[str, Any]
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    path: Path | None = None


def seal(manifest: Mapping[str, Any], ptx: str, cubin: bytes) -> dict[str, Any]:
    """The manifest with format, schema and the hashes of `ptx`, `cubin` and itself, validated."""
    hashes = {PTX_NAME: sha256(ptx.encode()), CUBIN_NAME: sha256(cubin)}
    sealed = {**manifest, "format": FORMAT, "schema": SCHEMA, "hashes": hashes}
    hashes[MANIFEST_NAME] = manifest_hash(sealed)
    return validate(sealed)


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of the manifest without this hash, as JSON with sorted keys and no white space.

    It tells damage and careless edits. Who changes a bundle on purpose can write a new one: a hash
    is no signature (docs/bundle.md).
    """
    hashes = {name: each for name, each in manifest["hashes"].items() if name != MANIFEST_NAME}
    text = json.dumps({**manifest, "hashes": hashes}, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode())


def sha256(content: bytes) -> str:
    """SHA-256 as lower-case hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def is_bundle(path: Path) -> bool:
    """Whether `path` looks like a bundle: a zip, or a folder that holds a manifest."""
    if path.is_dir():
        return (path / MANIFEST_NAME).is_file()
    return path.is_file() and (path.suffix == ".zip" or zipfile.is_zipfile(path))


def read_bundle(path: str | Path) -> Bundle:
    """Read and check the bundle at `path`, a folder or a zip.

    Only the three known names are read, so nothing else that a zip may hold can do harm. Raises
    BundleError when the bundle is foreign or damaged: not there, cut short, another format or
    schema, a field missing, a hash that differs.
    """
    path = Path(path)
    if path.is_dir():
        return _from_reader(path, lambda name: _read_file(path, name))
    if not path.exists():
        raise BundleError(f"{path}: must be a bundle, got no such file or folder; check the path")
    return _read_zip(path)


def _read_zip(path: Path) -> Bundle:
    try:
        with zipfile.ZipFile(path) as archive:
            return _from_reader(path, lambda name: _read_member(path, archive, name))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise BundleError(f"{path}: must be a whole zip file, got {error}; {COPY_AGAIN}") from error
    except OSError as error:
        raise BundleError(
            f"{path}: must be readable, got {error.strerror}; {COPY_AGAIN}"
        ) from error


def _read_file(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise BundleError(f"{folder}: must hold {name}, got none; {COPY_AGAIN}") from None
    except OSError as error:
        reason = f"{folder / name}: must be readable, got {error.strerror}; {COPY_AGAIN}"
        raise BundleError(reason) from error


def _read_member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    if name not in archive.namelist():
        raise BundleError(f"{path}: must hold {name}, got none; {COPY_AGAIN}")
    size = archive.getinfo(name).file_size
    if size > MEMBER_LIMIT_BYTES:
        rule = f"must be at most {MEMBER_LIMIT_BYTES} bytes"
        raise BundleError(f"{path}: {name}: {rule}, got {size}; {COPY_AGAIN}")
    return archive.read(name)


def _from_reader(path: Path, read: Reader) -> Bundle:
    manifest = validate(_parse(path, read(MANIFEST_NAME)), f"{path}: manifest")
    _check_hash(path, MANIFEST_NAME, manifest_hash(manifest), manifest["hashes"][MANIFEST_NAME])
    contents = {name: read(name) for name in (PTX_NAME, CUBIN_NAME)}
    for name, content in contents.items():
        _check_hash(path, name, sha256(content), manifest["hashes"][name])
    ptx = contents[PTX_NAME].decode()
    _check_entry(path, ptx, manifest["entry"])
    return Bundle(manifest, ptx, contents[CUBIN_NAME], path)


def _parse(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        where = f"{path}: {MANIFEST_NAME}"
        raise BundleError(f"{where}: must be JSON, got {error}; {COPY_AGAIN}") from error


def _check_hash(path: Path, name: str, found: str, expected: str) -> None:
    if found != expected:
        rule = f"must have the SHA-256 of the manifest, {expected[:12]}…"
        raise BundleError(f"{path}: {name}: {rule}, got {found[:12]}…; {COPY_AGAIN}")


def _check_entry(path: Path, ptx: str, entry: str) -> None:
    if not re.search(rf"\.entry\s+{re.escape(entry)}\b", ptx):
        rule = f"must define the entry '{entry}' of the manifest"
        raise BundleError(f"{path}: {PTX_NAME}: {rule}, got none; {COPY_AGAIN}")
