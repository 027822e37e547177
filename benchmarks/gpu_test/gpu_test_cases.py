"""The kernels that gpu_test.py checks: what to multiply, and how it is compiled."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

from gpu_test_any_size import any_size
from gpu_test_case import (
    COPIES,
    LAYOUTS,
    PREFIXES,
    RESULTS,
    SHAPE,
    STACK_SHAPE,
    STACKS,
    TILES,
    TYPES,
    Case,
    default,
    joined,
    parts_of_k,
)
from gpu_test_schedules import by_schedules
from gpu_test_units import unit_kernels
from gpu_test_weights import scaled_integers, weight_kernels

from tilewright.compiler.pipeline import DEFAULT_PIPELINE, presets_of
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import TARGETS

ODD_SHAPES = ((1, 1, 1), (77, 33, 51), (129, 264, 72), (150, 266, 102), (1000, 1112, 1096))
TMA_SHAPES = ((77, 40, 56), (129, 264, 72), (1000, 1112, 1096))
RANDOM_SPECS, RANDOM_SEED = 200, 20261120
RANDOM_TYPES = 50
BYTES_SHAPE = (304, 520, 272)
QUANTIZED_SHAPE = (304, 544, 264)
QUANTIZED_SHAPES = ((1, 32, 1), (77, 96, 51), (129, 288, 72), (1000, 1120, 1096))
ROUNDINGS = ("floor", "ceil", "even", "rceil")
EXTENTS = ((1, 40), (41, 330), (331, 1500))
STACK_ODD_SHAPES = ((1, 1, 1), (77, 33, 51))  # matrices that begin anywhere are copied by threads
DUAL_PIPELINES = {
    "in-turns": "tiling{tile=128x128x64},tma-insertion,swizzle-selection,epilogue-staging,"
    "pipelining,warp-specialization,persistence{ctas=4},ping-pong",
    "split": "tiling{tile=64x64x64},tma-insertion,split-k{parts=2},pipelining",
    "warps": "tiling{tile=64x64x32 mma=mma.sync warps=2x2},tma-insertion,epilogue-staging",
}  # ping-pong is Hopper's: for Blackwell it is refused
GROUPS_SHAPE, DEPTH_SHAPE = (600, 264, 200), (264, 200, 1000)
GROUPS = (
    "tiling{tile=64x64x64}", "tma-insertion", "swizzle-selection", "epilogue-staging",
    "clustering{shape=2x1}", "pipelining{stages=3}", "warp-specialization", "persistence{ctas=4}",
)  # fmt: skip
BLOCKWISE = (("1x128", "128x128"), ("1x128", "1x128"), ("128x128", "1x128"))


def cases(target: str) -> Iterator[Case]:
    """Every kernel of the set, group by group: of chips without TMA, those of other MMAs only."""
    yield from unit_kernels(target)
    if not TARGETS[target].async_agents:
        return
    yield from _prefixes()
    yield from _odd_shapes()
    yield from _presets(target)
    yield from by_schedules(target)
    yield from _random_specs()
    yield from _types(target)
    yield from _stacks(target)
    yield from any_size(target)
    yield from _outputs()
    yield from _quantized()
    yield from _blockwise(target)
    yield from _weights(target)
    yield from _groups(target)
    yield from _duals()


def _duals() -> Iterator[Case]:
    """Two products of one A: every prefix, and the default schedule; `dual-` in their names."""
    for prefix, (a, b) in zip(PREFIXES, itertools.cycle(LAYOUTS), strict=False):
        spec = MatmulSpec(*SHAPE, a_major=a, b_major=b, products=2)
        yield Case("duals", f"dual-{a}{b}-{prefix}", spec, DEFAULT_PIPELINE, prefix)
    for shape in (*ODD_SHAPES[1:], SHAPE):
        yield Case("duals", f"dual-chosen-{joined(shape)}", MatmulSpec(*shape, products=2))
    kept = MatmulSpec(*SHAPE, products=2, further=("f32", "bf16"))
    yield Case("duals", "dual-outputs-chosen", kept)
    for prefix in ("epilogue-staging", "persistence"):
        yield Case("duals", f"dual-outputs-{prefix}", kept, DEFAULT_PIPELINE, prefix)
    m, n, k = SHAPE
    for a, b in LAYOUTS:
        rows = {"lda": (k if a == "k" else m) + 8, "ldb": (k if b == "k" else n) + 40}
        spec = MatmulSpec(*SHAPE, a_major=a, b_major=b, products=2, ldc=n + 16, **rows)
        yield Case("duals", f"dual-gaps-{a}{b}", spec)
    for name, pipeline in DUAL_PIPELINES.items():
        yield Case("duals", f"dual-{name}", MatmulSpec(*SHAPE, products=2), pipeline)


def _groups(target: str) -> Iterator[Case]:
    """Groups of rows that end anywhere: the default schedule, every prefix, two consumers."""
    for groups, b in itertools.product((1, 5, 33), "kn"):
        spec = MatmulSpec(*GROUPS_SHAPE, b_major=b, groups=groups)
        yield Case("groups", f"groups-{groups}-{b}", spec)
        for passes in range(1, len(GROUPS) + 1):
            name = f"groups-{groups}-{b}-{passes}"
            yield Case("groups", name, spec, ",".join(GROUPS[:passes]))
    for groups in (1, 5, 33):
        majors = {"a_major": "m", "b_major": "n", "group_axis": "k"}
        of_k = MatmulSpec(*DEPTH_SHAPE, groups=groups, **majors)
        yield Case("groups of K", f"groups-of-k-{groups}", of_k)
        for passes in range(1, len(GROUPS) + 1):
            text = ",".join(GROUPS[:passes])
            yield Case("groups of K", f"groups-of-k-{groups}-{passes}", of_k, text)
        ordered = replace(of_k, ordered=True)
        yield Case("groups of K", f"groups-of-k-ordered-{groups}", ordered)
        for passes in (1, 5, 8):
            text = ",".join(GROUPS[:passes])
            yield Case("groups of K", f"groups-of-k-ordered-{groups}-{passes}", ordered, text)
        text = ",".join((*GROUPS[:4], *GROUPS[5:], "ping-pong"))
        for each, name in ((of_k, "of-k"), (ordered, "of-k-ordered")):
            yield Case("groups of K", f"groups-{name}-ping-pong-{groups}", each, text)
    for groups, tokens in ((1, 2000), (5, 90), (33, 600)):
        gathered = MatmulSpec(*GROUPS_SHAPE, groups=groups, gathered=tokens)
        yield Case("groups", f"groups-gathered-{groups}", gathered)
        for passes in range(1, len(GROUPS) + 1):
            text = ",".join(GROUPS[:passes])
            yield Case("groups", f"groups-gathered-{groups}-{passes}", gathered, text)
    turns = ",".join((*GROUPS[:4], *GROUPS[5:], "ping-pong"))
    yield Case("groups", "groups-gathered-ping-pong", gathered, turns)
    yield from _groups_of_bytes(target)
    yield from _groups_of_products(target)
    for name, first in (("groups-ping-pong", GROUPS[:4]), ("groups-ping-pong-threads", GROUPS[:3])):
        yield Case("groups", name, spec, ",".join((*first, *GROUPS[5:], "ping-pong")))


def _groups_of_bytes(target: str) -> Iterator[Case]:
    """8-bit floats, summed by the tensor core or by two levels, with outputs behind C."""
    m, n, _ = GROUPS_SHAPE
    for groups, further in ((5, ()), (33, ("f32", "bf16"))):
        for sums in ("", "two-level") if target == "sm_90a" else ("",):
            name = f"groups-e4m3-{groups}{sums and '-two-level'}"
            spec = MatmulSpec(m, n, 208, "e4m3", "e4m3", groups=groups, further=further, sums=sums)
            yield Case("groups", name, spec)
            tiling = "tiling{tile=64x64x128}" if sums else GROUPS[0]
            for passes in (2, 5, 7, 8):
                text = ",".join((tiling, *GROUPS[1:passes]))
                yield Case("groups", f"{name}-{passes}", spec, text)


def _groups_of_products(target: str) -> Iterator[Case]:
    """Two products of each group, and scales of 128 elements."""
    text = ",".join(("tiling{tile=64x64x128}", *GROUPS[1:]))
    for groups in (1, 5, 33):
        dual = MatmulSpec(*GROUPS_SHAPE, groups=groups, products=2)
        yield Case("groups", f"groups-dual-{groups}", dual)
        yield Case("groups", f"groups-dual-{groups}-passes", dual, text)
        gathered = replace(dual, gathered=90)
        yield Case("groups", f"groups-dual-gathered-{groups}", gathered)
        for passes in (2, 5, 7, 8):
            name, cut = f"groups-dual-gathered-{groups}-{passes}", text.split(",")[:passes]
            yield Case("groups", name, gathered, ",".join(cut))
        for b in ("128x128", "1x128") if target == "sm_90a" else ():
            m, n, _ = GROUPS_SHAPE
            forms = {"a_scales": "1x128", "b_scales": b, "groups": groups}
            spec = MatmulSpec(m, n, 336, "e4m3", "e4m3", **forms)
            yield Case("groups", f"groups-scales-{b}-{groups}", spec)
            for passes in (2, 5, 7, 8):
                name, cut = f"groups-scales-{b}-{groups}-{passes}", text.split(",")[:passes]
                yield Case("groups", name, spec, ",".join(cut))


def _prefixes() -> Iterator[Case]:
    """The result's type goes round, so that each prefix and tile meets every one."""
    results = itertools.cycle(RESULTS)
    for prefix, tile, (a, b) in itertools.product(PREFIXES, TILES, LAYOUTS):
        c = next(results)
        spec = MatmulSpec(*SHAPE, c_dtype=c, a_major=a, b_major=b)
        name = f"{prefix}-{tile}-{a}{b}-{c}"
        yield Case("prefixes", name, spec, default(tiling=f"tile={tile}"), prefix)


