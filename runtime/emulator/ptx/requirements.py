"""Which `.target` and `.version` families of instructions need (PTX ISA §9.7, "Target ISA Notes"),
and their modifiers.

What stands in no row is taken on every target. test/fuzz holds the rows against ptxas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from . import syntax

_TARGET = re.compile(r"sm_(\d+)([af]?)")
_PIECES = 3
"""Dotted pieces of the longest row."""


@dataclass(frozen=True)
class Need:
    """version: of PTX; chip: the number behind sm_, 0 for any; suffixes: of targets with features
    of one chip or family, where those without do not do; chips: if not every later one has it."""

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
        version = f".version {self.version[0]}.{self.version[1]}"
        if not self.chip:
            return version
        names = [f"sm_{chip}{self.suffixes[:1]}" for chip in self.chips or (self.chip,)]
        chips = ", ".join(names) + ("" if self.chips else " or later")
        return f".target {chips} and {version}"


_AMPERE = Need((7, 0), 80)
_CLUSTERS, _BULK = Need((7, 8), 90), Need((8, 0), 90)
_BLACKWELL, _TENSOR = Need((8, 6), 100), Need((8, 6), 100, "af", (100, 101, 103, 110))
_SMALL_MMA = Need((8, 7), 120, "af", (120, 121))
_HOPPER, _FAMILY = Need((8, 6), 90), Need((8, 6), 100, "af", (100, 101, 103, 110, 120, 121))
_FP8_MMA = Need((8, 7), 89)
NEEDS: dict[str, Need] = {
    "ldmatrix": Need((6, 5), 75),
    "movmatrix": Need((7, 8), 75),
    "cp.async": _AMPERE,
    "mbarrier": _AMPERE,
    "redux": _AMPERE,
    "applypriority": Need((7, 4), 80),
    "discard": Need((7, 4), 80),
    "createpolicy": Need((7, 4), 80),
    "mbarrier.try_wait": _CLUSTERS,
    "barrier.cluster": _CLUSTERS,
    "mapa": _CLUSTERS,
    "getctarank": _CLUSTERS,
    "griddepcontrol": _CLUSTERS,
    "stmatrix": _CLUSTERS,
    "mbarrier.expect_tx": _BULK,
    "mbarrier.complete_tx": _BULK,
    "mbarrier.arrive.expect_tx": _BULK,
    "cp.async.bulk": _BULK,
    "cp.reduce.async": _BULK,
    "red.async": Need((8, 1), 90),
    "fence.proxy.tensormap::generic": Need((8, 3), 90),
    "fence.proxy.async::generic": _HOPPER,
    "fence.acquire": _HOPPER,
    "fence.release": _HOPPER,
    "fence.acq_rel.cluster": _CLUSTERS,
    "fence.sc.cluster": _CLUSTERS,
    "elect": _BULK,
    "fence.proxy.async": _BULK,
    "fence.mbarrier_init": _BULK,
    "st.async": Need((8, 1), 90),
    "wgmma": Need((8, 0), 90, "a", (90,)),
    "setmaxnreg": Need((8, 0), 90, "af"),
    "tensormap": Need((8, 3), 90, "af"),
    "tensormap.cp_fenceproxy": Need((8, 3), 90),
    "clusterlaunchcontrol": _BLACKWELL,
    "st.bulk": _BLACKWELL,
    "tcgen05": _TENSOR,
}
"""By the first pieces of an opcode; the longest row counts."""
MODIFIER_NEEDS: dict[tuple[str, ...], Need] = {
    ("bf16",): _AMPERE,
    ("bf16x2",): _AMPERE,
    ("tf32",): _AMPERE,
    ("cvt", "f16x2"): _AMPERE,
    **{(name, half): _AMPERE for name in ("min", "max") for half in ("f16", "f16x2")},
    **{(name, half): _CLUSTERS for name in ("add", "sub", "mul") for half in ("bf16", "bf16x2")},
    ("cvt", "rn", "tf32"): _CLUSTERS,
    ("cvt", "rz", "tf32"): _CLUSTERS,
    ("shared::cluster",): _CLUSTERS,
    ("prefetch", "tensormap"): _BULK,
    ("mbarrier", "relaxed"): _BULK,
    **{("mbarrier", name, "relaxed"): _HOPPER
       for name in ("arrive", "arrive_drop", "try_wait", "test_wait")},
    **{(name, vector): Need((8, 1), 90)
       for name in ("atom", "red") for vector in ("v2", "v4", "v8")},
    ("atom", "b128"): Need((8, 3), 90),
    ("f32x2",): _BLACKWELL,
    **{(name, "volatile", "local"): Need((9, 1), 0) for name in ("ld", "st")},
    ("red", "noftz", "f32"): Need((9, 4), 0),
    ("atom", "noftz", "f32"): Need((9, 4), 0),
    ("ld", "v8"): Need((8, 8), 100),
    ("st", "v8"): Need((8, 8), 100),
    **{(name, "v4", f"{kind}64"): Need((8, 8), 100) for name in ("ld", "st") for kind in "busf"},
    ("fma", "oob"): Need((8, 1), 90),
    **{(name, "f32", half): _BLACKWELL
       for name in ("add", "sub", "fma") for half in ("f16", "bf16")},
    ("cp", "cta_group::1"): _TENSOR,
    ("cp", "cta_group::2"): _TENSOR,
    ("cp", "tile::scatter4"): _TENSOR,
    ("cp", "tile::gather4"): Need((8, 6), 100),
    ("cp", "tile::gather4", "prefetch"): _TENSOR,
    ("cp", "tile::gather4", "shared::cluster"): _TENSOR,
    ("cp", "cp_mask"): Need((8, 6), 100),
    ("cp", "shared::cta", "global", "mbarrier::complete_tx::bytes"): _HOPPER,
    ("redux", "f32"): _TENSOR,
    ("tcgen05", "shift"): Need((8, 6), 100, "a", (100, 101, 103, 110)),
    ("tcgen05", "kind::i8"): Need((8, 6), 100, "a", (100, 101, 110)),
    **{("tcgen05", f"scale_vec::{count}X"): Need((8, 6), 100, "a", (100, 101, 103, 110))
       for count in (1, 2, 4)},
    **{("tcgen05", block): Need((8, 8), 100, "af", (100, 101, 103, 110))
       for block in ("block16", "block32")},
    ("tcgen05", "kind::mxf4nvf4"): Need((8, 7), 100, "af", (100, 101, 103, 110)),
    ("stmatrix", "b8"): _FAMILY,
    ("ldmatrix", "m16n16"): _FAMILY,
    ("ldmatrix", "m8n16"): _FAMILY,
    ("clusterlaunchcontrol", "multicast::cluster::all"): Need((8, 6), 100, "af"),
    ("mma", "sync", "kind::f8f6f4"): _SMALL_MMA,
    ("mma", "sync", "block_scale"): _SMALL_MMA,
    ("mma", "sync", "scale_vec::4X", "ue8m0"): Need((9, 1), 120, "af", (120, 121)),
    **{("mma", "sync", "m16n8k32", type_): Need((8, 4), 89) for type_ in ("e4m3", "e5m2")},
    **{("mma", "sync", "m16n8k32", "f16", type_): _FP8_MMA for type_ in ("e4m3", "e5m2")},
    **{("mma", "sync", "m16n8k16", type_): _FP8_MMA for type_ in ("e4m3", "e5m2")},
    **{(name, "xorsign"): Need((7, 2), 86) for name in ("min", "max")},
    **{("tanh", half): _CLUSTERS for half in ("bf16", "bf16x2")},
    **{("ex2", half): _CLUSTERS for half in ("bf16", "bf16x2")},
    **{("cvt", pair): Need((7, 8), 89) for pair in ("e4m3x2", "e5m2x2")},
    **{("cvt", pair): _FAMILY for pair in ("e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2")},
    **{("cvt", "satfinite", type_): Need((8, 1), 0) for type_ in ("f16", "bf16", "tf32")},
    **{("cvt", mode, "satfinite", "tf32"): Need((8, 6), 100) for mode in ("rn", "rz")},
    ("cvt", "rs"): Need((8, 7), 100, "a", (100, 103)),
    **{("cvt", f"{pair}.bf16x2"): Need((9, 1), 0)
       for pair in ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2")},
    **{("cvt", f"{pair}.f16x2"): Need((9, 1), 0) for pair in ("e2m3x2", "e3m2x2", "e2m1x2")},
    **{("cvt", f"bf16x2.{pair}"): Need((9, 2), 0)
       for pair in ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2")},
}  # fmt: skip
"""By pieces of an opcode, the first of it first, or neighbours as `a.b`; rows of which all pieces
are there count."""
COUNT_NEEDS: dict[tuple[tuple[str, ...], int], Need] = {
    **{((name, "f32"), 4): Need((8, 8), 100) for name in ("min", "max")},
    **{(("mbarrier", name), 3): _CLUSTERS for name in ("arrive", "arrive_drop")},
}
"""The same of so many operands; a count of arrivals is as old as `noComplete`."""


def unmet(opcode: str, module: syntax.Module, operands: int) -> str | None:
    """What a module's head lacks for an instruction of so many operands, as a rule with the head's
    values."""
    for name, need in _needs(opcode, operands):
        if not need.met_by(module):
            version = ".".join(map(str, module.version))
            return f"{name} needs {need}, got {', '.join(module.target)} and {version}"
    return None


@cache
def _needs(opcode: str, operands: int) -> tuple[tuple[str, Need], ...]:
    """The rows that count for an opcode, by their names."""
    pieces = opcode.split(".")
    starts = (".".join(pieces[:length]) for length in range(min(len(pieces), _PIECES), 0, -1))
    family = next((name for name in starts if name in NEEDS), None)
    rows = [] if family is None else [(family, NEEDS[family])]
    parts = {*pieces, *map(".".join, pairwise(pieces))}
    for names, need in MODIFIER_NEEDS.items():
        if parts.issuperset(names):
            rows.append((".".join(("", *names)) if len(names) == 1 else ".".join(names), need))
    for (names, count), need in COUNT_NEEDS.items():
        if set(names) <= set(pieces) and count == operands and "noComplete" not in pieces:
            rows.append((f"{'.'.join(names)} with {count} operands", need))
    return tuple(rows)
