"""The kernels of one matmul that docs/hopper.md compares, by the comparison's name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.pipeline import presets_of
from tilewright.compiler.schedule.kinds.warp_schedule import warp_schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import TILE_SPLITS
from tilewright.dialects.target import find_target

PING_PONG = (
    "4096x4096x256",
    "8192x8192x256",
    "8192x8192x512",
    "4096x4096x1024",
    "8192x8192x1024",
    "2048x2048x2048",
    "4096x4096x4096",
    "8192x1024x8192",
)
FEW_ROWS = ("16x4096x4096", "32x4096x4096", "48x4096x4096")
COPIES = {
    "300x5000x1100": "128x128x128",
    "300x5000x1102": "128x128x128",
    "300x5000x1104": "128x128x128",
    "1024x4096x4100": "128x256x64",
}
# Tile, passes before pipelining, passes after the roles.
ODD_ROWS = {
    "777x1555x3111": ("128x176x64", "split-k{parts=2}", ""),
    "1000x3000x2041": ("128x192x64", "epilogue-staging{columns=32 buffers=2}", ""),
    "2048x2048x2047": ("256x128x64", "epilogue-staging{columns=64 buffers=2}", ""),
    "4095x4097x4093": ("256x128x64", "", ",persistence{order=grouped group=8}"),
}
SHORT = (
    *("512x512x512", "768x768x768", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096"),
    *("16x4096x4096", "64x4096x4096", "128x7168x4096", "8x5120x5120", "256x256x16384"),
    *("300x5000x1100", "4096x128x4096", "2048x256x8192", "1000x3000x2040"),
)
LARGE = ("4096x4096x4096", "8192x8192x8192", "4096x28672x4096", "16384x16384x16384")
ORDERS = {
    "along-m": "order=m",
    "along-n": "order=n",
    "grouped-8": "order=grouped group=8",
    "grouped-16": "order=grouped group=16",
    "hilbert": "order=hilbert",
}
STORE_ORDERS = {"along-m": "order=m", "grouped": "order=grouped"}
STORED = {
    **dict.fromkeys(("1024x1024x1024", "128x7168x4096"), "64x64x64"),
    **dict.fromkeys(
        ("2048x2048x2048", "4096x4096x4096", "8192x8192x1024", "8192x1024x8192", "8192x8192x8192"),
        "128x128x32",
    ),
}
STARTS = {
    "3262x416x2592": "192x64x64",
    "4096x128x4096": "64x64x128",
    "512x4096x4096": "64x256x64",
    "302x8088x2256": "256x80x64 swap=true",
    "700x2048x8192": "128x96x64 swap=true",
}
# M×N×K: the tile without an exchange, passes before pipelining.
ODD_MMAS = {
    "320x4096x4096": ("64x160x64", ""),
    "192x8192x4096": ("192x64x64", ""),
    "448x4096x4096": ("128x128x64", "clustering{shape=1x2 pair=false}"),
    "960x2048x4096": ("128x128x64", ""),
    "320x8088x2256": ("128x192x64", ""),
}
EVEN_MMAS = {
    # M×N×K: tile of exchanged operands, columns of a piece
    "384x2048x512": ("64x96x64", 32),
    "640x2560x512": ("128x112x64", 16),
    "896x4096x1024": ("128x224x64", 32),
    "1152x1408x5120": ("128x96x64", 32),
    "2560x1408x2048": ("128x224x64", 32),
}
SLICES = {
    # M×N×K: tile, cluster and columns of a piece, in slices of eights and of any rows
    "147x3152x4808": (
        ("128x40x128 swap=true order=n", "1x4", 40), ("64x80x128 swap=true order=n", "4x2", 16)
    ),
    "266x6824x968": (
        ("256x72x64 swap=true order=n", "1x4", 24), ("128x136x64 swap=true order=n", "4x2", 136)
    ),
    "274x7304x15656": (
        ("256x72x64 swap=true order=n", "1x4", 24), ("128x144x64 swap=true order=n", "4x2", 16)
    ),
    "2623x760x14600": (("192x96x64", "1x8", 32), ("128x136x64 swap=true order=n", "2x4", 136)),
    "3040x856x6608": (("192x112x64", "1x2", 16), ("128x176x64", "4x1", 16)),
    "1252x800x15536": (("128x80x64 swap=true order=n", "1x8", 16), ("64x144x64", "4x1", 16)),
}  # fmt: skip
SPLITS = {
    # M×N×K: tile, numbers of CTAs that share a tile
    "256x256x16384": ("64x64x64", (1, 2, 3, 4, 6, 8)),
    "32x1024x8192": ("64x64x64", (1, 2, 3, 4, 6, 8)),
    "1024x256x8192": ("64x128x64", (1, 2, 3, 4)),
    "4096x128x4096": ("64x128x64", (1, 2)),
    "64x4096x4096": ("64x64x64", (1, 2)),
    "512x512x512": ("64x64x128", (1, 2)),
}


SPLIT_GRIDS = {
    # M×N×K: (tile, parts of K over the grid, cluster that multicasts within a part)
    "2279x984x11448": (
        ("128x256x64", 3, "1x1"), ("128x256x64", 3, "2x1"), ("128x256x64", 5, "2x1"),
        ("256x128x64", 3, "1x2"), ("256x128x64", 5, "1x2"), ("128x192x64", 4, "2x1"),
    ),
    "785x5632x8768": (
        ("128x256x64", 3, "1x2"), ("128x256x64", 6, "1x2"), ("128x256x64", 5, "1x1"),
        ("128x192x64", 3, "1x2"), ("128x256x64", 2, "1x2"),
    ),
    "71x5512x6256": (
        ("128x128x64", 3, "1x1"), ("64x128x64", 3, "2x1"), ("64x256x64", 3, "2x1"),
        ("128x128x64", 3, "1x2"), ("64x256x64", 2, "2x1"), ("128x192x64", 4, "1x1"),
    ),
    "146x6032x11528": (
        ("128x192x64", 2, "2x1"), ("192x128x64", 2, "1x1"), ("192x128x64", 2, "1x2"),
        ("192x192x64", 4, "1x2"), ("64x256x64", 2, "1x1"), ("128x256x64", 2, "2x1"),
    ),
    "512x512x16384": (
        ("128x128x64", 8, "2x2"), ("128x128x64", 8, "2x1"), ("128x256x64", 16, "2x1"),
        ("256x128x64", 16, "1x2"), ("128x128x64", 4, "2x2"),
    ),
    "256x256x16384": (
        ("128x128x64", 16, "2x2"), ("128x128x64", 32, "2x2"), ("64x128x64", 16, "2x2"),
        ("64x64x64", 8, "2x2"), ("64x64x64", 4, "4x1"),
    ),
    "1024x1024x8192": (
        ("128x256x64", 4, "2x1"), ("128x128x64", 2, "2x2"), ("256x128x64", 4, "1x2"),
        ("128x256x64", 4, "2x2"),
    ),
    "384x1536x12288": (
        ("128x256x64", 7, "1x2"), ("128x128x64", 3, "1x2"), ("192x192x64", 8, "2x1"),
        ("128x256x64", 6, "1x2"), ("128x192x64", 5, "1x2"),
    ),
    "640x640x16384": (
        ("128x128x64", 5, "1x1"), ("128x160x64", 6, "1x2"), ("128x128x64", 5, "1x5"),
        ("128x160x64", 6, "1x4"),
    ),
    "128x2048x16384": (
        ("128x128x64", 8, "1x2"), ("128x256x64", 16, "1x2"), ("64x256x64", 8, "2x1"),
        ("128x64x64", 4, "1x4"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One kernel for a shape; `pipeline` is None for the schedule that the compiler chooses."""

    shape: str
    name: str
    pipeline: str | None = None


