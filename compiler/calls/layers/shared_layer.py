"""Linear layers on DTensors that need no communication: the rank's own product.

    first call      torch's DTensor runs the operator, and says how its result is cut
    later calls     the product of the local tensors, as a DTensor of that cut

torch propagates cuts, asks its dispatcher twice and wraps the result at every call, which takes
longer than to launch a kernel. Here a result's cut is remembered for the cuts of the operands, if a
rule of `sharding.py` says that the local product of these is that of the result: then nothing is to
be exchanged. All else is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from ..kernels.lookup import SEEN_KEPT
from ..operators.sharding import Placements

PLACEMENTS = (Partial, Replicate, Shard)  # and none of their kinds, as of strided shards
_cuts: dict[Any, Any] = {}


def call(
    operator: Any,
    compute: Callable[..., torch.Tensor],
    rules: Callable[..., list[Placements]],
    *operands: Any,
) -> torch.Tensor:
    """operator(*operands), of DTensors, plain tensors or None.

    compute: what the operator does with local tensors.
    rules: the cuts of results and operands, as `register_sharding` asks for them.
    """
    if not all(each is None or type(each) is DTensor for each in operands):
        return operator(*operands)
    key = operator, *(None if each is None else each._spec for each in operands)
    cut = _cuts.get(key)
    if cut is None:
        result = operator(*operands)
        if len(_cuts) >= SEEN_KEPT:
            _cuts.clear()
        _cuts[key] = result._spec if is_local(rules(*operands), operands, result) else False
        return result
    local = [None if each is None else each._local_tensor for each in operands]
    if cut is False or not all(each is None or _is_plain(each) for each in local):
        return operator(*operands)
    with torch.no_grad():  # what is recorded is recorded of the DTensors
        return DTensor(compute(*local), cut, requires_grad=False)


def is_local(rules: list[Placements], operands: Sequence[Any], result: Any) -> bool:
    """Whether the ranks' results of their own operands are the result, by a rule for each dim of
    the mesh, and this rank takes part."""
    given = [each for each in (result, *operands) if each is not None]
    mesh = result.device_mesh
    if any(each.device_mesh != mesh for each in given) or mesh.get_coordinate() is None:
        return False
    known = [[c, *(cut for cut in of_all if cut is not None)] for (c,), of_all in rules]
    of_dims = zip(*(each.placements for each in given), strict=True)
    return all(list(cuts) in known and _are_plain(cuts) for cuts in of_dims)


def _are_plain(cuts: Sequence[Any]) -> bool:
    return all(type(each) in PLACEMENTS for each in cuts)


def _is_plain(local: torch.Tensor) -> bool:
    """Whether it is there: what a collective has yet to bring is a tensor of another type."""
    return type(local) in (torch.Tensor, torch.nn.Parameter)
