"""tilewright in torch.compile.

    enable, disable     let Inductor use the provider, or no longer
    report              what was done with each product, and why

`torch.compile(model, backend="tilewright")` needs neither. torch is imported at the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.inductor.report import Report

__all__ = ["disable", "enable", "report"]


def enable(**options: Any) -> None:
    """Let every torch.compile of this process use the provider.

    options: device, target, race, processes and math, as `options=` of `backend="tilewright"` has
        them (docs/torch.md).

    Raises OptionError for an unknown option or a torch that has no place for it.
    """
    from .compiler.inductor.backend import enable as enable_provider

    enable_provider(**options)


def disable() -> None:
    """Leave every product to Inductor again."""
    from .compiler.inductor.backend import disable as disable_provider

    disable_provider()


def report() -> Report:
    """The products of the graphs that this process compiled: str() of it is a table."""
    from .compiler.inductor.report import report as found

    return found()
