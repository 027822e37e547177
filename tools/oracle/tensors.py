"""Inputs by the types of a source's arguments, as the source sees them and as its kernel does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dialects.errors import CompileError
from ...runtime.element_types import INTEGERS, TORCH_NAMES, torch_dtype

POISON = -0x5A5A5A5B  # of outputs that have no NaN
TORCH = {
    "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
}  # fmt: skip
"""torch's names of MLIR's element types."""


def random_arguments(types: Sequence[tuple[str, tuple[int, ...]]], seed: int) -> list[Any]:
    """A contiguous torch tensor for each argument: normals, or integers of the whole range."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return [_random(element, shape, generator) for element, shape in types]


def _random(element: str, shape: Sequence[int], generator: Any) -> Any:
    import torch

    if element not in TORCH:
        known = ", ".join(TORCH)
        raise CompileError(f"reference: arguments must be of {known}, got {element}")
    dtype = getattr(torch, TORCH[element])
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    limits = torch.iinfo(dtype)
    high = min(limits.max, 2**62) + 1
    return torch.randint(max(limits.min, -(2**62)), high, shape, generator=generator, dtype=dtype)


def as_numbers(argument: Any) -> np.ndarray:
    """A torch tensor as float64, or as int64."""
    wide = argument.double() if argument.dtype.is_floating_point else argument.long()
    return wide.numpy()


def kernel_tensors(manifest: Mapping[str, Any], arguments: Sequence[Any]) -> dict[str, Any]:
    """What the kernel gets: the arguments that it says its inputs are, and a poisoned output.

    Raises CompileError where it names an argument that isn't there or has another shape or type.
    """
    return {
        declared["name"]: _output(declared)
        if declared["role"] == "output"
        else _input(declared, arguments)
        for declared in manifest["tensors"]
    }


def _input(declared: Mapping[str, Any], arguments: Sequence[Any]) -> Any:
    where = f"tensor '{declared['name']}'"
    place = declared["argument"]
    if place["index"] >= len(arguments):
        rule = f"must be one of {len(arguments)} arguments, got number {place['index']}"
        raise CompileError(f"{where}: {rule}")
    argument = arguments[place["index"]]
    seen = argument.swapaxes(-1, -2) if place["transposed"] else argument
    wanted = [declared["shape"], TORCH_NAMES[declared["dtype"]]]
    got = [list(seen.shape), str(seen.dtype).replace("int8", _byte(declared))]
    if got != wanted:
        raise CompileError(f"{where}: must be argument {place['index']}, {got}, got {wanted}")
    return _laid_out(seen, declared)


def _byte(declared: Mapping[str, Any]) -> str:
    """torch's byte that the manifest names: MLIR's i8 has no sign."""
    return "uint8" if declared["dtype"] == "u8" else "int8"


def _laid_out(seen: Any, declared: Mapping[str, Any]) -> Any:
    """The tensor with the strides and the sign that the kernel wants."""
    import torch

    dtype = torch_dtype(declared["dtype"])
    wanted = torch.empty_strided(declared["shape"], declared["strides"], dtype=dtype)
    return wanted.copy_(seen.view(dtype))


def _output(declared: Mapping[str, Any]) -> Any:
    import torch

    dtype = torch_dtype(declared["dtype"])
    made = torch.empty_strided(declared["shape"], declared["strides"], dtype=dtype)
    return made.fill_(POISON if declared["dtype"] in INTEGERS else torch.nan)
