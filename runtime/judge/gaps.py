"""The padding between rows and matrices of an output, which a kernel must not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..element_types import torch_dtype
from ..errors import DeviceError

GAP_BYTE = 0x5A


def empty(tensor: Mapping[str, Any]) -> Any:
    """A torch tensor of a manifest's shape, strides and dtype, with known bytes in its gaps."""
    import torch

    dtype = torch_dtype(tensor["dtype"])
    made = torch.empty_strided(tensor["shape"], tensor["strides"], dtype=dtype)
    flat(made).view(torch.uint8).fill_(GAP_BYTE)
    return made


def refuse_written_gaps(name: str, tensor: Any) -> None:
    """Raise DeviceError where a kernel wrote into the gaps of an output that `empty` made."""
    import torch

    bits = flat(tensor).cpu().view(torch.uint8).reshape(-1, tensor.element_size())
    inside = torch.zeros(len(bits), dtype=torch.bool)
    inside.as_strided(tensor.shape, tensor.stride())[...] = True
    written = int((bits[~inside] != GAP_BYTE).any(1).sum())
    if written:
        rule = "elements between its rows must be left alone"
        raise DeviceError(f"tensor '{name}': {rule}, got {written} that were written")


def flat(tensor: Any) -> Any:
    """A tensor's memory from its first element to its last one."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided((1 + sum((extent - 1) * step for extent, step in steps),), (1,))