def _odd_shapes() -> Iterator[Case]:
    for prefix, shape in itertools.product(PREFIXES, ODD_SHAPES):
        spec = MatmulSpec(*shape, c_dtype="f32")
        yield Case("odd shapes", f"{prefix}-{joined(shape)}", spec, DEFAULT_PIPELINE, prefix)


def _presets(target: str) -> Iterator[Case]:
    for preset, pipeline in presets_of(target).items():
        for (a, b), c in itertools.product(LAYOUTS, RESULTS):
            spec = MatmulSpec(*SHAPE, c_dtype=c, a_major=a, b_major=b)
            yield Case("presets", f"{preset}-{a}{b}-{c}", spec, pipeline)
        for shape in TMA_SHAPES:  # clusters can't share what threads copy
            spec = MatmulSpec(*shape, "f16", "f16", "f16")
            yield Case("presets", f"{preset}-{joined(shape)}", spec, pipeline)


def _random_specs() -> Iterator[Case]:
    draw = random.Random(RANDOM_SEED)
    for number in range(RANDOM_SPECS):
        sizes = [draw.randint(*draw.choice(EXTENTS)) for _ in range(3)]
        dtype, c, (a, b) = (draw.choice(each) for each in (("bf16", "f16"), RESULTS, LAYOUTS))
        spec = MatmulSpec(*sizes, dtype, dtype, c, a_major=a, b_major=b)
        yield Case("random specs", f"random-{number:03}", spec)


