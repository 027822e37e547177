"""The kernels that benchmarks/gpu_test.py checks: what to multiply, and how it is compiled."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_test_sources import with_operands
from gpu_test_weights import scaled_integers, weight_kernels

from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline, presets_of
from tilewright.compiler.presets import THREAD_PRESETS, WARP_PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import SPLITS
from tilewright.dialects.target import TARGETS

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
LAYOUTS = tuple(itertools.product("km", "kn"))
RESULTS = ("bf16", "f16", "f32")
TILES = ("64x64x64", "128x128x64", "128x256x64", "256x128x64")
CLUSTERS = ("2x1", "1x2", "2x2", "4x1", "3x2")
WIDE_CLUSTERS = ("1x4", "2x4", "4x2", "1x8", "8x1")
SPLIT_CLUSTERS = (("1x2", 2), ("2x1", 3), ("2x2", 2), ("1x4", 2), ("4x1", 2), ("1x2", 4))
SHAPE = (304, 520, 264)  # odd for every tile; rows of 16-byte multiples in either order, for TMA
ODD_SHAPES = ((1, 1, 1), (77, 33, 51), (129, 264, 72), (150, 266, 102), (1000, 1112, 1096))
TMA_SHAPES = ((77, 40, 56), (129, 264, 72), (1000, 1112, 1096))
RANDOM_SPECS, RANDOM_SEED = 200, 20261120
RANDOM_TYPES = 50
# A, B, C and the sums, by the name of the case.
TYPES = {
    "tf32": ("tf32", "tf32", "f32", "f32"),
    "e4m3": ("e4m3", "e4m3", "bf16", "f32"),
    "e5m2-e4m3": ("e5m2", "e4m3", "f16", "f32"),
    "e4m3-e5m2": ("e4m3", "e5m2", "f32", "f32"),
    "s8": ("s8", "s8", "s32", "s32"),
    "u8-s8": ("u8", "s8", "s32", "s32"),
}
BYTES_SHAPE = (304, 520, 272)
QUANTIZED_SHAPE = (304, 544, 264)
QUANTIZED_SHAPES = ((1, 32, 1), (77, 96, 51), (129, 288, 72), (1000, 1120, 1096))
ROUNDINGS = ("floor", "ceil", "even", "rceil")
EXTENTS = ((1, 40), (41, 330), (331, 1500))
# Kernels whose warps or threads multiply: sizes that divide no tile, and quick on the emulator.
UNIT_SHAPE, UNIT_BYTES_SHAPE = (152, 72, 104), (176, 80, 112)
UNIT_ODD_SHAPES = ((1, 1, 1), (77, 33, 51), (129, 264, 72))
PUZZLE_SHAPE = (9, 9, 9)
STACKS = ({"batch": 3}, {"batch": 3, "a_stacked": False}, {"batch": 3, "b_stacked": False})
STACK_SHAPE = (136, 264, 104)  # edges in both tiles of M, and in both of N
STACK_ODD_SHAPES = ((1, 1, 1), (77, 33, 51))  # matrices that begin anywhere are copied by threads
COPIES = ("copy-insertion", "swizzle-selection", "pipelining{stages=3}", "persistence{ctas=3}")
ROLES = (
    "tma-insertion", "swizzle-selection", "epilogue-staging", "clustering{shape=2x1}",
    "pipelining{stages=3}", "warp-specialization", "persistence{ctas=4}",
)  # fmt: skip
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
SPLIT_WARPS = "tile=64x64x32 mma=mma.sync+"
WARPS, THREADS = "tile=64x64x32 mma=mma.sync", "tile=64x32x16 mma=fma threads=64"


@dataclass(frozen=True)
class Case:
    """One kernel: `pipeline` is None for the schedule that the compiler chooses.

    `source` is what is compiled where the spec, of the same sizes, does not say all of it.
    """

    group: str
    name: str
    spec: MatmulSpec
    pipeline: str | None = None
    last: str | None = None
    source: LinalgText | None = None


def cases(target: str) -> Iterator[Case]:
    """Every kernel of the set, group by group: of chips without TMA, those of other MMAs only."""
    yield from _units(target)
    if not TARGETS[target].async_agents:
        return
    yield from _prefixes()
    yield from _odd_shapes()
    yield from _presets(target)
    yield from _clusters()
    yield from _split_k()
    yield from _split_grid(target)
    yield from _swapped()
    yield from _orders()
    yield from _ping_pong()
    yield from _random_specs()
    yield from _types(target)
    yield from _stacks(target)
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
        yield Case("duals", f"dual-chosen-{_joined(shape)}", MatmulSpec(*shape, products=2))
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
        yield Case("prefixes", name, spec, _default(tiling=f"tile={tile}"), prefix)


def _odd_shapes() -> Iterator[Case]:
    for prefix, shape in itertools.product(PREFIXES, ODD_SHAPES):
        spec = MatmulSpec(*shape, c_dtype="f32")
        yield Case("odd shapes", f"{prefix}-{_joined(shape)}", spec, DEFAULT_PIPELINE, prefix)


def _presets(target: str) -> Iterator[Case]:
    for preset, pipeline in presets_of(target).items():
        for (a, b), c in itertools.product(LAYOUTS, RESULTS):
            spec = MatmulSpec(*SHAPE, c_dtype=c, a_major=a, b_major=b)
            yield Case("presets", f"{preset}-{a}{b}-{c}", spec, pipeline)
        for shape in TMA_SHAPES:  # clusters can't share what threads copy
            spec = MatmulSpec(*shape, "f16", "f16", "f16")
            yield Case("presets", f"{preset}-{_joined(shape)}", spec, pipeline)


def _clusters() -> Iterator[Case]:
    spec = MatmulSpec(600, 1000, 712, b_major="n")
    for tile, shape, last in itertools.product(TILES, CLUSTERS, (None, "pipelining")):
        pipeline = _default(tiling=f"tile={tile}", clustering=f"shape={shape}")
        name = f"cluster-{shape}-{tile}-{last or 'all'}"
        yield Case("clusters", name, spec, pipeline, last)
    for shape in WIDE_CLUSTERS:
        pipeline = _default(tiling="tile=64x64x64", clustering=f"shape={shape} pair=false")
        yield Case("clusters", f"cluster-{shape}", MatmulSpec(600, 1000, 712), pipeline)


def _split_k() -> Iterator[Case]:
    for tile, parts, (a, b) in itertools.product(("64x64x64", "128x128x64"), (2, 3, 8), LAYOUTS):
        spec = MatmulSpec(200, 168, 1000, c_dtype="f32", a_major=a, b_major=b)
        yield Case("split K", f"split-{parts}-{tile}-{a}{b}", spec, _split(tile, parts))
    for shape, parts in SPLIT_CLUSTERS:
        pipeline = _split("64x64x64", parts, f"clustering{{shape={shape} pair=false}},")
        spec = MatmulSpec(200, 232, 1000, c_dtype="f32")
        yield Case("split K", f"split-{parts}-cluster-{shape}", spec, pipeline)


def _swapped() -> Iterator[Case]:
    """A and B exchanged: tiles, clusters, stores, prefixes and what the compiler chooses."""
    ring = "pipelining{stages=4},warp-specialization"
    staged = "epilogue-staging{columns=8 buffers=2}"
    ends = {
        "threads": ring,
        "staged": f"epilogue-staging{{buffers=1}},{ring}",
        "1x2": f"{staged},clustering{{shape=1x2 pair=false}},{ring}",
        "2x1": f"{staged},clustering{{shape=2x1 pair=false}},{ring}",
        "persistent": f"{staged},{ring},persistence{{order=grouped group=4}}",
        "split": f"split-k{{parts=2}},{ring}",
        "split-grid": f"split-k{{parts=3 over=grid}},{ring}",
        "synchronous": staged,
    }
    for tile, (name, end) in itertools.product(
        ("64x48x64", "128x160x64", "256x96x64", "64x104x64", "192x56x64"), ends.items()
    ):
        head = f"tiling{{tile={tile} swap=true}},tma-insertion,swizzle-selection"
        spec = MatmulSpec(302, 1000, 712)
        yield Case("swapped", f"swapped-{tile}-{name}", spec, f"{head},{end}")
    head = "tiling{tile=128x128x64 swap=true},tma-insertion,swizzle-selection"
    turns = f"epilogue-staging{{columns=32 buffers=4}},{ring},persistence{{order=m}},ping-pong"
    yield Case("swapped", "swapped-turns", MatmulSpec(500, 1000, 712), f"{head},{turns}")
    for shape in ((83, 1504, 632), (1048, 8104, 376), (23, 5400, 680), (2279, 984, 1448)):
        yield Case("swapped", f"swapped-chosen-{_joined(shape)}", MatmulSpec(*shape))
    yield from _swapped_otherwise(ring)


def _swapped_otherwise(ring: str) -> Iterator[Case]:
    """The same of other specs, and with operands beside the sum."""
    staged = "epilogue-staging{columns=8 buffers=2}"
    specs = {
        "n-major": MatmulSpec(302, 1000, 712, b_major="n"),
        "m-major": MatmulSpec(304, 1000, 712, a_major="m"),
        "stack": MatmulSpec(75, 1000, 712, batch=3),
        "outputs": MatmulSpec(302, 1000, 712, further=("f32", "f16")),
        "e4m3": MatmulSpec(302, 1000, 720, "e4m3", "e4m3"),
        "tf32": MatmulSpec(302, 1000, 712, "tf32", "tf32"),
    }
    for name, spec in specs.items():
        head = f"tiling{{tile=128x64x{32 if name == 'tf32' else 64} swap=true order=n}}"
        text = f"{head},tma-insertion,swizzle-selection,{staged},{ring}"
        yield Case("swapped", f"swapped-spec-{name}", spec, text)
    shape = (302, 1000, 712)
    for name, end in {
        "threads": ring,
        "staged": f"{staged},{ring}",
        "ahead": f"epilogue-staging{{columns=8 buffers=2 ahead=3 vectors=ahead}},{ring}",
        "persistent": f"epilogue-staging{{columns=8 ahead=3}},{ring},persistence",
        "split": f"split-k{{parts=2}},{ring}",
        "split-grid": f"split-k{{parts=3 over=grid}},{ring}",
    }.items():
        text = f"tiling{{tile=128x104x64 swap=true}},tma-insertion,swizzle-selection,{end}"
        source = with_operands(*shape)
        yield Case("swapped", f"swapped-operands-{name}", MatmulSpec(*shape), text, source=source)


def _split_grid(target: str) -> Iterator[Case]:
    """Parts over the grid: tiles, clusters, every prefix, and launches that follow each other."""
    for tile, parts, (a, b) in itertools.product(("64x64x64", "128x128x64"), (2, 4, 16), LAYOUTS):
        spec = MatmulSpec(200, 168, 1000, c_dtype="f32", a_major=a, b_major=b)
        yield Case("split grid", f"splitgrid-{parts}-{tile}-{a}{b}", spec, _over_grid(tile, parts))
    spec = MatmulSpec(200, 232, 1000)
    for shape, parts in itertools.product(("1x2", "2x1", "2x2", "1x4"), (2, 8)):
        pipeline = _over_grid("64x64x64", parts, f"clustering{{shape={shape} pair=false}},")
        yield Case("split grid", f"splitgrid-{parts}-cluster-{shape}", spec, pipeline)
    if TARGETS[target].has_tensor_memory:
        for tile in ("64x64x64", "128x128x64"):
            pipeline = _over_grid(tile, 3, "clustering{shape=2x1 pair=true},")
            yield Case("split grid", f"splitgrid-pair-{tile}", spec, pipeline)
    passes = _over_grid("128x64x64", 4).split(",")
    for end in range(1, len(passes)):
        if "split-k" in ",".join(passes[:end]):
            yield Case("split grid", f"splitgrid-prefix-{end}", spec, ",".join(passes[:end]))
    for pdl in ("true", "early"):
        pipeline = f"{_over_grid('128x64x64', 4)},lower-to-nvvm{{pdl={pdl}}}"
        yield Case("split grid", f"splitgrid-pdl-{pdl}", MatmulSpec(500, 520, 2000), pipeline)
    for shape, tile, parts in (
        ((2279, 984, 11448), "128x256x64", 3),
        ((1, 5000, 9000), "64x128x64", 9),
    ):
        name = f"splitgrid-{_joined(shape)}"
        yield Case("split grid", name, MatmulSpec(*shape), _over_grid(tile, parts))


def _over_grid(tile: str, parts: int, clustering: str = "") -> str:
    return _split(tile, parts, clustering).replace(f"parts={parts}", f"parts={parts} over=grid")


def _split(tile: str, parts: int, clustering: str = "") -> str:
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,split-k{{parts={parts}}}"
    return f"{head},{clustering}pipelining{{stages=3}},warp-specialization"


def _orders() -> Iterator[Case]:
    spec = MatmulSpec(2000, 2600, 712, "f16", "f16", "f16")
    for order in ("m", "n", "grouped", "hilbert"):
        pipeline = _default(persistence=f"order={order} ctas=20")
        yield Case("orders of tiles", f"order-{order}", spec, pipeline)


def _ping_pong() -> Iterator[Case]:
    """Many tiles a CTA, so that both consumers go round the ring; the result's type goes round."""
    results = itertools.cycle(RESULTS)
    for tile, (a, b) in itertools.product(("64x64x64", "128x128x64", "64x256x32"), LAYOUTS):
        spec = MatmulSpec(1000, 1112, 712, c_dtype=next(results), a_major=a, b_major=b)
        yield Case("ping-pong", f"ping-pong-{tile}-{a}{b}", spec, _alternating(tile))
    for shape in ("2x1", "1x2", "2x2"):
        pipeline = _alternating("128x64x64", f"clustering{{shape={shape}}},")
        yield Case("ping-pong", f"ping-pong-{shape}", MatmulSpec(1000, 1112, 712), pipeline)
    for k in (1, 203, 1100):  # copied by threads
        spec = MatmulSpec(500, 330, k, c_dtype="f32")
        yield Case("ping-pong", f"ping-pong-k{k}", spec, _alternating("64x64x64"))


