"""Sharding rules of our matmul for DTensor.

    c [m, n] = a [m, k] · b [n, k]ᵀ        stacks: a leading dim of each, or of b and c alone

    cut           a           b           c
    nowhere       Replicate   Replicate   Replicate
    rows          Shard(m)    Replicate   Shard(m)
    columns       Replicate   Shard(n)    Shard(n)
    depth         Shard(k)    Shard(k)    Partial
    stack         Shard(0)    Shard(0)    Shard(0)

    layer         x           weight      bias        c            of any dims before the rows
    nowhere       Replicate   Replicate   Replicate   Replicate
    rows          Shard(d)    Replicate   Replicate   Shard(d)     d any dim but the last
    columns       Replicate   Shard(n)    Shard(n)    Shard(-1)
    depth         Shard(-1)   Shard(k)    Partial     Partial

    its gradients gradient    weight      of x        gradient    x           of weight
    nowhere       Replicate   Replicate   Replicate   Replicate   Replicate   Replicate
    rows          Shard(d)    Replicate   Shard(d)    Shard(d)    Shard(d)    Partial
    columns       Shard(-1)   Shard(n)    Partial     Shard(-1)   Replicate   Shard(n)
    depth         Replicate   Shard(k)    Shard(-1)   Replicate   Shard(-1)   Shard(k)

Each is right for any one dim of a mesh, so all their products over its dims are. `depth` leaves
sums that DTensor adds up where they are next needed, in the type of C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

Placements = tuple[list[Any], list[Any]]  # of the result, and of all arguments
HOW_FIRST = 2  # of the operator's arguments; what they say changes the result's type


def shardings(a: Any, b: Any, *how: str) -> list[Placements]:
    """What `register_sharding` asks for; `a` and `b` have the shapes of the whole operands."""
    rest = [None] * len(how)
    m, n = a.ndim - 2, b.ndim - 2
    stack = max(m, n)
    found: list[Placements] = [
        ([Replicate()], [Replicate(), Replicate(), *rest]),
        ([Shard(stack)], [Shard(m), Replicate(), *rest]),
        ([Shard(stack + 1)], [Replicate(), Shard(n), *rest]),
        ([Partial()], [Shard(m + 1), Shard(n + 1), *rest]),
    ]
    if stack:
        of_a = Shard(0) if m else Replicate()
        found.append(([Shard(0)], [of_a, Shard(0), *rest]))
    return found


def shardings_of_layer(x: Any, weight: Any, bias: Any) -> list[Placements]:
    """The same of `tilewright::linear`."""
    last = x.ndim - 1
    rules: list[list[Any]] = [
        [Replicate(), Replicate(), Replicate(), Replicate()],
        *([Shard(dim), Shard(dim), Replicate(), Replicate()] for dim in range(last)),
        [Shard(last), Replicate(), Shard(0), Shard(0)],
        [Partial(), Shard(last), Shard(1), Partial()],
    ]
    return [([c], [of_x, of_w, None if bias is None else of_b]) for c, of_x, of_w, of_b in rules]


def shardings_of_input_gradient(gradient: Any, weight: Any) -> list[Placements]:
    """The same of `tilewright::linear_input_gradient`."""
    last = gradient.ndim - 1
    return [
        ([Replicate()], [Replicate(), Replicate()]),
        *(([Shard(dim)], [Shard(dim), Replicate()]) for dim in range(last)),
        ([Partial()], [Shard(last), Shard(0)]),
        ([Shard(last)], [Replicate(), Shard(1)]),
    ]


def shardings_of_weight_gradient(gradient: Any, x: Any) -> list[Placements]:
    """The same of `tilewright::linear_weight_gradient`."""
    last = gradient.ndim - 1
    return [
        ([Replicate()], [Replicate(), Replicate()]),
        *(([Partial()], [Shard(dim), Shard(dim)]) for dim in range(last)),
        ([Shard(0)], [Shard(last), Replicate()]),
        ([Shard(1)], [Replicate(), Shard(last)]),
    ]


def register_layer(
    operator: torch._ops.OpOverload,
    input_gradient: torch._ops.OpOverload,
    weight_gradient: torch._ops.OpOverload,
) -> None:
    """Tell DTensor of the rules for the operators of a linear layer."""
    _register(operator, shardings_of_layer)
    _register(input_gradient, shardings_of_input_gradient)
    _register(weight_gradient, shardings_of_weight_gradient)


def register(operator: torch._ops.OpOverload) -> None:
    """Tell DTensor of the rules for the operator of a product."""
    # By default what a call asks for, such as its out_dtype, is no part of the key by which DTensor
    # remembers a result's type.
    _register(operator, shardings).static_argnum = HOW_FIRST


def _register(operator: torch._ops.OpOverload, rules: Callable[..., list[Placements]]) -> Any:
    """Tell DTensor of rules; gives what it shall know of the arguments at each call."""
    register_sharding(operator)(rules)
    found = DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[operator]
    found.needs_pytree = False  # no argument is a list of tensors, which are looked for otherwise
    return found
