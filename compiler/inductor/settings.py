"""Options of the backend, from `options=` of torch.compile or of `enable`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from ...dialects.errors import OptionError
from ...dialects.record import record
from ...dialects.target import find_target
from ...runtime.math_policies import POLICIES

DEVICES = ("cuda", "emulator")


@record
class Settings:
    """How regions are found and judged.

    device: "cuda" takes regions of tensors on a GPU; "emulator" those in the CPU's memory, which
        run on the emulator.
    target: the chip; by default that of the GPU, and sm_100a on the emulator.
    race: whether a region is measured against what Inductor makes of it, and the faster one kept.
        On the emulator nothing is measured, and every region is taken.
    processes: how many compile at once; 0 for as many as there are processors.
    math: how exact functions of an epilogue are, as for `matmul`; "" for its default.
    """

    device: str = "cuda"
    target: str = ""
    race: bool = True
    processes: int = 0
    math: str = ""

    def __post_init__(self) -> None:
        _check("device", self.device, DEVICES)
        _check("math", self.math, ("", *POLICIES))
        _check("race", self.race, (True, False))
        if type(self.processes) is not int or self.processes < 0:
            rule = "processes must be a number of processes, or 0 for one a processor"
            raise OptionError(f"torch: {rule}, got {self.processes!r}")
        if self.target:
            find_target(self.target)

    def key(self) -> str:
        """What graphs that were made under other settings differ in."""
        return repr(sorted(asdict(self).items()))


NAMES = tuple(field.name for field in fields(Settings))


def split_options(options: Mapping[str, Any] | None) -> tuple[Settings, dict[str, Any]]:
    """Our settings of `options=` of torch.compile, and what is left of it for Inductor."""
    given = dict(options or {})
    ours = {name: given.pop(name) for name in NAMES if name in given}
    return Settings(**ours), given


def _check(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known or (isinstance(value, int) and not isinstance(value, bool)):
        said = ", ".join(repr(each) for each in known)
        raise OptionError(f"torch: {name} must be one of {said}, got {value!r}")