def _types(target: str) -> Iterator[Case]:
    """Operands of 8 and 32 bits: prefixes, presets, odd shapes, a split K and random specs."""
    for (types, dtypes), prefix in itertools.product(TYPES.items(), PREFIXES):
        spec = MatmulSpec(*BYTES_SHAPE, *dtypes)
        pipeline = default(tiling="tile=128x256x64")
        yield Case("types", f"{types}-{prefix}", spec, pipeline, prefix)
    presets = presets_of(target).items()
    for types, dtypes, (preset, text) in (
        (*each, one) for each in TYPES.items() for one in presets
    ):
        pipeline = text.replace("x64", "x32", 1) if types == "tf32" else text  # K of as many bytes
        yield Case("types", f"{types}-{preset}", MatmulSpec(*BYTES_SHAPE, *dtypes), pipeline)
    for (types, dtypes), shape in itertools.product(TYPES.items(), ODD_SHAPES):
        yield Case("types", f"{types}-{joined(shape)}", MatmulSpec(*shape, *dtypes))
    for types, dtypes in TYPES.items():
        spec, pipeline = MatmulSpec(200, 168, 1000, *dtypes), parts_of_k("64x64x64", 3)
        yield Case("types", f"{types}-split", spec, pipeline)
    yield from _random_types()


def _random_types() -> Iterator[Case]:
    draw = random.Random(RANDOM_SEED + 1)
    for number in range(RANDOM_TYPES):
        sizes = [draw.randint(*draw.choice(EXTENTS)) for _ in range(3)]
        a, b, c, sums = draw.choice(list(TYPES.values()))
        c = draw.choice(RESULTS) if sums == "f32" else c
        yield Case("types", f"random-types-{number:02}", MatmulSpec(*sizes, a, b, c, sums))


def _stacks(target: str) -> Iterator[Case]:
    """Prefixes, presets whose rings go on to the next matrix, odd shapes; sharing goes round."""
    rings = [each for each in presets_of(target).items() if "pipelining" in each[1]]
    kernels = [(prefix, STACK_SHAPE, DEFAULT_PIPELINE, prefix) for prefix in PREFIXES]
    kernels += [(name, STACK_SHAPE, text, None) for name, text in rings]
    kernels += [(joined(shape), shape, DEFAULT_PIPELINE, None) for shape in STACK_ODD_SHAPES]
    kernels += [(f"chosen-{joined(shape)}", shape, None, None)
                for shape in (STACK_SHAPE, STACK_ODD_SHAPES[-1])]  # fmt: skip
    for at, (name, shape, pipeline, last) in enumerate(kernels):
        (a, b), c = LAYOUTS[at % len(LAYOUTS)], RESULTS[at % len(RESULTS)]
        stack = STACKS[at % len(STACKS)]
        spec = MatmulSpec(*shape, c_dtype=c, a_major=a, b_major=b, **stack)
        yield Case("stacks", f"stack-{name}-{a}{b}-{c}", spec, pipeline, last)


