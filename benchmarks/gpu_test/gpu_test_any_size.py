"""Kernels for any batch, for any M, and for any of both, with several of each; `any-` in their
names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from gpu_test_case import PREFIXES, SHAPE, STACK_SHAPE, Case
from gpu_test_sources import with_operands_of_stacks

from tilewright.compiler.pipeline import DEFAULT_PIPELINE
from tilewright.compiler.spec import MatmulSpec

ANY_BATCH, ANY_ROWS = (1, 3, 70), (1, 77, 304, 1500)
ANY_BOTH = ((0, 3), (5, 0), (1, 1), (77, 3), (130, 2))
"""M and the batch of calls: also of nothing, and of rows that end in the midst of a tile."""
FEW, FEW_BOTH = (1, 80), ((0, 3), (1, 1), (33, 5), (80, 2))
"""Rows of kernels that hold all of them in a tile."""
FORMS: dict[str, dict[str, Any]] = {
    "k": {},
    "n": {"b_major": "n", "c_dtype": "f32"},
    "shared-a": {"a_stacked": False, "c_dtype": "f16"},
    "shared-b": {"b_stacked": False, "lda": 120, "ldc": 272},
}
TYPES: dict[str, dict[str, Any]] = {
    "f16": {"a_dtype": "f16", "b_dtype": "f16", "c_dtype": "f32"},
    "e4m3": {"a_dtype": "e4m3", "b_dtype": "e5m2", "k": 112},
    "s8": {"a_dtype": "s8", "b_dtype": "u8", "c_dtype": "s32", "acc_dtype": "s32", "k": 112},
    "tf32": {"a_dtype": "tf32", "b_dtype": "tf32", "c_dtype": "f32"},
    "bf16x9": {"a_dtype": "bf16x9", "b_dtype": "bf16x9", "c_dtype": "f32"},
    "dual": {"products": 2},
    "further": {"further": ("f32", "f16")},
    "odd": {"n": 51, "k": 33},
    "few": {"least_m": FEW[0], "most_m": FEW[1]},
}
COPIED = "tma-insertion,swizzle-selection"
RING = f"{COPIED},epilogue-staging,clustering{{shape=2x1}},pipelining,warp-specialization"
WAYS = {
    "split": f"tiling{{tile=64x64x64}},{COPIED},split-k{{parts=2}}",
    "split-grid": f"tiling{{tile=64x64x64}},{COPIED},split-k{{parts=2 over=grid}}",
    "warps": "tiling{tile=64x64x32 mma=mma.sync},copy-insertion,swizzle-selection,pipelining",
    "threads": "tiling{tile=32x16x8 mma=fma operands=global}",
}
OPERANDS = {
    "tiles": f"tiling{{tile=128x64x64}},{COPIED}",
    "cluster": f"tiling{{tile=64x64x64}},{RING}",
    "persistent": f"tiling{{tile=64x64x64}},{RING},persistence{{ctas=4}}",
}
IN_TURNS = f"tiling{{tile=64x64x64}},{RING},persistence{{ctas=4}},ping-pong"
SWAPPED = (
    f"tiling{{tile=64x80x64 swap=true}},{RING.replace('2x1', '1x2')},persistence{{order=n ctas=4}}"
)


def any_size(target: str) -> Iterator[Case]:
    """The default schedule, every prefix, other types, and ways that count tiles otherwise."""
    forms = {
        "k": {},
        "m": {"a_major": "m", "b_major": "n", "c_dtype": "f32"},
        "shared-a": {"a_stacked": False, "c_dtype": "f16"},
        "shared-b": {"b_stacked": False},
        "bf16x9": {**dict.fromkeys(("a_dtype", "b_dtype"), "bf16x9"), "c_dtype": "f32"},
    }
    for (form, fields), prefix in itertools.product(forms.items(), (*PREFIXES, None)):
        spec = MatmulSpec(*STACK_SHAPE, batch=8, dynamic_batch=True, **fields)
        if form == "bf16x9" and prefix:
            continue  # the default tile is of another type
        pipeline = DEFAULT_PIPELINE if prefix else None
        name = f"any-batch-{form}-{prefix or 'chosen'}"
        yield Case("any batch", name, spec, pipeline, prefix, sizes=ANY_BATCH)
    for prefix in (*PREFIXES, None):
        spec = MatmulSpec(*SHAPE, dynamic_m=True)
        pipeline = DEFAULT_PIPELINE if prefix else None
        name = f"any-m-{prefix or 'chosen'}"
        yield Case("any M", name, spec, pipeline, prefix, sizes=ANY_ROWS)
    for prefix in (*PREFIXES, None):
        spec = MatmulSpec(*SHAPE, groups=5, b_major="n", dynamic_m=True)
        pipeline = DEFAULT_PIPELINE if prefix else None
        name = f"any-m-groups-{prefix or 'chosen'}"
        yield Case("any M", name, spec, pipeline, prefix, sizes=ANY_ROWS)
    yield from _any_rows_and_matrices(target)


def _any_rows_and_matrices(target: str) -> Iterator[Case]:
    group = "any M and batch"
    for prefix, (form, fields) in zip(PREFIXES, itertools.cycle(FORMS.items()), strict=False):
        name = f"any-both-{prefix}-{form}"
        yield Case(group, name, _of_both(**fields), DEFAULT_PIPELINE, prefix, sizes=ANY_BOTH)
    for name, fields in TYPES.items():
        sizes = FEW_BOTH if "most_m" in fields else ANY_BOTH
        yield Case(group, f"any-both-chosen-{name}", _of_both(**fields), sizes=sizes)
    for name, pipeline in WAYS.items():
        types = TYPES["f16"] if name != "threads" else dict.fromkeys(
            ("a_dtype", "b_dtype", "c_dtype"), "f32"
        )  # fmt: skip
        yield Case(group, f"any-both-{name}", _of_both(**types), pipeline, sizes=ANY_BOTH)
    turns = {"in-turns": IN_TURNS} if target == "sm_90a" else {}  # ping-pong is Hopper's
    _, n, k = STACK_SHAPE
    for name, pipeline in (OPERANDS | turns).items():
        source = with_operands_of_stacks(n, k)
        name = f"any-both-operands-{name}"
        yield Case(group, name, _of_both(), pipeline, source=source, sizes=ANY_BOTH)
    source = with_operands_of_stacks(n, k, FEW)
    few = _of_both(**TYPES["few"])
    yield Case(group, "any-both-swapped", few, SWAPPED, source=source, sizes=FEW_BOTH)


def _of_both(**fields: Any) -> MatmulSpec:
    m, n, k = STACK_SHAPE
    m = fields.get("most_m", m)
    sizes = {"m": m, "n": n, "k": k, "batch": 4}
    return MatmulSpec(**{**sizes, **fields}, dynamic_m=True, dynamic_batch=True)
