"""Kernels by every kind of schedule: clusters, parts of K, exchanged operands, orders, turns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from gpu_test_case import LAYOUTS, RESULTS, TILES, Case, default, joined, parts_of_k
from gpu_test_sources import with_operands

from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import TARGETS

CLUSTERS = ("2x1", "1x2", "2x2", "4x1", "3x2")
WIDE_CLUSTERS = ("1x4", "2x4", "4x2", "1x8", "8x1")
SLICES = (("64x40x64", "4x1"), ("64x72x128", "8x1"), ("128x144x64", "4x2"), ("128x208x64", "4x1"))
"""Whose parts of B begin within a swizzle's pattern: 10, 9, 36 and 52 rows."""
SPLIT_CLUSTERS = (("1x2", 2), ("2x1", 3), ("2x2", 2), ("1x4", 2), ("4x1", 2), ("1x2", 4))


def by_schedules(target: str) -> Iterator[Case]:
    """All of them, family by family."""
    yield from _clusters()
    yield from _split_k()
    yield from _split_grid(target)
    yield from _swapped()
    yield from _orders()
    yield from _ping_pong()


def _clusters() -> Iterator[Case]:
    spec = MatmulSpec(600, 1000, 712, b_major="n")
    for tile, shape, last in itertools.product(TILES, CLUSTERS, (None, "pipelining")):
        pipeline = default(tiling=f"tile={tile}", clustering=f"shape={shape}")
        name = f"cluster-{shape}-{tile}-{last or 'all'}"
        yield Case("clusters", name, spec, pipeline, last)
    for shape in WIDE_CLUSTERS:
        pipeline = default(tiling="tile=64x64x64", clustering=f"shape={shape} pair=false")
        yield Case("clusters", f"cluster-{shape}", MatmulSpec(600, 1000, 712), pipeline)
    for tile, shape in SLICES:
        ring = f"clustering{{shape={shape} pair=false}},pipelining{{stages=3}},warp-specialization"
        pipeline = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,{ring}"
        yield Case("clusters", f"slices-{shape}-{tile}", MatmulSpec(600, 1000, 712), pipeline)


def _split_k() -> Iterator[Case]:
    for tile, parts, (a, b) in itertools.product(("64x64x64", "128x128x64"), (2, 3, 8), LAYOUTS):
        spec = MatmulSpec(200, 168, 1000, c_dtype="f32", a_major=a, b_major=b)
        yield Case("split K", f"split-{parts}-{tile}-{a}{b}", spec, parts_of_k(tile, parts))
    for shape, parts in SPLIT_CLUSTERS:
        pipeline = parts_of_k("64x64x64", parts, f"clustering{{shape={shape} pair=false}},")
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
        "split": "split-k{parts=2},pipelining{stages=2},warp-specialization",
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
        yield Case("swapped", f"swapped-chosen-{joined(shape)}", MatmulSpec(*shape))
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
        name = f"splitgrid-{joined(shape)}"
        yield Case("split grid", name, MatmulSpec(*shape), _over_grid(tile, parts))


def _over_grid(tile: str, parts: int, clustering: str = "") -> str:
    return parts_of_k(tile, parts, clustering).replace(f"parts={parts}", f"parts={parts} over=grid")


def _orders() -> Iterator[Case]:
    spec = MatmulSpec(2000, 2600, 712, "f16", "f16", "f16")
    for order in ("m", "n", "grouped", "hilbert"):
        pipeline = default(persistence=f"order={order} ctas=20")
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