def _outputs() -> Iterator[Case]:
    """Outputs beside C, and outputs of 8-bit floats; `outputs-` in their names."""
    kinds = {
        "bf16-f32": {"further": ("f32",)},
        "e4m3": {"c_dtype": "e4m3"},
        "e5m2-f16-e4m3": {"c_dtype": "e5m2", "further": ("f16", "e4m3")},
    }
    for kind, fields in kinds.items():
        for prefix in PREFIXES:
            spec = MatmulSpec(*SHAPE, **fields)
            yield Case("outputs", f"outputs-{kind}-{prefix}", spec, DEFAULT_PIPELINE, prefix)
        for shape in (*ODD_SHAPES, SHAPE):
            spec = MatmulSpec(*shape, **fields)
            yield Case("outputs", f"outputs-{kind}-chosen-{joined(shape)}", spec)
        stack = MatmulSpec(*STACK_SHAPE, batch=3, **fields)
        yield Case("outputs", f"outputs-{kind}-stack", stack)


def _quantized() -> Iterator[Case]:
    """C with block scales, of elements that Hopper converts to; `quantized-` in their names."""
    for form in ("mxfp8", "mxfp8_e5m2"):
        for prefix in PREFIXES:
            spec = MatmulSpec(*QUANTIZED_SHAPE, c_dtype=form)
            name = f"quantized-{form}-{prefix}"
            yield Case("quantized", name, spec, DEFAULT_PIPELINE, prefix)
        for shape, way in zip(QUANTIZED_SHAPES, ROUNDINGS, strict=True):
            spec = MatmulSpec(*shape, c_dtype=form, scale_rounding=way)
            yield Case("quantized", f"quantized-{form}-{way}-chosen-{joined(shape)}", spec)
        for name, fields in {"stack": {"batch": 3}, "dual": {"products": 2}}.items():
            spec = MatmulSpec(*QUANTIZED_SHAPE, c_dtype=form, **fields)
            yield Case("quantized", f"quantized-{form}-{name}", spec)
    wide = ",".join(("tiling{tile=128x64x32 mma=mma.sync warps=4x1}", *COPIES))
    spec = MatmulSpec(*QUANTIZED_SHAPE, c_dtype="mxfp8")
    yield Case("quantized", "quantized-mma.sync", spec, wide)


def _blockwise(target: str) -> Iterator[Case]:
    """Scales in f32 of 128 elements of K, and two-level sums; `blockwise-` in their names."""
    if target != "sm_90a":
        return
    types = ("e4m3", "e4m3")
    for (a, b), prefix in itertools.product(BLOCKWISE, PREFIXES):
        spec = MatmulSpec(*BYTES_SHAPE, *types, a_scales=a, b_scales=b)
        pipeline = default(tiling="tile=128x128x128")
        yield Case("blockwise", f"blockwise-{a}-{b}-{prefix}", spec, pipeline, prefix)
    for (a, b), shape in itertools.product(BLOCKWISE, (*ODD_SHAPES, BYTES_SHAPE)):
        spec = MatmulSpec(*shape, *types, "f32", a_scales=a, b_scales=b)
        yield Case("blockwise", f"blockwise-{a}-{b}-chosen-{joined(shape)}", spec)
    for tile in ("128x192x128", "64x96x64", "192x96x32"):
        spec = MatmulSpec(*BYTES_SHAPE, "e4m3", "e5m2", a_scales="1x128", b_scales="128x128")
        yield Case("blockwise", f"blockwise-{tile}", spec, default(tiling=f"tile={tile}"))
    split = MatmulSpec(200, 168, 1000, *types, a_scales="1x128", b_scales="1x128")
    yield Case("blockwise", "blockwise-split", split, parts_of_k("64x64x128", 3))
    stack = MatmulSpec(*BYTES_SHAPE, *types, batch=3, a_scales="1x128", b_scales="128x128")
    yield Case("blockwise", "blockwise-stack", stack)
    for shape in (*ODD_SHAPES, BYTES_SHAPE):
        spec = MatmulSpec(*shape, *types, "f32", sums="two-level")
        yield Case("blockwise", f"blockwise-two-level-{joined(shape)}", spec)


def _weights(target: str) -> Iterator[Case]:
    """Weights that threads widen; `weights-` in their names."""
    for name, spec, pipeline, last in weight_kernels(target):
        yield Case("weights", name, spec, pipeline, last)
    spec, source = scaled_integers()
    yield Case("weights", "weights-s8-s8-chosen", spec, source=source)
