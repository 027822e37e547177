"""How f32 operands are multiplied: by `precision=`, or by torch's own setting."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

from ....dialects.dtypes import FMA, SPLITS
from ....dialects.errors import OptionError
from ....runtime.element_types import is_torch
from ....runtime.errors import PrecisionWarning
from ....runtime.tracing import is_traced
from ...pipeline import complete_pipeline
from ...spec import MatmulSpec
from .operands import operand_of, operand_type
from .torch_precision import asks_for_all_digits

PRECISIONS = ("tf32", *SPLITS, "ieee")
TYPES = {"ieee": "f32", **{name: name for name in SPLITS}}
"""What operands of f32 are, by the precision that is asked for; else tf32."""
ALL_DIGITS = "bf16x9"
"""The precision where none is asked for and torch's setting leaves out no digits."""


def check_precision(a: Any, precision: str) -> None:
    """Refuse a precision that there is none of, and one of operands that have no choice."""
    if precision not in PRECISIONS:
        known = " or ".join(PRECISIONS)
        raise OptionError(f"matmul: precision must be {known}, got {precision!r}; take ieee")
    is_tensor = is_traced() or is_torch(a)
    _check_type(operand_type("a", str(a.dtype)) if is_tensor else operand_of("a", a).dtype)


def set_precision(a: Any, pipeline: str | None, preset: str | None) -> str | None:
    """What torch's setting asks of a product with an `a` of f32, where the call asks for nothing.

    None where `a` is of another type or is traced, and where the caller names passes, which are
    those of one type. Arrays of others than torch are multiplied as its tensors are, and as by
    default where torch is not imported.
    """
    if pipeline or preset or is_traced():
        return None
    torch = sys.modules.get("torch")
    dtype = getattr(a, "dtype", None)
    if torch is not None and type(dtype) is torch.dtype:
        is_f32 = dtype is torch.float32
    else:
        is_f32 = str(dtype) == "float32"
    if not is_f32:
        return None
    return ALL_DIGITS if asks_for_all_digits(torch) else "tf32"


def with_precision(
    spec: MatmulSpec, precision: str, pipeline: str = "", preset: str = ""
) -> MatmulSpec:
    """The spec with f32 multiplied as it is asked for, by the call or by torch's setting.

    precision, pipeline, preset: as `matmul` takes them, "" where nothing is asked for. Of passes
    that are named torch's setting changes none: then a warning says what it asks for.
    """
    if spec.a_dtype != "tf32":
        if precision:
            _check_type(spec.a_dtype)
        return spec
    named = bool(pipeline or preset)
    if not (precision or named) and asks_for_all_digits(sys.modules.get("torch")):
        precision = ALL_DIGITS
    exact = TYPES.get(precision)
    if exact is not None:
        return replace(spec, a_dtype=exact, b_dtype=exact)
    if precision:
        _check_unit(pipeline, preset)
        return spec
    if preset:
        cure = "pass precision='bf16x9' or 'ieee' for all, '3xtf32' for nearly all, or 'tf32'"
        warn_of_tf32("matmul", cure)
    return spec


def warn_of_tf32(function: str, cure: str) -> None:
    """Say that operands of f32 are multiplied as tf32, where torch's own setting asks for more."""
    if asks_for_all_digits(sys.modules.get("torch")):
        rule = f"{function}: f32 operands are multiplied as tf32, by 10 fraction bits"
        warnings.warn(PrecisionWarning(f"{rule}, where torch multiplies all; {cure}"), stacklevel=3)


# What torch.compiler.assume_constant_result sets: torch.compile calls it when it traces a graph,
# which is of one setting. For another one it traces anew.
warn_of_tf32._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _check_type(dtype: str) -> None:
    if dtype != "tf32":
        rule = "precision must come with operands of f32"
        raise OptionError(f"matmul: {rule}, got {dtype}; leave it out")


def _check_unit(pipeline: str, preset: str) -> None:
    """Refuse passes by which threads multiply all digits of what shall be tf32."""
    if not (pipeline or preset):
        return
    calls = complete_pipeline(pipeline or None, preset or None, None, True)
    if any(call.name == "tiling" and ("mma", FMA) in call.options for call in calls):
        rule = "precision='tf32' must come with passes for a tensor core"
        raise OptionError(f"matmul: {rule}, got tiling{{mma={FMA}}}; take ieee")
