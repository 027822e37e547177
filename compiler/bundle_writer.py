"""Writes a bundle: a folder, or a zip if the name ends in .zip."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..dialects.errors import CompileError
from ..runtime.atomic import write_file, write_folder
from ..runtime.bundles.bundle import (
    MANIFEST_NAME,
    Bundle,
    read_bundle,
    seal,
    seal_several,
    together,
)
from ..runtime.bundles.manifest import BundleError
from ..runtime.bundles.manifest_fields import CUBIN_NAME, PTX_NAME
from ..runtime.bundles.ptx_head import with_launch
from ..runtime.bundles.several import bands_of, prefixes_of
from ..runtime.bundles.sizes import most_rows, multiple_of, size_parameter
from .compiled import Compiled

ZIP_MAGIC = b"PK"
OWN_NAME = "entry"
"""A file of an entry of a cache, beside those of its bundle."""
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_OURS = re.compile(
    rf"(\w+\.)?({'|'.join(map(re.escape, (MANIFEST_NAME, PTX_NAME, CUBIN_NAME)))})|{OWN_NAME}"
)
"""A file of a bundle, of several kernels with a prefix."""


def write_bundle(path: str | Path, manifest: Mapping[str, Any], ptx: str, cubin: bytes) -> Bundle:
    """Seal the manifest with its hashes and write the three files to `path`.

    The bundle appears whole or not at all, and equal inputs give equal bytes. A bundle that is
    already there is replaced; anything else there is refused with CompileError. Missing parent
    folders are made. Raises OSError when the place can't be written.
    """
    bundle = Bundle(seal(manifest, ptx, cubin), ptx, cubin, Path(path))
    _write(Path(path), _contents(bundle))
    return bundle


def write_entry(path: Path, bundle: Bundle, mode: int) -> Bundle:
    """Write a zip of that mode into a cache, as `write_bundle` does, but wait for no disk.

    It holds the name that it has there, so that `read_entry` tells one that was put in another's
    place. An entry that the machine's end tears is refused by its hashes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _refuse(path, path.is_dir(), "a file")
    contents = _contents_of_several(bundle) | {OWN_NAME: path.name.encode()}
    write_file(path, _zipped(contents), mode, synced=False)
    return replace(bundle, path=path)


def read_entry(path: Path) -> Bundle:
    """Read what `write_entry` wrote there; BundleError where it was written at another place."""
    bundle, own = read_bundle(path), _own_name(path)
    if own != path.name:
        raise BundleError(f"{path}: must be the kernel of that name, got '{own}'; remove it")
    return bundle


def _own_name(path: Path) -> str:
    """The name that an entry holds, or why it holds none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(OWN_NAME).decode() if OWN_NAME in archive.namelist() else "none"
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeError):
        return "a torn one"


def rewrite(path: str | Path, bundle: Bundle) -> None:
    """Write a bundle, of one kernel or of several, to another place as `write_bundle` does."""
    _write(Path(path), _contents_of_several(bundle))


def write_several(path: str | Path, kernels: Sequence[Compiled]) -> Bundle:
    """Write kernels for some rows each as one bundle, as `write_bundle` does one."""
    bundle = several(kernels, Path(path))
    _write(Path(path), _contents_of_several(bundle))
    return bundle


def several(kernels: Sequence[Compiled], path: Path | None = None) -> Bundle:
    """The bundle of kernels in the order of their fewest rows, of which there may be one."""
    bundles = [as_bundle(each) for each in kernels]
    if len(bundles) == 1:
        return together(bundles, (), path)
    pairs = zip(kernels, bundles, strict=True)
    rows = [each.ranges or (_rows_of(made),) for each, made in pairs]
    multiples = [multiple_of(each.manifest) for each in bundles]
    return together(bundles, bands_of(rows, multiples), path)


def _rows_of(bundle: Bundle) -> tuple[int, int]:
    """The rows of a kernel that is told no ranges."""
    size = size_parameter(bundle.manifest)
    return size.get("least", 1), size.get("most") or most_rows(bundle.manifest)


def _contents(bundle: Bundle, prefix: str = "") -> dict[str, bytes]:
    """The files of one kernel."""
    manifest = (json.dumps(bundle.manifest, indent=2) + "\n").encode()
    files = {MANIFEST_NAME: manifest, PTX_NAME: bundle.ptx.encode(), CUBIN_NAME: bundle.cubin}
    return {prefix + name: content for name, content in files.items()}


def _contents_of_several(bundle: Bundle) -> dict[str, bytes]:
    """The files of all kernels, and the manifest that names them."""
    kernels = bundle.kernels
    if len(kernels) == 1:
        return _contents(bundle)
    manifest = seal_several([each.manifest for each in kernels], bundle.bands)
    contents = {MANIFEST_NAME: (json.dumps(manifest, indent=2) + "\n").encode()}
    for prefix, each in zip(prefixes_of(manifest), kernels, strict=True):
        contents |= _contents(each, prefix)
    return contents


def _write(path: Path, contents: dict[str, bytes]) -> None:
    check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        write_file(path, _zipped(contents))
    else:
        write_folder(path, contents)


def check_replaceable(path: Path) -> None:
    """Refuse with CompileError a place where something lies that is not a bundle's.

    A bundle has files of its own names alone. An empty file or folder may be replaced, and a zip
    that is cut short.
    """
    if path.suffix == ".zip":
        _refuse(path, path.is_dir(), "a file")
        _refuse(path, path.exists() and not _is_zip_or_empty(path), "a bundle")
    else:
        _refuse(path, path.exists() and not path.is_dir(), "a bundle")
    strange = _strange_name(path)
    if strange is not None:
        rule = f"only a bundle can be replaced, got one with '{strange}' in it"
        raise CompileError(f"{path}: {rule}; choose another path")


def _strange_name(path: Path) -> str | None:
    """What lies in a folder or zip that is no bundle's; a manifest alone may be anybody's."""
    if path.is_dir():
        names = sorted(each.name for each in path.iterdir())
    else:
        names = _names_in_zip(path)
    strange = next((name for name in names if not _OURS.fullmatch(name)), None)
    return MANIFEST_NAME if names == [MANIFEST_NAME] else strange


def _names_in_zip(path: Path) -> list[str]:
    """None where there is no file, or it is damaged."""
    if not path.is_file():
        return []
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, UnicodeError):
        return []


def as_bundle(compiled: Compiled, output: str | Path | None = None) -> Bundle:
    """The bundle of a compilation up to its cubin; written to `output` where that is given.

    Its PTX says for which launch it was made.
    """
    manifest, ptx, assembled = compiled.manifest, compiled.ptx, compiled.assembled
    assert ptx is not None and assembled is not None
    ptx = with_launch(ptx, manifest)
    if output is None:
        return Bundle(seal(manifest, ptx, assembled.cubin), ptx, assembled.cubin)
    return write_bundle(output, manifest, ptx, assembled.cubin)


def _is_zip_or_empty(path: Path) -> bool:
    """Whether a file may be an older bundle, be it damaged."""
    if not path.is_file():  # a pipe, from which a read would wait
        return False
    with path.open("rb") as file:
        return file.read(len(ZIP_MAGIC)) in (b"", ZIP_MAGIC)


def _refuse(path: Path, wrong: bool, wanted: str) -> None:
    if wrong:
        got = "a folder" if path.is_dir() else "a file"
        raise CompileError(f"{path}: only {wanted} can be replaced, got {got}; choose another path")


def _zipped(contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            member = zipfile.ZipInfo(name, ZIP_TIME)
            member.external_attr = 0o644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return buffer.getvalue()
