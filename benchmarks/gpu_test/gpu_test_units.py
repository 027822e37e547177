"""Kernels of mma.sync, and of threads that multiply by themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_test_case import COPIES, LAYOUTS, SHAPE, STACKS, TYPES, Case, joined

from tilewright.compiler.presets import THREAD_PRESETS, WARP_PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import SPLITS, TILE_SPLITS
from tilewright.dialects.target import TARGETS

# Kernels whose warps or threads multiply: sizes that divide no tile, and quick on the emulator.
UNIT_SHAPE, UNIT_BYTES_SHAPE = (152, 72, 104), (176, 80, 112)
UNIT_ODD_SHAPES = ((1, 1, 1), (77, 33, 51), (129, 264, 72))
PUZZLE_SHAPE = (9, 9, 9)
ROLES = (
    "tma-insertion", "swizzle-selection", "epilogue-staging", "clustering{shape=2x1}",
    "pipelining{stages=3}", "warp-specialization", "persistence{ctas=4}",
)  # fmt: skip
SPLIT_SHAPE, SPLIT_TILES = (200, 168, 236), ("64x64x16", "128x64x32", "64x128x32", "128x128x32")
SPLIT_WARPS = "tile=64x64x32 mma=mma.sync+"
LANES = (
    ("tile=1x2x4096 threads=128 lanes=128", (1, 1030, 4096)),
    ("tile=2x4x2048 threads=256 lanes=64", (2, 77, 5000)),
    ("tile=1x8x768 threads=128 lanes=32", (1, 514, 765)),
    ("tile=1x2x7168 threads=448 lanes=448", (1, 34, 14338)),
)  # fmt: skip
WARPS, THREADS = "tile=64x64x32 mma=mma.sync", "tile=64x32x16 mma=fma threads=64"


def unit_kernels(target: str) -> Iterator[Case]:
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
        yield from _split_tiles(target)
    else:
        yield from _chosen_units()
    yield from _unit_presets()
    yield from _unit_stacks(COPIES[:3])
    yield from _lanes()


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


def _split_tiles(target: str) -> Iterator[Case]:
    """f32 by nine products in whole tiles that threads split: prefixes, tiles, parts of K."""
    names = {unit.name for unit in TARGETS[target].other_mmas}
    for mma, dtype in [each for each in TILE_SPLITS.items() if each[0] in names]:
        types = {dtype: (dtype, dtype, "f32", "f32")}
        tiling = f"tile=64x64x32 mma={mma}"
        yield from _unit_prefixes("split tiles", tiling, ROLES, types)
        tail = ",tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
        parts = "pipelining", "split-k{parts=3 over=grid},pipelining"
        forms = {"plain": {}, "stack": {"batch": 2}, "dual": {"products": 2}}
        for tile, (form, fields) in itertools.product(SPLIT_TILES, forms.items()):
            spec = MatmulSpec(*SPLIT_SHAPE, dtype, dtype, "f32", **fields)
            text = f"tiling{{tile={tile} mma={mma}}}{tail}"
            yield Case("split tiles", f"unit-split-{tile}-{form}", spec, text)
        for (a, b), tile in itertools.product(LAYOUTS, SPLIT_TILES[:2]):
            spec = MatmulSpec(*SPLIT_SHAPE, dtype, dtype, "f32", a_major=a, b_major=b)
            text = f"tiling{{tile={tile} mma={mma}}}{tail.replace(*parts)}"
            yield Case("split tiles", f"unit-split-{tile}-parts-{a}{b}", spec, text)


def _chosen_units() -> Iterator[Case]:
    """The schedule that the compiler chooses, where mma.sync is the chip's own."""
    for (types, dtypes), shape in itertools.product(
        (("bf16", ("bf16", "bf16", "f32")), ("s8", TYPES["s8"])), UNIT_ODD_SHAPES
    ):
        name = f"unit-chosen-{types}-{joined(shape)}"
        yield Case("mma.sync", name, MatmulSpec(*shape, *dtypes))


def _unit_presets() -> Iterator[Case]:
    for preset, pipeline in WARP_PRESETS.items():
        yield Case("mma.sync", f"unit-{preset}", MatmulSpec(*SHAPE, b_major="n"), pipeline)
    for preset, pipeline in THREAD_PRESETS.items():
        yield Case("fma", f"unit-{preset}", MatmulSpec.of_type(*PUZZLE_SHAPE, "f32"), pipeline)


def _lanes() -> Iterator[Case]:
    """Lanes that share elements: rows of whole loads and not, layouts, two products, stacks."""
    types = ("bf16", "f16", "f32")
    for (tile, shape), (at, dtype) in itertools.product(LANES, enumerate(types)):
        a, b = LAYOUTS[(at + shape[2]) % len(LAYOUTS)]
        text = f"tiling{{{tile} mma=fma operands=global}}"
        spec = MatmulSpec.of_type(*shape, dtype)
        name = f"unit-lanes-{joined(shape)}-{dtype}"
        yield Case("fma", f"{name}-{a}{b}", replace(spec, a_major=a, b_major=b), text)
        if spec.n % 2 == 0:
            yield Case("fma", f"{name}-dual", replace(spec, products=2), text)
        yield Case("fma", f"{name}-stack", replace(spec, batch=3), text)


def _unit_stacks(passes: Sequence[str]) -> Iterator[Case]:
    units = {"mma.sync": (WARPS, "bf16"), "fma": (THREADS, "f32")}
    for (group, (tiling, dtype)), (number, stack) in itertools.product(
        units.items(), enumerate(STACKS)
    ):
        spec = MatmulSpec(*UNIT_SHAPE, dtype, dtype, "f32", **stack)
        text = ",".join((f"tiling{{{tiling}}}", *passes))
        yield Case(group, f"unit-{group}-stack-{number}", spec, text)
