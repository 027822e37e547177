"""A number about a chip, with its source."""

from __future__ import annotations

from typing import Any


class Figure(float):
    """A number about the chip with its unit and source; `assumed` if no source states it."""

    unit: str
    source: str
    assumed: bool

    def __new__(cls, value: float, unit: str, source: str, assumed: bool = False) -> Figure:
        figure = super().__new__(cls, value)
        figure.unit, figure.source, figure.assumed = unit, source, assumed
        return figure

    def as_dict(self) -> dict[str, Any]:
        """The number, its unit and source, for JSON."""
        return {"value": float(self)} | vars(self)