def _alternating(tile: str, clustering: str = "") -> str:
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection"
    staging = "epilogue-staging{columns=32 buffers=4}"
    tail = "pipelining{stages=4},warp-specialization,persistence{ctas=8},ping-pong"
    return f"{head},{staging},{clustering}{tail}"


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
        pipeline = _default(tiling="tile=128x256x64")
        yield Case("types", f"{types}-{prefix}", spec, pipeline, prefix)
    for (types, dtypes), (preset, text) in itertools.product(
        TYPES.items(), presets_of(target).items()
    ):
        pipeline = text.replace("x64", "x32", 1) if types == "tf32" else text  # K of as many bytes
        yield Case("types", f"{types}-{preset}", MatmulSpec(*BYTES_SHAPE, *dtypes), pipeline)
    for (types, dtypes), shape in itertools.product(TYPES.items(), ODD_SHAPES):
        yield Case("types", f"{types}-{_joined(shape)}", MatmulSpec(*shape, *dtypes))
    for types, dtypes in TYPES.items():
        spec, pipeline = MatmulSpec(200, 168, 1000, *dtypes), _split("64x64x64", 3)
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
    kernels += [(_joined(shape), shape, DEFAULT_PIPELINE, None) for shape in STACK_ODD_SHAPES]
    kernels += [(f"chosen-{_joined(shape)}", shape, None, None)
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
            yield Case("outputs", f"outputs-{kind}-chosen-{_joined(shape)}", spec)
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
            yield Case("quantized", f"quantized-{form}-{way}-chosen-{_joined(shape)}", spec)
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
        pipeline = _default(tiling="tile=128x128x128")
        yield Case("blockwise", f"blockwise-{a}-{b}-{prefix}", spec, pipeline, prefix)
    for (a, b), shape in itertools.product(BLOCKWISE, (*ODD_SHAPES, BYTES_SHAPE)):
        spec = MatmulSpec(*shape, *types, "f32", a_scales=a, b_scales=b)
        yield Case("blockwise", f"blockwise-{a}-{b}-chosen-{_joined(shape)}", spec)
    for tile in ("128x192x128", "64x96x64", "192x96x32"):
        spec = MatmulSpec(*BYTES_SHAPE, "e4m3", "e5m2", a_scales="1x128", b_scales="128x128")
        yield Case("blockwise", f"blockwise-{tile}", spec, _default(tiling=f"tile={tile}"))
    split = MatmulSpec(200, 168, 1000, *types, a_scales="1x128", b_scales="1x128")
    yield Case("blockwise", "blockwise-split", split, _split("64x64x128", 3))
    stack = MatmulSpec(*BYTES_SHAPE, *types, batch=3, a_scales="1x128", b_scales="128x128")
    yield Case("blockwise", "blockwise-stack", stack)
    for shape in (*ODD_SHAPES, BYTES_SHAPE):
        spec = MatmulSpec(*shape, *types, "f32", sums="two-level")
        yield Case("blockwise", f"blockwise-two-level-{_joined(shape)}", spec)


def _weights(target: str) -> Iterator[Case]:
    """Weights that threads widen; `weights-` in their names."""
    for name, spec, pipeline, last in weight_kernels(target):
        yield Case("weights", name, spec, pipeline, last)
    spec, source = scaled_integers()
    yield Case("weights", "weights-s8-s8-chosen", spec, source=source)


def _units(target: str) -> Iterator[Case]:
    """Kernels of mma.sync, and of threads that multiply by themselves; `unit-` in their names."""
    has_tma = TARGETS[target].async_agents
    warps = _warp_types(target)
    yield from _unit_prefixes("mma.sync", WARPS, COPIES, warps)
    for name in SPLITS:
        types = {name: (name, name, "f32", "f32")}
        yield from _unit_prefixes("mma.sync", f"{SPLIT_WARPS}{name}", COPIES, types)
    yield from _unit_prefixes("fma", THREADS, COPIES[:3], _thread_types())
    if has_tma:
        yield from _unit_prefixes("mma.sync", WARPS, ROLES, warps, "roles-")
    else:
        yield from _chosen_units()
    yield from _unit_presets()
    yield from _unit_stacks(COPIES[:3])


def _warp_types(target: str) -> dict[str, tuple[str, ...]]:
    """Types that mma.sync multiplies: 8-bit floats since sm_89."""
    floats = {} if target in ("sm_80", "sm_86") else {"e4m3": TYPES["e4m3"]}
    halves = {
        each: (each, each, result, "f32") for each, result in (("bf16", "bf16"), ("f16", "f32"))
    }
    return halves | {each: TYPES[each] for each in ("tf32", "s8")} | floats


def _thread_types() -> dict[str, tuple[str, ...]]:
    return {"f32": ("f32", "f32", "f32", "f32"), "f64": ("f64", "f64", "f64", "f64")}


def _unit_prefixes(
    group: str,
    tiling: str,
    passes: Sequence[str],
    types: dict[str, tuple[str, ...]],
    kind: str = "",
) -> Iterator[Case]:
    """The layout goes round from prefix to prefix, starting elsewhere for each type."""
    for count, (at, (name, dtypes)) in itertools.product(
        range(len(passes) + 1), enumerate(types.items())
    ):
        a, b = LAYOUTS[(count + at) % len(LAYOUTS)]
        last = passes[count - 1].partition("{")[0] if count else "tiling"
        shape = UNIT_BYTES_SHAPE if name in TYPES else UNIT_SHAPE
        spec = MatmulSpec(*shape, *dtypes, a_major=a, b_major=b)
        text = ",".join((f"tiling{{{tiling}}}", *passes[:count]))
        yield Case(group, f"unit-{group}-{kind}{last}-{name}-{a}{b}", spec, text)


def _chosen_units() -> Iterator[Case]:
    """The schedule that the compiler chooses, where mma.sync is the chip's own."""
    for (types, dtypes), shape in itertools.product(
        (("bf16", ("bf16", "bf16", "f32")), ("s8", TYPES["s8"])), UNIT_ODD_SHAPES
    ):
        name = f"unit-chosen-{types}-{_joined(shape)}"
        yield Case("mma.sync", name, MatmulSpec(*shape, *dtypes))


def _unit_presets() -> Iterator[Case]:
    for preset, pipeline in WARP_PRESETS.items():
        yield Case("mma.sync", f"unit-{preset}", MatmulSpec(*SHAPE, b_major="n"), pipeline)
    for preset, pipeline in THREAD_PRESETS.items():
        yield Case("fma", f"unit-{preset}", MatmulSpec.of_type(*PUZZLE_SHAPE, "f32"), pipeline)


def _unit_stacks(passes: Sequence[str]) -> Iterator[Case]:
    units = {"mma.sync": (WARPS, "bf16"), "fma": (THREADS, "f32")}
    for (group, (tiling, dtype)), (number, stack) in itertools.product(
        units.items(), enumerate(STACKS)
    ):
        spec = MatmulSpec(*UNIT_SHAPE, dtype, dtype, "f32", **stack)
        text = ",".join((f"tiling{{{tiling}}}", *passes))
        yield Case(group, f"unit-{group}-stack-{number}", spec, text)


def _default(**options: str) -> str:
    """The default pipeline with options for some of its passes."""
    calls = (f"{name}{{{options[name]}}}" if name in options else name for name in PREFIXES)
    return ",".join(calls)


def _joined(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
