"""A launch described by a dict, in the form of a launch file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LaunchError

NAME = "launch"
"""What errors call it."""


@contextmanager
def written(launch: Mapping[str, Any]) -> Iterator[Path]:
    """The path of a launch file that says what the dict says, while the context lasts.

    A tensor's `contents` may be an array, as a `.npy` file would hold it; relative paths start at
    the working directory. LaunchErrors call the file `launch`.
    """
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        path = Path(folder) / "launch.json"
        path.write_text(_text(launch, path.parent))
        try:
            yield path
        except LaunchError as error:
            error.args = (str(error).replace(str(path), NAME),)
            raise


def _text(launch: Mapping[str, Any], folder: Path) -> str:
    given = dict(launch)
    tensors = given.get("tensors")
    if isinstance(tensors, list | tuple):
        given["tensors"] = [_with_files(each, i, folder) for i, each in enumerate(tensors)]
    try:
        return json.dumps(given, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise LaunchError(f"{NAME}: must hold what JSON holds, got: {error}") from None


def _with_files(tensor: Any, number: int, folder: Path) -> Any:
    """The tensor with an array, or a relative path, as an absolute path."""
    contents = tensor.get("contents") if isinstance(tensor, Mapping) else None
    if isinstance(contents, np.ndarray):
        path = folder / f"{number}.npy"
        if contents.dtype.hasobject:
            raise LaunchError(f"{NAME}: tensors[{number}].contents: must be numbers, got objects")
        np.save(path, contents)
        return {**tensor, "contents": {"file": str(path)}}
    if isinstance(contents, Mapping) and isinstance(contents.get("file"), str):
        return {**tensor, "contents": {**contents, "file": str(Path(contents["file"]).absolute())}}
    return tensor


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays of them as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__}, {value!r:.60}")