WARP_SHAPES = (
    "512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "8192x8192x8192",
    "16x4096x4096", "128x7168x4096", "4096x4096x14336", "8192x8192x1024", "8192x1024x8192",
    "300x5000x1100", "4096x128x4096",
)  # fmt: skip
NINE_SHAPES = (
    "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "8192x8192x1024", "64x4096x4096",
    "4096x128x4096",
)  # fmt: skip
NINE_TILES = (
    ("64x64x32", 4), ("64x128x32", 2), ("128x64x32", 3), ("128x128x32", 2), ("128x128x16", 4),
    ("128x96x32", 3),
)  # fmt: skip
WARP_TILES = {
    "square": ("128x128x32", 4),
    "long": ("128x128x64", 3),
    "wide": ("128x256x32", 4),
    "small": ("64x64x64", 4),
}


def presets(target: str) -> Iterator[Variant]:
    """What each step of a chip's ladder gains."""
    for name, pipeline in presets_of(target).items():
        yield Variant("4096x4096x4096", name, pipeline)


def split_k(target: str) -> Iterator[Variant]:
    """Few tiles with a long K: one CTA a tile, and K split over a cluster."""
    for shape, (tile, splits) in SPLITS.items():
        for parts in splits:
            middle = [f"split-k{{parts={parts}}}"] if parts > 1 else []
            yield Variant(shape, f"{tile}-split-{parts}", _with_roles(tile, *middle))


