"""Scale factors that are NaN where an operand has only zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..interface import Cta
from ..machine.events import Listener


class ScaleRules(Listener):
    """Warns of NaN that scales only zeros, as behind the end of K, and so destroys a sum."""

    def sums_scaled(self, cta: Cta, a: Any, b: Any, sums: Callable[[], np.ndarray]) -> None:
        empty = a.empty | b.empty
        rows, columns = ((each.nan & empty).any(axis=1) for each in (a, b))
        if not (rows.any() or columns.any()):
            return
        values = sums()
        if (np.isfinite(values) & (values != 0) & (rows[:, None] | columns[None, :])).any():
            names = [name for name, found in (("A", rows), ("B", columns)) if found.any()]
            cta.launch.warn(
                "nan-scale",
                f"scale factors of {' and '.join(names)} are NaN where an operand has only zeros,"
                " as behind the end of K: 0 times NaN makes the accumulated sums NaN; fill these"
                " factors with other bytes, or leave the product out",
            )
