"""Initial contents of a tensor: seeded random numbers, a ramp, a constant, a .npy file."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LaunchError
from .element_types import ELEMENT_TYPES, ElementType
from .tensor_rules import Tensor, bounds

CURE = "save it again with numpy.save"


def make_contents(tensor: Tensor, folder: Path, where: str) -> np.ndarray:
    """The elements of an input, shape as declared, in the element type's numpy dtype.

    Files are looked up from `folder`. LaunchError (`where: …`) when a file does not fit.
    """
    contents, kind = tensor["contents"], ELEMENT_TYPES[tensor["dtype"]]
    if "file" in contents:
        return _from_file(folder / contents["file"], tensor["shape"], kind, f"{where}.file")
    if "random" in contents:
        values = _random(contents, tensor["shape"], kind)
    elif "ramp" in contents:
        values = _ramp(contents, tensor["shape"], kind)
    else:
        values = np.full(tensor["shape"], _constant(contents["constant"], kind))
    with np.errstate(all="ignore"):
        return values.astype(kind.dtype)


def _random(contents: Mapping[str, Any], shape: list[int], kind: ElementType) -> np.ndarray:
    rng = np.random.default_rng(contents["random"])
    low, high = bounds(contents, kind)
    if contents["distribution"] == "normal":
        return rng.standard_normal(shape)
    if contents["distribution"] == "uniform":
        return rng.uniform(low, high, shape)
    dtype = np.uint64 if kind.kind == "u" else np.int64
    return rng.integers(int(low), int(high), shape, dtype, endpoint=True)


def _ramp(contents: Mapping[str, Any], shape: list[int], kind: ElementType) -> np.ndarray:
    count, step = np.arange(prod(shape)), contents.get("step", 1)
    if "modulo" in contents:
        count %= contents["modulo"]
    if kind.kind == "f":
        return (contents["ramp"] + count * float(step)).reshape(shape)
    start, stride = (np.uint64(value % 2**64) for value in (contents["ramp"], step))
    return (start + count.astype(np.uint64) * stride).reshape(shape)


def _constant(value: Any, kind: ElementType) -> np.ndarray:
    if kind.kind == "f":
        return np.array(float(value))
    return np.array(value, kind.dtype)


def _from_file(path: Path, shape: list[int], kind: ElementType, where: str) -> np.ndarray:
    array = _load(path, where)
    if list(array.shape) != shape:
        rule = f"must hold an array of shape {shape}"
        raise LaunchError(f"{where}: {rule}, got {list(array.shape)} in '{path}'; {CURE}")
    names = dict.fromkeys([kind.dtype.name] if kind.native else [kind.raw.name])
    names[kind.raw.name] = None
    nameless = array.dtype.kind == "V" and array.dtype.itemsize == kind.dtype.itemsize
    if array.dtype not in (kind.dtype, kind.raw) and not (nameless and not kind.native):
        rule = f"must hold {' or '.join(names)} for {kind.name}"
        raise LaunchError(f"{where}: {rule}, got {array.dtype} in '{path}'; {CURE}")
    raw = np.ascontiguousarray(array).view(kind.raw)
    if kind.bits < 8 and raw.max() >> kind.bits:
        rule = f"must hold codes from 0 to {(1 << kind.bits) - 1} for {kind.name}"
        raise LaunchError(f"{where}: {rule}, got {raw.max()} in '{path}'; {CURE}")
    return raw.view(kind.dtype).reshape(shape)


def _load(path: Path, where: str) -> np.ndarray:
    if not path.is_file():
        raise LaunchError(f"{where}: must be a .npy file, got none at '{path}'; {CURE}")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy parses the header with Python's own tokenizer and zipfile
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LaunchError(f"{where}: must be a whole .npy file, got {reason}; {CURE}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        rule = "must be a .npy file of one array"
        raise LaunchError(f"{where}: {rule}, got a .npz at '{path}'; {CURE}")
    return array
