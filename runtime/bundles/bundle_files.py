"""The files of a bundle, from a folder or an untrusted zip.

Only the three known names are read, or those of several kernels, each up to a limit. A zip is
looked over before Python's reader gets it: that one would read a directory of any length, and knows
compressions that a bundle never has. Whatever it still raises is a BundleError.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn, TypeVar

from ..regular_files import UnfitFile, open_regular, read_regular
from .manifest import BundleError
from .manifest_fields import CUBIN_NAME, MANIFEST_NAME, PTX_NAME

LIMITS_BYTES = {MANIFEST_NAME: 2**20, PTX_NAME: 64 * 2**20, CUBIN_NAME: 64 * 2**20}
TOTAL_LIMIT_BYTES = sum(LIMITS_BYTES.values())
ZIP_LIMIT_BYTES = TOTAL_LIMIT_BYTES + 2**20
PREFIX = re.compile(r"^(m|batch|k|)[0-9]{1,10}\.")  # of the files of one of several kernels
MOST_MEMBERS = 256
DIRECTORY_LIMIT_BYTES = 64 * 2**10
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
COPY_AGAIN = "copy or make the bundle again"
# The end record and the locator of zip64: PKWARE's APPNOTE.TXT, 4.3.16 and 4.3.15.
END, LOCATOR = struct.Struct("<4s4H2LH"), b"PK\x06\x07"
LOCATOR_BYTES = 20

Reader = Callable[[str], bytes]
Result = TypeVar("Result")


def limit_of(name: str) -> int:
    """Bytes that a file may have, of one of several kernels those of a file of one."""
    return LIMITS_BYTES[PREFIX.sub("", name)]


@contextmanager
def open_members(path: Path) -> Iterator[Reader]:
    """What reads each of the files by its name, all together up to a limit; raises BundleError
    alone."""
    left = TOTAL_LIMIT_BYTES

    def read(name: str) -> bytes:
        nonlocal left
        content = reader(name)
        left -= len(content)
        if left < 0:
            rule = f"must be files of at most {TOTAL_LIMIT_BYTES} bytes together"
            raise BundleError(f"{path}: {rule}, got more; {COPY_AGAIN}")
        return content

    try:
        opened = _open_folder if path.is_dir() else _open_zip
        with opened(path) as reader:
            yield read
    except BundleError:
        raise
    except UnfitFile as error:
        rule = "must be a bundle, got no such file or folder; check the path"
        if not error.missing:
            rule = f"must be a folder or a file of a bundle's size, got {error.got}; {COPY_AGAIN}"
        raise BundleError(f"{path}: {rule}") from error
    except OSError as error:
        reason = f"{path}: must be readable, got {error.strerror}; {COPY_AGAIN}"
        raise BundleError(reason) from error


@contextmanager
def _open_folder(path: Path) -> Iterator[Reader]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield lambda name: _read_file(path, folder, name)
    finally:
        os.close(folder)


def _read_file(path: Path, folder: int, name: str) -> bytes:
    try:
        return read_regular(name, limit_of(name), inside=folder)
    except UnfitFile as error:
        if error.missing:
            raise BundleError(f"{path}: must hold {name}, got none; {COPY_AGAIN}") from None
        rule = f"must be a file of at most {limit_of(name)} bytes"
        raise BundleError(f"{path / name}: {rule}, got {error.got}; {COPY_AGAIN}") from error


@contextmanager
def _open_zip(path: Path) -> Iterator[Reader]:
    with open_regular(path, ZIP_LIMIT_BYTES) as file:
        _check_end(path, file)
        archive = _parsed(path, lambda: zipfile.ZipFile(file))
        with archive:
            _check_members(path, archive)
            yield lambda name: _parsed(path, lambda: _read_member(path, archive, name))


def _parsed(path: Path, parse: Callable[[], Result]) -> Result:
    """What `parse` returns; what zipfile raises of a file that it can't take is a BundleError."""
    try:
        return parse()
    except BundleError:
        raise
    except Exception as error:  # BadZipFile, zlib.error, EOFError, struct.error, UnicodeError, …
        reason = f"{path}: must be a whole zip file, got {error or type(error).__name__}"
        raise BundleError(f"{reason}; {COPY_AGAIN}") from error


def _check_end(path: Path, file: IO[bytes]) -> None:
    """The end of the zip says how long its directory is, before anyone reads that."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - END.size - LOCATOR_BYTES))
    tail = file.read()
    if len(tail) < END.size or not tail[-END.size :].startswith(b"PK\x05\x06"):
        _refuse_zip(path, "must be a whole zip file", "another end")
    *_, members, directory_bytes, _, comment = END.unpack(tail[-END.size :])
    if comment or tail.startswith(LOCATOR):
        _refuse_zip(path, "must be a plain zip file", "a comment" if comment else "zip64")
    if members > MOST_MEMBERS or directory_bytes > DIRECTORY_LIMIT_BYTES:
        got = f"{members} in a directory of {directory_bytes} bytes"
        _refuse_zip(path, f"must have at most {MOST_MEMBERS} members", got)


def _check_members(path: Path, archive: zipfile.ZipFile) -> None:
    names = archive.namelist()
    if len(names) > MOST_MEMBERS:
        _refuse_zip(path, f"must have at most {MOST_MEMBERS} members", str(len(names)))
    if len(set(names)) != len(names):
        _refuse_zip(path, "must hold each name once", f"{len(names) - len(set(names))} again")
    for name in names:
        if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts:
            _refuse_zip(path, "must hold names that stay inside", repr(name[:60]))


def _read_member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    if name not in archive.namelist():
        raise BundleError(f"{path}: must hold {name}, got none; {COPY_AGAIN}")
    member, limit = archive.getinfo(name), limit_of(name)
    if member.file_size > limit:
        _refuse_zip(path, f"{name}: must be at most {limit} bytes", str(member.file_size))
    if member.compress_type not in COMPRESSIONS or member.flag_bits & 1:
        got = "an encrypted one" if member.flag_bits & 1 else f"method {member.compress_type}"
        _refuse_zip(path, f"{name}: must be stored or deflated", got)
    with archive.open(member) as file:
        content = file.read(limit + 1)
    if len(content) != member.file_size:
        got = f"{len(content)}"
        _refuse_zip(path, f"{name}: must be {member.file_size} bytes as the zip says", got)
    return content


def _refuse_zip(path: Path, rule: str, got: str) -> NoReturn:
    raise BundleError(f"{path}: {rule}, got {got}; {COPY_AGAIN}")
