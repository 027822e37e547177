"""Checks of a spec with narrow weights: each rule raises `OptionError`."""

from __future__ import annotations

from ...dialects.dtypes import DTYPES, WEIGHT_SCALES, WIDE_DTYPES, group_refusal
from ...dialects.errors import OptionError
from .problem import OF_WEIGHTS, Problem

PACKED = ("s4", "u4")
WANTED = {"batch": 0, "groups": 0, "products": 1, "a_major": "k", "b_major": "k", "ldb": 0}


def check_weights(spec: Problem) -> None:
    """Scales come with narrow weights of one matrix, zero points with scales of u4."""
    if not spec.has_weights:
        _refuse_weights(spec)
        return
    for name, value in WANTED.items():
        if getattr(spec, name) != value:
            rule = (
                f"weights of {spec.b_dtype} beside {spec.a_dtype} must come with {name} = {value!r}"
            )
            raise OptionError(f"spec: {rule}, got {getattr(spec, name)!r}; lay them out so")
    if spec.adds_products or spec.quantized:
        what = "two-level sums" if spec.adds_products else f"a C of {spec.c_dtype}"
        raise OptionError(f"spec: weights of {spec.b_dtype} come without {what}; leave it out")
    if type(spec.group_size) is not int or type(spec.zero_points) is not bool:
        got = f"{spec.group_size!r} and {spec.zero_points!r}"
        raise OptionError(f"spec: group_size must be a number and zero_points a bool, got {got}")
    broken = group_refusal(spec.k, spec.group_size, bool(spec.scale_dtype))
    if broken:
        cure = "" if spec.scale_dtype else "; give scale_dtype"
        raise OptionError(f"spec: group_size {broken}{cure}")
    if spec.scale_dtype and spec.scale_dtype not in WEIGHT_SCALES:
        known = ", ".join(WEIGHT_SCALES)
        raise OptionError(f"spec: scale_dtype must be one of {known}, got {spec.scale_dtype!r}")
    if spec.zero_points and (spec.b_dtype != "u4" or not spec.scale_dtype):
        rule = "zero_points must come with b_dtype u4 and scales"
        raise OptionError(f"spec: {rule}, got {spec.b_dtype}; leave them out")
    if spec.k * DTYPES[spec.b_dtype].bits % 8:
        raise OptionError(f"spec: k must be whole bytes of {spec.b_dtype}, got {spec.k}; pad K")


def _refuse_weights(spec: Problem) -> None:
    """What is for narrow weights alone."""
    if spec.b_dtype in PACKED:
        wide = " or ".join(WIDE_DTYPES)
        raise OptionError(f"spec: a_dtype must be {wide} for {spec.b_dtype}, got {spec.a_dtype}")
    for name in OF_WEIGHTS:
        if getattr(spec, name):
            rule = f"{name} must come with b_dtype narrower than a_dtype"
            got = f"{spec.b_dtype} and {spec.a_dtype}"
            raise OptionError(f"spec: {rule}, got {got}; leave it out")
