"""Names for the values of an `sm.kernel`, from its launch: its parameters and its mbarriers."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..dialects.mlir import ir
from ..runtime.ptx_sizes import BARRIER_BYTES


class Barriers(NamedTuple):
    """The mbarriers of one name, `count` from byte `offset` of shared memory on."""

    offset: int
    count: int
    name: str


class LaunchNames(NamedTuple):
    """Names of the parameters, in their order, and of the mbarriers."""

    parameters: list[str]
    barriers: list[Barriers]

    @staticmethod
    def of(kernel: ir.Operation) -> LaunchNames:
        """Those of a kernel; none if its launch has another form, which the lowering refuses."""
        try:
            launch = json.loads(ir.StringAttr(kernel.attributes["launch"]).value)
            return LaunchNames(
                [_parameter(each) for each in launch["parameters"]],
                [
                    Barriers(int(each["offset_bytes"]), int(each["count"]), str(each["name"]))
                    for each in launch["names"]["barriers"]
                ],
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return LaunchNames([], [])

    def at(self, byte: int) -> str | None:
        """The name of the mbarrier at a byte of shared memory, with its slot if there are several;
        None if there is none."""
        for offset, count, name in self.barriers:
            slot, rest = divmod(byte - offset, BARRIER_BYTES)
            if 0 <= slot < count and rest == 0:
                return f"{name}{slot}" if count > 1 else name
        return None

    def of_slots(self, byte: int) -> str | None:
        """The name of the mbarriers that begin at a byte, one of which a slot picks."""
        return next((each.name for each in self.barriers if each.offset == byte), None)


def _parameter(parameter: dict[str, Any]) -> str:
    kind = parameter["kind"]
    if kind == "tensor_map":
        return f"{parameter['tensor']}_map"
    return str(parameter.get("tensor") or parameter.get("size") or kind)
