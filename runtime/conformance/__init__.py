"""A conformance suite for matmuls: the cases that kernels get wrong, for any implementation.

    cases → operands → subject (a callable, a bundle, a launch file) → verdicts → table

A case is a size, a memory layout for each operand, the values in it, and a way to call. Every
element of the result is held against an interval around the product in float64; what lies around
the operands is NaN and must neither be used nor written. `tilewright conform` is its command line.
"""

from .campaign import FamilyResult, run_family
from .cases import FAMILIES, Case, Layout
from .subjects import Subject, subject_of
from .verdicts import Outcome, Verdict

__all__ = [
    "FAMILIES",
    "Case",
    "FamilyResult",
    "Layout",
    "Outcome",
    "Subject",
    "Verdict",
    "run_family",
    "subject_of",
]
