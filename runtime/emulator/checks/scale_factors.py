"""Scale factors that contradict each other, or destroy a sum of products of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..interface import Cta, Launch
from ..machine.events import Listener


class ScaleRules(Listener):
    """Warns of NaN that scales only zeros, as behind the end of K, and so destroys a sum; and of
    factors of B that belong to the other half of its columns."""

    def __init__(self, launch: Launch):
        self._launch = launch

    def sums_scaled(self, cta: Cta, a: Any, b: Any, sums: Callable[[], np.ndarray]) -> None:
        empty = a.empty | b.empty
        rows, columns = ((each.nan & empty).any(axis=1) for each in (a, b))
        if not (rows.any() or columns.any()):
            return
        values = sums()
        if (np.isfinite(values) & (values != 0) & (rows[:, None] | columns[None, :])).any():
            names = [name for name, found in (("A", rows), ("B", columns)) if found.any()]
            self._launch.warn(
                "nan-scale",
                f"scale factors of {' and '.join(names)} are NaN where an operand has only zeros,"
                " as behind the end of K: 0 times NaN makes the accumulated sums NaN; fill these"
                " factors with other bytes, or leave the product out",
            )

    def product_scaled(self, product: Any, b: list[Any]) -> None:
        """In a pair, each CTA needs the factors of all columns of B (PTX ISA §9.7.16.10.7)."""
        factors = [each.factors for each in b]
        if any((each.view(np.uint32) != factors[0].view(np.uint32)).any() for each in factors):
            self._launch.warn(
                "scale-half",
                "scale factors of B differ between the CTAs of a pair, each of which needs those of"
                " all columns, not of its own half alone",
            )
        elif product.column_groups == 2 and _halves_are_alike(factors[0]):
            self._launch.warn(
                "scale-half",
                "scale factors of B are the same in both halves of the lanes of a pair with M = 128"
                ", which need those of the first and of the second half of its columns; copy them"
                " by .64x128b.warpx2::01_23",
            )


def _halves_are_alike(factors: np.ndarray) -> bool:
    """Whether the second half repeats the first, and not because all rows have one factor."""
    first, second = np.split(factors.view(np.uint32), 2)
    return bool((first == second).all() and (first != first[0]).any())
