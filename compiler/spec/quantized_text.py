"""The text of a store of C with block scales."""

from __future__ import annotations

from ...dialects.dtypes import DTYPES, SCALE_ROUNDINGS
from .problem import Problem


def scales_of_c(spec: Problem) -> list[str]:
    """The type of the scales of C, if it has some."""
    if not spec.quantized:
        return []
    dtype, shape = spec.arrays()["c_scales"]
    return [f"tensor<{'x'.join(map(str, shape))}x{DTYPES[dtype].mlir}>"]


def quantize_line(spec: Problem, result: str) -> tuple[str, str] | None:
    """The op that makes an element of C of the f32 of that name, and the element's type."""
    form = spec.quantized
    if form is None:
        return None
    rounding = spec.scale_rounding or SCALE_ROUNDINGS[form.scale][0]
    element, scale = DTYPES[form.element].mlir, DTYPES[form.scale].mlir
    how = f'block = {form.block} : i64, rounding = "{rounding}", scale = {scale}'
    return f'"tile.quantize"({result}) {{{how}}} : (f32) -> {element}', element
