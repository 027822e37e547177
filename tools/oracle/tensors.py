"""Inputs for a source and its kernel, by the types of the source's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dialects.errors import CompileError
from ...runtime.element_types import DTYPES, INTEGERS, TORCH_NAMES, torch_dtype
from ...runtime.judge.block_scales import decoded
from ...runtime.judge.gaps import empty

POISON = -0x5A5A5A5B  # of outputs that have no NaN
TORCH = {
    "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
}  # fmt: skip
"""torch's names of MLIR's element types."""
CODED = {"f4E2M1FN": "e2m1", "f6E2M3FN": "e2m3", "f6E3M2FN": "e3m2", "f8E8M0FNU": "ue8m0"}
"""Types of which tensors are of codes, by the judge's names; those below 8 bits lie packed."""
USUAL_POWERS = 120, 136
"""Codes of f8E8M0FNU whose products float32 holds."""
POSITIVE, NAN_CODE = 0x7F, {"f8E8M0FNU": 0xFF, "f8E4M3FN": 0x7F}


def random_arguments(
    types: Sequence[tuple[str, tuple[int, ...]]],
    seed: int,
    unread: Mapping[int, Any] | None = None,
) -> list[Any]:
    """A contiguous torch tensor for each argument: normals, codes, or integers of the whole range.

    Elements that nobody reads, which `unread` names by argument, are NaN where the type is one of
    scales. f8E4M3FN beside f4E2M1FN are scales without a sign.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    made = [_random(element, shape, generator) for element, shape in types]
    elements = {element for element, _ in types}
    for number, (element, _) in enumerate(types):
        if element == "f8E4M3FN" and "f4E2M1FN" in elements and "f8E8M0FNU" not in elements:
            made[number].view(torch.uint8).bitwise_and_(POSITIVE)
        if element in NAN_CODE and unread and number in unread:
            hidden = torch.from_numpy(unread[number])
            made[number].view(torch.uint8).masked_fill_(hidden, NAN_CODE[element])
    return made


def _codes(element: str, shape: Sequence[int], generator: Any) -> Any:
    """Random codes, of a type below 8 bits packed along the last dim."""
    import torch

    dtype = DTYPES[CODED[element]]
    if dtype.bits == 8:
        codes = torch.randint(*USUAL_POWERS, shape, generator=generator, dtype=torch.uint8)
        return codes.view(torch_dtype(dtype.name))
    *outer, last = shape
    if last * dtype.bits % 8:
        rule = f"rows of {element} must be whole bytes, got {last} elements"
        raise CompileError(f"reference: {rule}")
    packed = [*outer, last * dtype.bits // 8]
    codes = torch.randint(0, 256, packed, generator=generator, dtype=torch.uint8)
    return codes.view(torch_dtype(dtype.name))


def _random(element: str, shape: Sequence[int], generator: Any) -> Any:
    import torch

    if element in CODED:
        return _codes(element, shape, generator)
    if element not in TORCH:
        known = ", ".join((*TORCH, *CODED))
        raise CompileError(f"reference: arguments must be of {known}, got {element}")
    dtype = getattr(torch, TORCH[element])
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    limits = torch.iinfo(dtype)
    high = min(limits.max, 2**62) + 1
    return torch.randint(max(limits.min, -(2**62)), high, shape, generator=generator, dtype=dtype)


def as_numbers(argument: Any, element: str = "") -> np.ndarray:
    """A torch tensor as float64, or as int64; an MLIR element type says of codes what they mean."""
    if element in CODED:
        return decoded(argument, CODED[element])
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
    got = [list(seen.shape), str(seen.dtype).replace("torch.int8", _byte(declared))]
    if got != wanted:
        raise CompileError(f"{where}: must be argument {place['index']}, {got}, got {wanted}")
    return _laid_out(seen, declared)


def _byte(declared: Mapping[str, Any]) -> str:
    """torch's byte that the manifest names: MLIR's i8 has no sign."""
    return "torch.uint8" if declared["dtype"] == "u8" else "torch.int8"


def _laid_out(seen: Any, declared: Mapping[str, Any]) -> Any:
    """The tensor with the strides and the sign that the kernel wants."""
    import torch

    dtype = torch_dtype(declared["dtype"])
    wanted = torch.empty_strided(declared["shape"], declared["strides"], dtype=dtype)
    if dtype.itemsize == 1:  # torch copies no tensor of some of these types
        wanted.view(torch.uint8).copy_(seen.view(torch.uint8))
        return wanted
    return wanted.copy_(seen.view(dtype))


def _output(declared: Mapping[str, Any]) -> Any:
    import torch

    made = empty(declared)
    return made.fill_(POISON if declared["dtype"] in INTEGERS else torch.nan)
