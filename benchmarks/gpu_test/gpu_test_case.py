"""One kernel of the GPU test set, and what several families of them share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
LAYOUTS = tuple(itertools.product("km", "kn"))
RESULTS = ("bf16", "f16", "f32")
TILES = ("64x64x64", "128x128x64", "128x256x64", "256x128x64")
SHAPE = (304, 520, 264)  # odd for every tile; rows of 16-byte multiples in either order, for TMA
STACK_SHAPE = (136, 264, 104)  # edges in both tiles of M, and in both of N
# A, B, C and the sums, by the name of the case.
TYPES = {
    "tf32": ("tf32", "tf32", "f32", "f32"),
    "e4m3": ("e4m3", "e4m3", "bf16", "f32"),
    "e5m2-e4m3": ("e5m2", "e4m3", "f16", "f32"),
    "e4m3-e5m2": ("e4m3", "e5m2", "f32", "f32"),
    "s8": ("s8", "s8", "s32", "s32"),
    "u8-s8": ("u8", "s8", "s32", "s32"),
}
COPIES = ("copy-insertion", "swizzle-selection", "pipelining{stages=3}", "persistence{ctas=3}")
STACKS = ({"batch": 3}, {"batch": 3, "a_stacked": False}, {"batch": 3, "b_stacked": False})


@dataclass(frozen=True)
class Case:
    """One kernel: `pipeline` is None for the schedule that the compiler chooses.

    `source` is what is compiled where the spec, of the same sizes, does not say all of it. A kernel
    of any size runs with each of `sizes`: M, the batch, or both.
    """

    group: str
    name: str
    spec: MatmulSpec
    pipeline: str | None = None
    last: str | None = None
    source: LinalgText | None = None
    sizes: tuple[int | tuple[int, int], ...] = ()


def default(**options: str) -> str:
    """The default pipeline with options for some of its passes."""
    calls = (f"{name}{{{options[name]}}}" if name in options else name for name in PREFIXES)
    return ",".join(calls)


def joined(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def parts_of_k(tile: str, parts: int, clustering: str = "") -> str:
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,split-k{{parts={parts}}}"
    return f"{head},{clustering}pipelining{{stages=3}},warp-specialization"
