"""What a call of `matmul` asks for, as kernels are asked for it, and what no such call may ask.

`asked` is the tuple of the options that ASKED names, in that order: kernels are remembered by it.
Its `m` says which sizes are dynamic, one of ROWS, STACKS, BOTH, DEPTH or None.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ....dialects.dtypes import SCALED_FORMATS
from ....dialects.epilogue import NO_FUNCTION
from ....dialects.errors import OptionError
from ....runtime.math_policies import POLICIES
from ..kernels.lookup import BOTH, DEPTH, OF_STACKS, ROWS, STACKS, How
from ..operands.operands import check_dense, check_operands, check_options, operand_of, result_type
from ..operands.precision import check_precision
from .quantized_product import is_format

NO_STACK = (
    "matmul: b must be a stack of matrices with batch='dynamic', got {}; "
    "take m='dynamic' where all share b"
)
ASKED = ("out_dtype", "target", "pipeline", "preset", "m", "precision")


def options_of(asked: tuple[Any, ...]) -> dict[str, Any]:
    """The keywords of `matmul` that ask for the same."""
    options: dict[str, Any] = dict(zip(ASKED, asked, strict=True))
    if options["m"] == DEPTH:
        options |= {"m": None, "k": "dynamic"}
    if options["m"] in OF_STACKS:
        options |= {"m": ROWS if options["m"] == BOTH else None, "batch": "dynamic"}
    return options


def how_of(asked: tuple[Any, ...]) -> How:
    """What is asked of the compilation, with the name of C's type."""
    out_dtype, target, pipeline, preset, m, precision = asked
    named = target or "", pipeline or "", preset or ""
    return How(result_type(out_dtype), *named, m or "", precision=precision or "")


def of_any_depth(k: str, other: Any, out_dtype: Any) -> str:
    """The size that is dynamic, as kernels are asked for it; refuses what has no such kernels."""
    if k != "dynamic":
        raise OptionError(f"matmul: k must be 'dynamic', got {k!r}; leave it out")
    if other is not None:
        raise OptionError("matmul: k must be dynamic alone, got m or batch too; leave one out")
    if is_format(out_dtype):
        rule = f"k must be None for a result of {out_dtype}"
        raise OptionError(f"matmul: {rule}, got {k!r}; leave it out")
    return DEPTH


def of_any_batch(b: Any, batch: str, m: Any, out_dtype: Any) -> str:
    """The sizes that are dynamic, as kernels are asked for them; refuses what has no other
    matrices."""
    if batch != "dynamic":
        raise OptionError(f"matmul: batch must be 'dynamic', got {batch!r}; leave it out")
    if m not in (None, ROWS):
        raise OptionError(f"matmul: m must be 'dynamic', got {m!r}; leave it out")
    if is_format(out_dtype):
        rule = f"batch must be None for a result of {out_dtype}"
        raise OptionError(f"matmul: {rule}, got {batch!r}; leave it out")
    check_dense("matmul", b=b)
    if isinstance(b, (tuple, list)) or len(getattr(b, "shape", ())) < 3:
        got = "a pair" if isinstance(b, (tuple, list)) else list(getattr(b, "shape", ()))
        raise OptionError(NO_STACK.format(got))
    return STACKS if m is None else BOTH


def check_call(
    a: Any,
    out: Any,
    asked: tuple[Any, ...],
    math: str | None,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[Any],
) -> None:
    """Refuse what no call takes, whatever its product."""
    check_options("matmul", **options_of(asked))
    *_, precision = asked
    if precision is not None:
        check_precision(a, precision)
    if math not in (None, *POLICIES):
        raise OptionError(
            f"matmul: math must be {' or '.join(POLICIES)}, got {math!r}; leave it out"
        )
    if math is not None and epilogue is None:
        raise OptionError(f"matmul: {NO_FUNCTION}")
    check_operands("matmul", operands)
    _check_out(out)


def check_plain(b: Any, operands: Sequence[Any]) -> None:
    """Refuse what only an epilogue reads."""
    if isinstance(b, (tuple, list)):
        for each in b:
            operand_of("b", each)
        raise OptionError(
            "matmul: two b are for an epilogue of both sums, got none; pass epilogue="
        )
    if len(operands):
        raise OptionError("matmul: operands are those of an epilogue, got none; pass epilogue=")


def check_quantized(
    out_dtype: Any, m: Any, epilogue: Callable[..., Any] | None, operands: Sequence[Any]
) -> None:
    """Refuse what does not go with a result that has scales of blocks."""
    if not is_format(out_dtype):
        known = ", ".join(SCALED_FORMATS)
        rule = f"scale_rounding must come with an out_dtype of {known}"
        raise OptionError(f"matmul: {rule}, got {out_dtype}; leave it out")
    if m is not None:
        raise OptionError(f"matmul: m must be None for a result of {out_dtype}, got {m!r}")
    if epilogue is None and len(operands):
        raise OptionError("matmul: operands are those of an epilogue, got none; pass epilogue=")
    if epilogue is not None and not callable(epilogue):
        got = type(epilogue).__name__
        raise OptionError(f"matmul: epilogue must be a function of acc and operands, got {got}")


def _check_out(out: Any) -> None:
    """Refuse outputs that torch would have to differentiate."""
    given = out if isinstance(out, (tuple, list)) else (out,)
    wanting = [each for each in given if getattr(each, "requires_grad", False)]
    if wanting and sys.modules["torch"].is_grad_enabled():
        raise OptionError("matmul: out must not require gradients, got one that does; drop out=")
