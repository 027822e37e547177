"""Who listens at each level of `check=`.

`shipped` is `full`, but that kernels may rely on what GPUs do and PTX does not promise, where
libraries of NVIDIA or DeepSeek that are in use do so too.
"""

from __future__ import annotations

from ..interface import Launch
from ..machine.events import Listener
from ..ptx.program import Program
from .boxes import BoxRules
from .coverage import Coverage
from .departures import Departures
from .early_uses import suspicions
from .fences.shared_rules import SharedRules
from .races import Races
from .scale_factors import ScaleRules
from .scale_uses import ScaleUses
from .tensor_map_proxy import TensorMapProxy
from .tensor_order import TensorOrder
from .unchecked_waits import unchecked_waits
from .unread_copies import UnreadCopies
from .unread_stores import UnreadStores
from .unread_sums import UnreadSums
from .unused_sums import unused_sums

CHECKS = ("off", "fast", "shipped", "full")


def listeners(launch: Launch, check: str) -> list[Listener]:
    """The checks of a level, in the order in which they are told: the first verdict counts."""
    departures = Departures(launch, strict=check == "full")
    if check == "off":
        return [departures]
    clocked = check in ("shipped", "full")
    rules = SharedRules(launch, clocked=clocked, lenient=check == "shipped")
    races = Races(launch, rules) if clocked else None
    scales = [ScaleRules(launch), ScaleUses(launch)]
    sums = [UnreadSums(launch), UnreadStores(launch)]
    others = [BoxRules(launch), *scales, *sums, TensorMapProxy()]
    listening = [
        departures,
        rules,
        *([races] if races else []),
        *others,
        TensorOrder(launch, races, rules),
    ]
    return [*listening, UnreadCopies(launch), Coverage(launch)] if clocked else listening


def seen_in_text(program: Program) -> tuple[tuple[str, str], ...]:
    """(category, message) of each suspicion that a program's text gives, at any level."""
    return (*suspicions(program), *unchecked_waits(program), *unused_sums(program))
