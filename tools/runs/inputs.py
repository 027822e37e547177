"""Tensors to run a kernel on: asymmetric random inputs, identities, poisoned outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...runtime.bundles.manifest import grouped_extent, operands
from ...runtime.element_types import DTYPES, INTEGERS, torch_dtype
from ...runtime.group_sizes import OFFSETS, ORDER, ROWS
from ...runtime.host_memory import refuse_large
from ...runtime.judge.gaps import empty, flat
from .scaled_inputs import BLOCKS, fill_codes, fill_identity, hide_padding

ZEROS, ZEROS_BELOW = "zeros", 16  # zero points of weights of four bits
POISON = -0x5A5A5A5B  # of outputs that have no NaN
POISON_BYTE = 0xFF  # of scales NaN, of elements that have none the least number


def make_tensors(
    manifest: Mapping[str, Any], seed: int, identity: str | None = None
) -> dict[str, Any]:
    """A torch tensor for every tensor of the manifest, with its shape, strides and dtype.

    Inputs are normally distributed, fixed by `seed`, and outputs all NaN; integers are of every
    value that their type has, zero points of weights 0 to 15, and outputs of them all one number.
    `identity` "a" or "b" makes that operand a (rectangular) identity, so that the other one is
    checked alone. Raises LaunchError where they surely do not fit into memory.
    """
    refuse_large(manifest["tensors"])
    import torch

    generator = torch.Generator().manual_seed(seed)
    tensors = {tensor["name"]: empty(tensor) for tensor in manifest["tensors"]}
    for tensor in manifest["tensors"]:
        _fill(tensors[tensor["name"]], tensor, manifest, generator)
    hide_padding(manifest, tensors)
    if identity:
        _make_identity(operands(manifest)["ab".index(identity)], tensors)
    return with_shared_arguments(manifest, tensors)


def _fill(values: Any, tensor: Mapping[str, Any], manifest: Mapping[str, Any], seeded: Any) -> None:
    """Poison an output; else draw what the kernel takes under the tensor's name, or numbers."""
    import torch

    name, dtype = tensor["name"], tensor["dtype"]
    coded = dtype in BLOCKS or DTYPES[dtype].bits < 8
    if tensor["role"] == "output" and coded:
        values.view(torch.uint8).fill_(POISON_BYTE)
    elif tensor["role"] == "output":
        values.fill_(POISON if dtype in INTEGERS else torch.nan)
    elif coded:
        fill_codes(values, dtype, seeded)
    elif name == OFFSETS:
        values.copy_(_ends(grouped_extent(manifest), len(values), seeded))
    elif name == ROWS:
        values.copy_(_numbers(operands(manifest)[0]["shape"][0], len(values), seeded))
    elif name == ORDER:
        values.copy_(torch.randperm(len(values), generator=seeded))
    elif name == ZEROS and "weights" in manifest:
        values.copy_(torch.randint(0, ZEROS_BELOW, tensor["shape"], generator=seeded))
    else:
        values.copy_(_random(tensor, seeded))


def _make_identity(chosen: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    import torch

    if DTYPES[chosen["dtype"]].bits < 8:
        fill_identity(tensors[chosen["name"]], chosen["dtype"])
    else:
        tensors[chosen["name"]].copy_(torch.eye(*chosen["shape"][-2:]))


def _ends(rows: int, groups: int, generator: Any) -> Any:
    """Where groups of rows end. By the seed: anywhere, some of the groups empty, and rows left over
    after; out of order and beyond the rows at both ends; one group with nearly all rows."""
    import torch

    kind, chosen = generator.initial_seed() % 3, generator.initial_seed() // 3 % groups
    if kind == 1:
        return torch.randint(-rows, 2 * rows + 1, (groups,), generator=generator)
    ends = torch.randint(0, rows + 1, (groups,), generator=generator).sort().values
    if kind == 2:
        ends = torch.where(torch.arange(groups) < chosen, rows.bit_length() // 2, rows)
    ends[1::3] = ends[0::3][: len(ends[1::3])]
    return ends


def _numbers(rows: int, count: int, generator: Any) -> Any:
    """Numbers of rows: any, some more than once, and some that are no row's."""
    import torch

    numbers = torch.randint(0, rows, (count,), generator=generator)
    numbers[::7] = torch.randint(-(2**31), 2**31, numbers[::7].shape, generator=generator)
    return numbers


def with_shared_arguments(
    manifest: Mapping[str, Any], tensors: Mapping[str, Any]
) -> dict[str, Any]:
    """The tensors, those of one argument of the source being one tensor, or its transpose."""
    given: dict[int, tuple[Any, bool]] = {}
    shared = dict(tensors)
    for tensor in manifest["tensors"]:
        if "argument" in tensor:
            index, transposed = tensor["argument"]["index"], tensor["argument"]["transposed"]
            value, is_transposed = given.setdefault(index, (tensors[tensor["name"]], transposed))
            shared[tensor["name"]] = value if is_transposed == transposed else value.T
    return shared


def place_tensors(tensors: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The tensors with their strides at a place that torch names, copied only if they aren't."""
    return {name: _placed(tensor, place) for name, tensor in tensors.items()}


def _placed(tensor: Any, place: str) -> Any:
    import torch

    if tensor.device == torch.device(place):
        return tensor
    return flat(tensor).to(place).as_strided(tensor.shape, tensor.stride())


def _random(tensor: Mapping[str, Any], generator: Any) -> Any:
    """Numbers for a tensor: normals, or integers of the whole range of their type."""
    import torch

    if tensor["dtype"] not in INTEGERS:
        return torch.randn(tensor["shape"], generator=generator)
    limits = torch.iinfo(torch_dtype(tensor["dtype"]))
    return torch.randint(limits.min, limits.max + 1, tensor["shape"], generator=generator)
