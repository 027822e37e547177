"""`weight_only_mm`: 16-bit activations times 8-bit or 4-bit weights with group scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ....dialects.errors import OptionError
from ....runtime.tracing import is_traced, is_watched
from ..dense.fused import like_of
from ..kernels.lookup import How, records_gradients
from ..operands.operands import check_operands, check_options, check_tensors, given, result_type
from .weight_product import WIDE, Weights, multiply_weights, weights_of


def weight_only_mm(
    a: Any,
    b: Any,
    scales: Any = None,
    *,
    group_size: int | None = None,
    zeros: Any = None,
    b_dtype: str | None = None,
    out_dtype: Any = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
    m: str | None = None,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
) -> Any:
    """a [..., m, k] times narrow weights [n, k], which are converted exactly and scaled by groups
    along K, in one kernel: [..., m, n].

    a: bfloat16 or float16. All arguments are torch tensors.
    b: int8, float8_e4m3fn or float8_e5m2 [n, k]; or uint8 [n, k / 2] with two 4-bit weights per
        byte along K, the first in the low bits.
    scales: bfloat16, float16 or float32 [n, k / group_size], or [n] for all of K; None for none.
    group_size: the number of elements of K that share a scale: 32, 64, 128 or k; by default that
        which the shape of scales implies.
    zeros: uint8 of the shape of scales, from 0 to 15, subtracted from u4 weights before scaling.
    b_dtype: "s4" or "u4" for a uint8 b; by default u4 if there are zeros, else s4.
    out_dtype: "bf16", "f16", "f32", "e4m3" or "e5m2", or a torch dtype; by default that of a.
    epilogue, operands: as for `matmul`, a function of the f32 accumulator and of other tensors.
    m: "dynamic" for a kernel that takes any number of rows. Operands of an epilogue are then a
        single number or one per column.
    target, pipeline, preset: as for `matmul`.

    If torch compiles or records gradients, the product is an operator of torch, without an
    epilogue. Its gradient, of a alone, is torch's product with dequantized weights. Raises
    OptionError for arguments that do not go together, CompileError if the product cannot be
    compiled, DeviceError if it cannot be launched.
    """
    texts = {"target": target, "pipeline": pipeline, "preset": preset, "b_dtype": b_dtype, "m": m}
    check_options("weight_only_mm", out_dtype=out_dtype, **texts)
    if epilogue is not None and not callable(epilogue):
        got = type(epilogue).__name__
        rule = "epilogue must be a function of acc and operands"
        raise OptionError(f"weight_only_mm: {rule}, got {got}")
    check_tensors("weight_only_mm", a=a, b=b, **given(scales=scales, zeros=zeros))
    check_operands("weight_only_mm", operands)
    if epilogue is None and operands:
        rule = "operands are those of an epilogue, got none"
        raise OptionError(f"weight_only_mm: {rule}; pass epilogue=")
    weights = weights_of(b, scales, zeros, group_size, b_dtype)
    if str(a.dtype) not in WIDE:
        raise OptionError(f"weight_only_mm: a must be bfloat16 or float16, got {a.dtype}")
    if len(a.shape) < 1 or a.shape[-1] != weights.k:
        raise OptionError(f"weight_only_mm: a must be [..., m, {weights.k}], got {list(a.shape)}")
    _check_rows(m, weights, operands)
    if _is_seen(a, weights, operands):
        return _seen_by_torch(a, weights, epilogue, (out_dtype, m, target, pipeline, preset))
    how = How(result_type(out_dtype), target or "", pipeline or "", preset or "", m or "")
    return multiply_weights(a, weights, how, epilogue, operands)


def _check_rows(m: str | None, weights: Weights, operands: Sequence[Any]) -> None:
    """Check that no operand of the epilogue has one element per row, if the kernel takes any M."""
    if m not in (None, "dynamic"):
        raise OptionError(f'weight_only_mm: m must be None or "dynamic", got {m!r}')
    likes = [like_of(*each) for each in enumerate(operands)]
    sizes = [list(each.shape) for each in likes if prod(each.shape) not in (1, weights.n)]
    if m and sizes:
        rule = "operands must be one number or one for each column where m is dynamic"
        raise OptionError(f"weight_only_mm: {rule}, got {sizes[0]}; leave m out")


def _is_seen(a: Any, weights: Weights, operands: Sequence[Any]) -> bool:
    """Whether torch must see the call, to trace it, to watch it or to record gradients."""
    values = (a, *weights.tensors, *operands)
    if is_traced() or is_watched(*values):
        return True
    return any(records_gradients(each, each) for each in values)


def _seen_by_torch(
    a: Any, weights: Weights, epilogue: Callable[..., Any] | None, asked: tuple[Any, ...]
) -> Any:
    """The product as an operator of torch, which has a gradient for a alone."""
    from .weight_operator import product

    out_dtype, m, *how = asked
    if epilogue is not None or any(how):
        rule = "torch sees products without an epilogue, a target and a pipeline"
        cure = "call it under no_grad, or compute the epilogue outside"
        raise OptionError(f"weight_only_mm: {rule}, got a call with one; {cure}")
    b, scales, zeros = (*weights.tensors, None, None)[:3]
    return product(a, b, scales, zeros, None, weights.dtype, result_type(out_dtype), m or "")
