"""One GPU of this machine."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from .architecture import Capability, target_of
from .captures import Captures
from .driver import Driver
from .workspaces import Workspaces


@dataclass(frozen=True)
class Gpu:
    """One GPU and its primary context, which torch uses too.

    `capability` is (major, minor), `shared_bytes` the most shared memory that a CTA may have,
    `driver_version` the release of CUDA that the driver is for, `functions` what is loaded.
    """

    index: int
    name: str
    capability: Capability
    shared_bytes: int
    driver_version: str
    context: Any
    driver: Driver
    functions: dict[Any, Any] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def workspaces(self) -> Workspaces:
        """Memory that launches take besides their tensors."""
        return Workspaces(self.captures, self.index)

    @functools.cached_property
    def captures(self) -> Captures:
        """What graphs capture of its streams."""
        return Captures(self.driver, self.context)

    def __str__(self) -> str:
        return f"cuda:{self.index} ({self.name})"

    @property
    def target(self) -> str:
        """The compilation target that uses all of this GPU, such as "sm_90a"."""
        return target_of(self.capability)
