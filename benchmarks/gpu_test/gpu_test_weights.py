"""Kernels of gpu_test_cases.py with narrow weights: `weights-` in their names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.importers.traced_function import TensorLike
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.mma_units import WGMMA
from tilewright.dialects.target import find_target

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SHAPE, TURNED_SHAPE, BYTES_SHAPE = (40, 264, 320), (200, 392, 640), (304, 520, 272)
ALL = -1  # of K
SHAPES = ((1, 33, 64), (16, 520, 1088), (77, 72, 128), (200, 392, 640))
KINDS = {
    "s4-32": ("bf16", "s4", {"group_size": 32, "scale_dtype": "bf16"}),
    "u4-64": ("bf16", "u4", {"group_size": 64, "scale_dtype": "f16", "zero_points": True}),
    "s4-f16": ("f16", "s4", {"group_size": 64, "scale_dtype": "f32"}),
    "s8": ("bf16", "s8", {}),
    "s8-64": ("f16", "s8", {"group_size": 64, "scale_dtype": "bf16"}),
    "e4m3-32": ("bf16", "e4m3", {"group_size": 32, "scale_dtype": "f32"}),
    "e5m2": ("f16", "e5m2", {}),
    "s8-all": ("bf16", "s8", {"group_size": ALL, "scale_dtype": "f32"}),
}
TILE = "tile=16x64x64"
RING = "tma-insertion,swizzle-selection"
TAIL = "pipelining{stages=3},warp-specialization"
WAYS = {
    "parts": f"tiling{{{TILE}}},{RING},split-k{{parts=2 over=grid}},{TAIL}",
    "split": f"tiling{{{TILE}}},{RING},split-k{{parts=2}},{TAIL}",
    "multicast": f"tiling{{{TILE}}},{RING},clustering{{shape=1x2}},{TAIL},persistence{{ctas=4}}",
    "copies": f"tiling{{{TILE}}},copy-insertion,swizzle-selection,pipelining{{stages=3}}",
    "wide": f"tiling{{tile=64x128x64 warps=2x2}},{RING},epilogue-staging,{TAIL}",
}

TURNED_WAYS = {
    "plain": f"{RING},{TAIL}",
    "staged": f"{RING},epilogue-staging,{TAIL},persistence{{ctas=4}}",
    "parts": f"{RING},split-k{{parts=2 over=grid}},{TAIL}",
    "split": f"{RING},split-k{{parts=2}},{TAIL}",
    "multicast": f"{RING},epilogue-staging,clustering{{shape=2x1}},{TAIL},persistence{{ctas=4}}",
    "consumers": f"{RING},epilogue-staging,{TAIL},persistence{{ctas=2}},ping-pong",
    "copies": f"copy-insertion,swizzle-selection,{TAIL}",
}

Kernel = tuple[str, MatmulSpec, str | None, str | None]


def weight_kernels(target: str) -> Iterator[Kernel]:
    """(name, spec, pipeline, last pass): every prefix and way, and the default schedule; those of
    weights that are A of wgmma are for Hopper."""
    tiled = DEFAULT_PIPELINE.replace("tiling", f"tiling{{{TILE}}}")
    for kind, prefix in itertools.product(KINDS, PREFIXES):
        yield f"weights-{kind}-{prefix}", _spec(SHAPE, kind), tiled, prefix
    for kind, (way, pipeline) in itertools.product(KINDS, WAYS.items()):
        yield f"weights-{kind}-{way}", _spec(SHAPE, kind, "f32"), pipeline, None
    if find_target(target).mma is WGMMA:
        yield from _turned_kernels()
    for kind, shape in itertools.product(KINDS, SHAPES):
        name = "x".join(map(str, shape))
        yield f"weights-{kind}-chosen-{name}", _spec(shape, kind), None, None


def _turned_kernels() -> Iterator[Kernel]:
    for kind, prefix in itertools.product(KINDS, PREFIXES):
        spec = _spec(SHAPE, kind)
        pipeline = DEFAULT_PIPELINE.replace("tiling", _turned_tiling(spec, "128x32x64"))
        yield f"weights-turned-{kind}-{prefix}", spec, pipeline, prefix
    for kind, (way, pipeline) in itertools.product(KINDS, TURNED_WAYS.items()):
        spec = _spec(TURNED_SHAPE, kind)
        tile = "64x64x64" if way == "consumers" else "128x64x64"
        yield f"weights-turned-{kind}-{way}", spec, f"{_turned_tiling(spec, tile)},{pipeline}", None


def _turned_tiling(spec: MatmulSpec, tile: str) -> str:
    """By the MMA that the groups of the weights need."""
    grouped = spec.group_size not in (0, spec.k)
    mma = "wgmma.mma_async+cvt+fma" if grouped else "wgmma.mma_async+cvt"
    return f"tiling{{tile={tile} mma={mma} swap=true}}"


def scaled_integers() -> tuple[MatmulSpec, LinalgText]:
    """s8 by s8 with a scale for each row and each column, in bf16."""
    m, n, k = BYTES_SHAPE
    spec = MatmulSpec(m, n, k, "s8", "s8", "bf16", "s32")
    likes = [TensorLike((m, 1), torch.float32), TensorLike((1, n), torch.float32)]
    spec, made, *_ = import_epilogue(spec, Frame.of([m, n], 0), _scaled, likes)
    return spec, LinalgText(spec.mlir_text(made), "scaled_integers")


def _scaled(acc: Any, rows: Any, columns: Any) -> Any:
    return acc * rows * columns


def _spec(shape: tuple[int, int, int], kind: str, c: str = "") -> MatmulSpec:
    a, b, more = KINDS[kind]
    fields: dict[str, Any] = dict(more)
    if fields.get("group_size") == ALL:
        fields["group_size"] = shape[2]
    return MatmulSpec(*shape, a, b, c or a, **fields)
