"""In which type torch computes an elementwise operator: f32 for bf16 and f16 (`opmath`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

NARROW = (torch.bfloat16, torch.float16)


def in_f32(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of bf16 or f16 in f32, rounded once."""

    @functools.wraps(function)
    def wide(x: torch.Tensor, *others: Any, **options: Any) -> Any:
        if x.dtype not in NARROW:
            return function(x, *others, **options)
        tensors = [each for each in others if isinstance(each, torch.Tensor)]
        if any(each.dtype != x.dtype for each in tensors):
            return NotImplemented
        others = tuple(each.float() if isinstance(each, torch.Tensor) else each for each in others)
        result = function(x.float(), *others, **options)
        return result if result is NotImplemented else result.to(x.dtype)

    return wide


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function where it is of floats of one type: torch promotes others first."""

    @functools.wraps(function)
    def checked(*values: Any, **options: Any) -> Any:
        tensors = [each for each in values if isinstance(each, torch.Tensor)]
        return function(*values, **options) if of_one_float(*tensors) else NotImplemented

    return checked


def of_one_float(*values: Any) -> bool:
    """Whether all are floats of one type."""
    dtypes = {each.dtype for each in values}
    return len(dtypes) == 1 and dtypes.pop().is_floating_point
