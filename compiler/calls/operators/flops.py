"""FLOP counts of our operators, for torch's counter.

A FlopCounterMode adds them up. Inductor computes from them how long an operator takes, and so how
much of a collective it hides; an operator without a count would hide nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.flop_counter import register_flop_formula


def count_flops(operator: Any, formula: Callable[..., Any]) -> None:
    """Let torch count those of an operator: formula(*arguments, out_val=what it gave).

    A counter knows the operators that there were when it was made. One within which an operator is
    asked for first is told of it.
    """
    packet = operator.overloadpacket
    register_flop_formula(packet, get_raw=True)(formula)
    for mode in _get_current_dispatch_mode_stack():
        known = getattr(getattr(mode, "counter", None), "flop_registry", None)
        if isinstance(known, dict):
            known.setdefault(packet, formula)


def of_rows(a: torch.Tensor, *_: Any, out_val: torch.Tensor, **_others: Any) -> Any:
    """The operations of c = a·bᵀ: two for each element of c and each of a row of a."""
    return 2 * out_val.numel() * a.shape[-1]


def of_all_rows(a: torch.Tensor, *_: Any, out_val: torch.Tensor, **_others: Any) -> Any:
    """The operations of c = aᵀ·b over all rows: two for each element of c and each row of a."""
    return 2 * out_val.shape[-1] * a.numel()


def of_groups(
    a: torch.Tensor, b: torch.Tensor, *_: Any, out_val: torch.Tensor, **_others: Any
) -> Any:
    """The operations of a grouped product: groups of rows, or of K if b is a matrix."""
    return 2 * a.numel() * b.shape[-1] if b.dim() == 2 else of_rows(a, out_val=out_val)
