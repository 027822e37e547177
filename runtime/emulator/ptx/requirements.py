"""Which `.target` and `.version` families of instructions need (PTX ISA §9.7, "Target ISA Notes").

What stands in no row is taken on every target. test/fuzz holds the rows against ptxas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import syntax

_TARGET = re.compile(r"sm_(\d+)([af]?)")
_PIECES = 3
"""Dotted pieces of the longest row."""


@dataclass(frozen=True)
class Need:
    """version: of PTX; chip: the number behind sm_; suffixes: of targets with features of one chip
    or family, where those without do not do; chips: if not every later one has it."""

    version: tuple[int, int]
    chip: int
    suffixes: str = ""
    chips: tuple[int, ...] = ()

    def met_by(self, module: syntax.Module) -> bool:
        """Whether a module's head allows the family; targets that are no sm_ number do."""
        found = [match for name in module.target if (match := _TARGET.fullmatch(name))]
        fits = [self._fits(int(match[1]), match[2]) for match in found]
        return module.version >= self.version and (not fits or any(fits))

    def _fits(self, chip: int, suffix: str) -> bool:
        named = suffix in self.suffixes if suffix else not self.suffixes
        within = chip in self.chips if self.chips else chip >= self.chip
        return within and (named or not self.suffixes)

    def __str__(self) -> str:
        names = [f"sm_{chip}{self.suffixes[:1]}" for chip in self.chips or (self.chip,)]
        chips = ", ".join(names) + ("" if self.chips else " or later")
        return f".target {chips} and .version {self.version[0]}.{self.version[1]}"


_CLUSTERS, _BULK = Need((7, 8), 90), Need((8, 0), 90)
NEEDS: dict[str, Need] = {
    "ldmatrix": Need((6, 5), 75),
    "movmatrix": Need((7, 8), 75),
    "cp.async": Need((7, 0), 80),
    "mbarrier": Need((7, 0), 80),
    "redux": Need((7, 0), 80),
    "createpolicy": Need((7, 4), 80),
    "mbarrier.try_wait": _CLUSTERS,
    "barrier.cluster": _CLUSTERS,
    "mapa": _CLUSTERS,
    "getctarank": _CLUSTERS,
    "griddepcontrol": _CLUSTERS,
    "stmatrix": _CLUSTERS,
    "mbarrier.expect_tx": _BULK,
    "mbarrier.complete_tx": _BULK,
    "cp.async.bulk": _BULK,
    "elect": _BULK,
    "fence.proxy.async": _BULK,
    "fence.mbarrier_init": _BULK,
    "st.async": Need((8, 1), 90),
    "wgmma": Need((8, 0), 90, "a", (90,)),
    "setmaxnreg": Need((8, 0), 90, "af"),
    "tensormap": Need((8, 3), 90, "af"),
    "clusterlaunchcontrol": Need((8, 6), 100),
    "st.bulk": Need((8, 6), 100),
    "tcgen05": Need((8, 6), 100, "af", (100, 101, 103, 110)),
}
"""By the first pieces of an opcode; the longest row counts."""


def unmet(opcode: str, module: syntax.Module) -> str | None:
    """What a module's head lacks for an instruction, as a rule with the head's values."""
    pieces = opcode.split(".", _PIECES)[:_PIECES]
    for length in range(len(pieces), 0, -1):
        name = ".".join(pieces[:length])
        if need := NEEDS.get(name):
            if need.met_by(module):
                return None
            version = ".".join(map(str, module.version))
            return f"{name} needs {need}, got {', '.join(module.target)} and {version}"
    return None
