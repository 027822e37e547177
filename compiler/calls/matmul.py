"""`matmul`: a kernel for these very arrays, compiled when they first come.

Torch is imported only where it must see the call, as it then has been already.
"""

from __future__ import annotations

from typing import Any

from ...dialects.errors import OptionError
from ...runtime.tracing import is_traced
from .kernels import How, is_seen_by_torch, multiply, recall
from .operands import result_type


def matmul(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    out_dtype: Any = None,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
) -> Any:
    """a [m, k] · b [n, k]ᵀ, as torch.nn.functional.linear(a, b): b's rows are the output's columns.

    Torch tensors, numpy arrays, or anything with DLPack: of bf16 or f16, of f32 (multiplied as
    tf32), of float8_e4m3fn or float8_e5m2, of int8 or uint8. Either major order of each is taken as
    it lies (pass `w.T` for a `w` stored k × n) where the target's MMA reads its type so; others,
    other strides and addresses that aren't multiples of 16 bytes are copied. Runs on the GPU that
    holds `a`, or on the emulator. `out` is [m, n], row-major; `out_dtype` ("bf16", "f16", "f32",
    "s32" or torch's) is a's unless told, bf16 for floats of 8 bits and s32 for integers. The kernel
    is compiled for `target` (the GPU's own; sm_100a on the emulator) by `pipeline` text, by
    `preset`, or by the schedule that the compiler chooses, and kept in memory and on disk. torch
    records gradients, and torch.compile keeps the call as one operator. Raises CompileError for
    what can't be compiled, DeviceError for what can't be launched.
    """
    asked = out_dtype, target, pipeline, preset
    kernel = None if is_traced() else recall(a, b, asked)
    if kernel is not None:
        return kernel(a, b, out=out)
    how = How(result_type(out_dtype), target or "", pipeline or "", preset or "")
    if is_seen_by_torch(a, b):
        from .matmul_operator import product

        return _into(out, product(a, b, how))
    return multiply(a, b, out, asked, how)


def _into(out: Any, result: Any) -> Any:
    """What torch made, in `out` if that is given."""
    if out is None:
        return result
    if out.requires_grad:
        raise OptionError("matmul: out must not require gradients, got one that does; drop out=")
    return out.copy_(result)
