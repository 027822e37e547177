"""Files and folders that appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


def write_file(path: Path, content: bytes) -> None:
    """Write `content` to `path`; on failure (OSError) what was there before stays."""
    with _neighbour(path) as folder:
        fresh = folder / path.name
        _write_synced(fresh, content)
        os.replace(fresh, path)
    _sync_folder(path.parent)


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder of files at `path`; an existing folder is replaced by the complete new one."""
    with _neighbour(path) as folder:
        fresh = folder / "new"
        fresh.mkdir()
        for name, content in contents.items():
            _write_synced(fresh / name, content)
        _sync_folder(fresh)
        _swap_in(fresh, path, folder / "old")
    _sync_folder(path.parent)


@contextlib.contextmanager
def _neighbour(path: Path) -> Iterator[Path]:
    folder = None
    try:
        folder = tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)
        yield Path(folder)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not the temporary name
        raise
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _swap_in(fresh: Path, path: Path, old: Path) -> None:
    replaced = path.is_dir()
    if replaced:
        os.rename(path, old)
    try:
        os.rename(fresh, path)
    except OSError:
        if replaced:
            os.rename(old, path)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
