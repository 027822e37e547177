"""Inputs of a kernel that gpu_test.py checks, and runs of it on poisoned outputs."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tilewright.runtime.bundles.manifest import grouped_extent, operands, outputs
from tilewright.runtime.bundles.sizes import named, tensor_for
from tilewright.runtime.element_types import INTEGERS as DTYPES_OF_INTEGERS
from tilewright.runtime.element_types import torch_dtype
from tilewright.runtime.group_sizes import OFFSETS, ORDER, ROWS

NORMALS, INTEGERS = "normals", "integers"
GUARD = 1024  # elements on either side of a tensor, which keep its address a multiple of 16 bytes
INTEGER_MAX = 4
SCALES, ZEROS, ZEROS_BELOW = "scales", "zeros", 16  # of narrow weights

Inputs = dict[str, torch.Tensor]
BITS = {
    1: torch.int8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}  # their largest is a NaN of every float


def seed_of(name: str) -> int:
    """A seed that both machines derive from a kernel's name."""
    return zlib.crc32(name.encode())


def draw(manifest: Mapping[str, Any], seed: int, kind: str) -> Inputs:
    """The inputs by name, equal wherever they are drawn: the streams of RandomState are frozen."""
    stream = np.random.RandomState(seed)
    drawn = {}
    for each in (each for each in manifest["tensors"] if each["role"] == "input"):
        shape = each["shape"]
        dtype = torch_dtype(each["dtype"])
        if each["name"] == OFFSETS:
            numbers = np.sort(stream.randint(0, grouped_extent(manifest) + 1, shape))
        elif each["name"] == ROWS:  # some are no row's
            numbers = stream.randint(-2, operands(manifest)[0]["shape"][0] + 2, shape)
        elif each["name"] == ORDER:
            numbers = stream.permutation(shape[0])
        elif each["name"] == ZEROS and "weights" in manifest:
            numbers = stream.randint(0, ZEROS_BELOW, shape)
        elif kind == INTEGERS:
            numbers = stream.randint(-INTEGER_MAX, INTEGER_MAX + 1, shape)
        elif each["dtype"] in DTYPES_OF_INTEGERS:
            limits = torch.iinfo(dtype)
            numbers = stream.randint(limits.min, limits.max + 1, shape)
        else:
            numbers = stream.normal(size=shape)
        drawn[each["name"]] = torch.from_numpy(numbers).to(dtype)
    return drawn


def run_once(kernel: Any, inputs: Inputs, place: str) -> tuple[list[torch.Tensor], bool]:
    """One run on poisoned outputs: those on the CPU, and whether their guards are intact."""
    declared = [each for each in kernel.manifest["tensors"] if each["role"] == "input"]
    values = [guarded(each, place)[0].copy_(inputs[each["name"]]) for each in declared]
    pairs = [guarded(c, place) for c in outputs(kernel.manifest)]
    found, memories = [each[0] for each in pairs], [each[1] for each in pairs]
    kernel(*values, out=tuple(found) if len(found) > 1 else found[0])
    guards = [torch.cat([memory[:GUARD], memory[-GUARD:]]) for memory in memories]
    intact = all(bool((each == torch.iinfo(each.dtype).max).all()) for each in guards)
    return [output.cpu() for output in found], intact


def run_nothing(kernel: Any, values: Sequence[int], place: str) -> tuple[list[torch.Tensor], bool]:
    """A call of tensors without rows or matrices, in the midst of memory that is all NaN: its
    outputs, and whether that memory is as it was."""
    sizes = named(kernel.manifest, values)
    declared = [tensor_for(each, sizes) for each in kernel.manifest["tensors"]]
    inputs = [guarded(each, place)[0] for each in declared if each["role"] == "input"]
    places = [each for each in declared if each["role"] == "output"]
    pairs = [guarded(each, place) for each in places]
    found, memories = [each[0] for each in pairs], [each[1] for each in pairs]
    kernel(*inputs, out=tuple(found) if len(found) > 1 else found[0])
    intact = all(bool((each == torch.iinfo(each.dtype).max).all()) for each in memories)
    shaped = all(not each.numel() for each in found)
    return [each.cpu() for each in found], intact and shaped


def guarded(declared: Mapping[str, Any], place: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor as the manifest declares it, in the midst of memory that is all NaN; and the bits of
    that."""
    shape, strides = declared["shape"], declared["strides"]
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    span = 0 if 0 in shape else span
    dtype = torch_dtype(declared["dtype"])
    bits = BITS[dtype.itemsize]
    memory = torch.full((span + 2 * GUARD,), torch.iinfo(bits).max, dtype=bits, device=place)
    return memory.view(dtype).as_strided(shape, strides, GUARD), memory


def digest(found: Sequence[torch.Tensor]) -> str:
    """SHA-256 of the bits of outputs, row by row."""
    bits = [output.contiguous().view(BITS[output.itemsize]) for output in found]
    return hashlib.sha256(b"".join(each.numpy().tobytes() for each in bits)).hexdigest()
