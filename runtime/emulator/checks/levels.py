"""Who listens at each level of `check=`."""

from __future__ import annotations

from ..interface import Launch
from ..machine.events import Listener
from .boxes import BoxRules
from .fences.shared_rules import SharedRules
from .races import Races
from .scale_factors import ScaleRules
from .scale_uses import ScaleUses
from .tensor_map_proxy import TensorMapProxy
from .tensor_order import TensorOrder

CHECKS = ("off", "fast", "full")


def listeners(launch: Launch, check: str) -> list[Listener]:
    """The checks of a level, in the order in which they are told: the first verdict counts."""
    if check == "off":
        return []
    rules = SharedRules(launch, clocked=check == "full")
    races = Races(launch, rules) if check == "full" else None
    others = [BoxRules(launch), ScaleRules(launch), ScaleUses(launch), TensorMapProxy()]
    return [rules, *([races] if races else []), *others, TensorOrder(launch, races)]
