"""The result of one `tilewright run`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...runtime.bundles.bundle import Bundle
    from ...runtime.judge.reference import Comparison
    from .references import Reference


@dataclass
class Obtained:
    """A kernel, and what it is held to; chosen: whether the compiler chose its schedule."""

    bundle: Bundle
    reference: Reference
    remarks: list[str] = field(default_factory=list)
    chosen: bool = False


@dataclass
class Outcome:
    """What one run found out; times are wall seconds."""

    obtained: Obtained
    comparison: Comparison
    report: Any
    run_seconds: float
    passes: list[tuple[str, float, str]]

    @property
    def bundle(self) -> Bundle:
        """The kernel that ran."""
        return self.obtained.bundle