def split_grid(target: str) -> Iterator[Variant]:
    """Few tiles with a long K: the chosen schedule, and parts of K over the grid."""
    for shape, candidates in SPLIT_GRIDS.items():
        yield Variant(shape, "chosen")
        for tile, parts, cluster in candidates:
            split = f"split-k{{parts={parts} over=grid}}"
            clustering = f"clustering{{shape={cluster} pair=false}}"
            pipeline = _with_roles(tile, split, "" if cluster == "1x1" else clustering)
            yield Variant(shape, f"{tile}-grid-{parts}-{cluster}", pipeline)


def few_rows(target: str) -> Iterator[Variant]:
    """Fewer rows than a tile has, copied in boxes of their own."""
    for shape in FEW_ROWS:
        yield Variant(shape, "64x32x128", _with_roles("64x32x128"))
        yield Variant(shape, "64x64x64", _with_roles("64x64x64"))
        yield Variant(shape, "64x64x64-split-2", _with_roles("64x64x64", "split-k{parts=2}"))


def ping_pong(target: str) -> Iterator[Variant]:
    """One consumer role for all tiles, and two that alternate, from a short K to a long one."""
    ladder = presets_of(target)
    for shape in PING_PONG:
        yield Variant(shape, "chosen")
        yield Variant(shape, "h6", ladder["h6"])
        yield Variant(shape, "h8", ladder["h8"])


def copies(target: str) -> Iterator[Variant]:
    """Rows that TMA can't address, 8 and 4 bytes a copy by threads, and K = 1104, which it can."""
    for shape, tile in COPIES.items():
        yield Variant(shape, tile, _with_roles(tile, "epilogue-staging{columns=32 buffers=2}"))


def odd_rows(target: str) -> Iterator[Variant]:
    """Rows of an odd number of elements, which threads load by aligned units and shift."""
    for shape, (tile, middle, last) in ODD_ROWS.items():
        yield Variant(shape, tile, f"{_with_roles(tile, middle)}{last}")


def pitches(target: str) -> Iterator[Variant]:
    """Rows that start at multiples of 128 bytes and others, with and without multicast."""
    for shape in ("1000x3000x2040", "1000x3000x2048"):
        for cluster in ("1x1", "1x2", "2x1"):
            middle = f"epilogue-staging,clustering{{shape={cluster} pair=false}}"
            yield Variant(shape, cluster, _with_roles("128x192x64", middle))


def orders(target: str) -> Iterator[Variant]:
    """The order in which a persistent kernel hands its tiles out."""
    for shape, (name, order) in itertools.product(LARGE, ORDERS.items()):
        yield Variant(shape, name, f"{_PERSISTENT},persistence{{{order}}}")


def starts(target: str) -> Iterator[Variant]:
    """The order in which CTAs of one tile each start: neighbours share a tile of B, or of A."""
    for shape, tile in STARTS.items():
        for order in ("m", "n"):
            yield Variant(shape, f"order-{order}", _with_roles(f"{tile} order={order}", STAGED))


def exchanges(target: str) -> Iterator[Variant]:
    """The chosen schedule, and one without an exchange for M of an odd number of whole MMAs, one
    with it for M of an even number."""
    for shape, (tile, clustering) in ODD_MMAS.items():
        yield Variant(shape, "chosen")
        yield Variant(shape, tile, _with_roles(tile, STAGED, clustering))
    for shape, (tile, columns) in EVEN_MMAS.items():
        yield Variant(shape, "chosen")
        staged = f"epilogue-staging{{columns={columns} buffers=2}}"
        yield Variant(shape, f"{tile}-swap", _with_roles(f"{tile} swap=true order=n", staged))


