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
    def wide(*values: Any, **options: Any) -> Any:
        dtypes = [each.dtype for each in values if isinstance(each, torch.Tensor)]
        if dtypes[0] not in NARROW:
            return function(*values, **options)
        if any(each != dtypes[0] for each in dtypes):
            return NotImplemented
        wider = [each.float() if isinstance(each, torch.Tensor) else each for each in values]
        result = function(*wider, **options)
        return result if result is NotImplemented else result.to(dtypes[0])

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


def of_promoted_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of two tensors of floats, in the type that torch promotes them to."""

    @functools.wraps(function)
    def promoted(a: torch.Tensor, b: torch.Tensor) -> Any:
        if not (a.is_floating_point() and b.is_floating_point()):
            return NotImplemented
        if a.dtype == b.dtype:
            return function(a, b)
        result = torch.result_type(a, b)
        return function(a.to(result), b.to(result))

    return promoted
