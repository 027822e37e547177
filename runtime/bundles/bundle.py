"""Bundles: the manifest, PTX and cubin of one kernel, as a folder or a zip, checked on reading."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import LaunchError
from ..strict_json import parse_json
from .bundle_files import COPY_AGAIN, Reader, open_members
from .manifest import FORMAT, BundleError, schema_of, validate
from .manifest_fields import CUBIN_NAME, MANIFEST_NAME, PTX_NAME
from .ptx_head import ptx_contradictions
from .several import (
    Bands,
    bands_in,
    check_together,
    describe,
    is_of_several,
    number_of,
    prefixes_of,
    validate_several,
)
from .sizes import is_dynamic, manifest_for, named, refusal


@dataclass(frozen=True)
class Bundle:
    """One compiled kernel. `manifest` is as docs/bundle.md says, `path` is where it lies.

    Of several kernels it is the last one; `others` are those before it, in the order of their first
    ranges, and `bands` say which rows, of how many matrices, each is for.
    """

    manifest: Mapping[str, Any]
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    path: Path | None = None
    others: tuple[Bundle, ...] = field(default=(), repr=False)
    bands: Bands = field(default=(), repr=False)

    @property
    def kernels(self) -> tuple[Bundle, ...]:
        """Each kernel as a bundle by itself."""
        return (*self.others, replace(self, others=(), bands=()) if self.others else self)

    def for_sizes(self, *values: int) -> Bundle:
        """The kernel for so many rows, or matrices, or for both, of those that there are."""
        return self.kernels[number_of(self.bands, *values)]

    def at(self, *values: int) -> Bundle:
        """The bundle of a dynamic M, or batch, for one, without another look at its files; of both
        for an M and a batch.

        Raises LaunchError where it is none, or more than the kernel can count.
        """
        if not is_dynamic(self.manifest):
            return self
        sizes = named(self.manifest, values)
        if self.others:
            return self.for_sizes(*values).at(*values)
        refused = refusal(self.manifest, sizes)
        if refused:
            raise LaunchError(f"kernel {self.manifest['entry']}: {refused}")
        return replace(self, manifest=manifest_for(self.manifest, sizes))


def seal(manifest: Mapping[str, Any], ptx: str, cubin: bytes) -> dict[str, Any]:
    """The manifest with format, schema and the hashes of `ptx`, `cubin` and itself, validated."""
    hashes = {PTX_NAME: sha256(ptx.encode()), CUBIN_NAME: sha256(cubin)}
    sealed = {**manifest, "format": FORMAT, "schema": schema_of(manifest), "hashes": hashes}
    hashes[MANIFEST_NAME] = manifest_hash(sealed)
    return validate(sealed)


def seal_several(manifests: Sequence[Mapping[str, Any]], bands: Bands) -> dict[str, Any]:
    """The manifest of several kernels, whose own are sealed, validated with them."""
    sealed = describe(manifests, bands)
    sealed["hashes"][MANIFEST_NAME] = manifest_hash(sealed)
    check_together(validate_several(sealed, "manifest"), manifests, "manifest")
    return sealed


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

    Only known names are read, so nothing else that a zip may hold can do harm. Raises
    BundleError, and nothing else, when the bundle is foreign or damaged: not there, cut short,
    larger than a bundle is, another format or schema, a field missing, a hash that differs.
    """
    path = Path(path)
    with open_members(path) as read:
        manifest = _parse(path, MANIFEST_NAME, read(MANIFEST_NAME))
        if is_of_several(manifest):
            return _of_several(path, manifest, read)
        return _from_reader(path, manifest, read, "")


def _of_several(path: Path, manifest: Any, read: Reader) -> Bundle:
    """The kernels in order, the last one with those before it."""
    manifest = validate_several(manifest, f"{path}: manifest")
    _check_hash(path, MANIFEST_NAME, manifest_hash(manifest), manifest["hashes"][MANIFEST_NAME])
    found = []
    for prefix in prefixes_of(manifest):
        name = prefix + MANIFEST_NAME
        own = _parse(path, name, read(name))
        found.append(_from_reader(path, own, read, prefix))
        own_hash = found[-1].manifest["hashes"][MANIFEST_NAME]
        _check_hash(path, name, own_hash, manifest["hashes"][name])
    check_together(manifest, [each.manifest for each in found], f"{path}: manifest")
    return together(found, bands_in(manifest), path)


def together(kernels: Sequence[Bundle], bands: Bands, path: Path | None = None) -> Bundle:
    """Bundles of kernels for some rows each as one; `bands` say which kernel sizes have."""
    others = tuple(replace(each, path=path) for each in kernels[:-1])
    return replace(kernels[-1], path=path, others=others, bands=bands if others else ())


def _from_reader(path: Path, manifest: Any, read: Reader, prefix: str) -> Bundle:
    where = f"{path}: {prefix}manifest"
    manifest, name = validate(manifest, where), prefix + MANIFEST_NAME
    _check_hash(path, name, manifest_hash(manifest), manifest["hashes"][MANIFEST_NAME])
    contents = {name: read(prefix + name) for name in (PTX_NAME, CUBIN_NAME)}
    for name, content in contents.items():
        _check_hash(path, prefix + name, sha256(content), manifest["hashes"][name])
    ptx = _decode(path, prefix + PTX_NAME, contents[PTX_NAME])
    broken = next(ptx_contradictions(ptx, manifest), None)
    if broken:
        raise BundleError(f"{path}: {prefix}{PTX_NAME}: {broken}; {COPY_AGAIN}")
    return Bundle(manifest, ptx, contents[CUBIN_NAME], path)


def _parse(path: Path, name: str, content: bytes) -> Any:
    try:
        return parse_json(content)
    except ValueError as error:
        where = f"{path}: {name}"
        raise BundleError(f"{where}: must be JSON, got {error}; {COPY_AGAIN}") from error


def _decode(path: Path, name: str, ptx: bytes) -> str:
    try:
        return ptx.decode()
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: {name}: must be UTF-8, got {error}; {COPY_AGAIN}") from None


def _check_hash(path: Path, name: str, found: str, expected: str) -> None:
    if found != expected:
        rule = f"must have the SHA-256 of the manifest, {expected[:12]}…"
        raise BundleError(f"{path}: {name}: {rule}, got {found[:12]}…; {COPY_AGAIN}")