def slices(target: str) -> Iterator[Variant]:
    """Clusters whose CTAs load slices of whole groups of eight rows, and of any rows."""
    for shape, both in SLICES.items():
        for name, (tile, cluster, columns) in zip(("eights", "any"), both, strict=True):
            staged = f"epilogue-staging{{columns={columns}}}"
            clustering = f"clustering{{shape={cluster} pair=false}}"
            yield Variant(shape, name, _with_roles(tile, staged, clustering))


def launches(target: str) -> Iterator[Variant]:
    """Back to back, by whether a kernel may be started before the one in front has ended."""
    for shape, pdl in itertools.product(SHORT, ("false", "true", "early")):
        spec = MatmulSpec(*map(int, shape.split("x")))
        chosen = choose_pipeline(spec, target)
        yield Variant(shape, f"pdl-{pdl}", f"{chosen},lower-to-nvvm{{pdl={pdl}}}")


def warps(target: str) -> Iterator[Variant]:
    """mma.sync from rings that threads fill: the chosen schedule, and that for the multiprocessors
    of an H100 or H200, where the kernels run; tiles for two CTAs or one."""
    here = replace(find_target(target), multiprocessors=find_target("sm_90a").multiprocessors)
    for shape, (name, (tile, stages)) in itertools.product(WARP_SHAPES, WARP_TILES.items()):
        ring = f"copy-insertion,swizzle-selection,epilogue-staging,pipelining{{stages={stages}}}"
        yield Variant(shape, name, f"tiling{{tile={tile}}},{ring}")
        if name == "wide":
            yield Variant(shape, "chosen")
            spec = MatmulSpec(*map(int, shape.split("x")))
            yield Variant(shape, "chosen-here", warp_schedule(spec, here).pipeline())


def stores(target: str) -> Iterator[Variant]:
    """mma.sync with C stored from registers or staged, tiles along M or in groups."""
    for shape, tile in STORED.items():
        for (name, order), staged in itertools.product(STORE_ORDERS.items(), (False, True)):
            staging = "epilogue-staging," if staged else ""
            passes = f"copy-insertion,swizzle-selection,{staging}pipelining{{stages=4}}"
            suffix = "-staged" if staged else ""
            yield Variant(
                shape, f"{name}{suffix}", f"tiling{{tile={tile} warps=2x2 {order}}},{passes}"
            )


def nine_products(target: str) -> Iterator[Variant]:
    """f32 by nine products of bf16 (`--type bf16x9`): the chosen schedule, and tiles that threads
    split."""
    units = [unit.name for unit in find_target(target).other_mmas]
    mma = next(each for each in TILE_SPLITS if each in units)
    for shape, (tile, stages) in itertools.product(NINE_SHAPES, NINE_TILES):
        if (tile, stages) == NINE_TILES[0]:
            yield Variant(shape, "chosen")
        ring = f"epilogue-staging{{columns=16}},pipelining{{stages={stages}}}"
        tiling = f"tiling{{tile={tile} mma={mma}}},tma-insertion,swizzle-selection"
        yield Variant(shape, tile, f"{tiling},{ring},warp-specialization")


COMPARISONS = {
    "stores": stores,
    "warps": warps,
    "presets": presets,
    "ping-pong": ping_pong,
    "split-k": split_k,
    "split-grid": split_grid,
    "few-rows": few_rows,
    "copies": copies,
    "odd-rows": odd_rows,
    "pitches": pitches,
    "orders": orders,
    "starts": starts,
    "exchanges": exchanges,
    "slices": slices,
    "launches": launches,
    "nine-products": nine_products,
}
STAGED = "epilogue-staging"
_PERSISTENT = (
    "tiling{tile=128x256x64},tma-insertion,swizzle-selection,epilogue-staging,"
    "pipelining{stages=4},warp-specialization"
)


def _with_roles(tile: str, *middle: str) -> str:
    """As many stages as fit, a load role and a consumer; direct stores unless `middle` stages."""
    passes = (f"tiling{{tile={tile}}}", "tma-insertion", "swizzle-selection", *middle)
    return ",".join((*filter(None, passes), "pipelining", "warp-specialization"))
