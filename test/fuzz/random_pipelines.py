"""Random pipelines, most of them such as nobody would write: the passes of a schedule without some,
with others, twice, in another order, and with options at the ends of what they take."""

from __future__ import annotations

import random

USUAL = ((64, 128, 128, 256), (16, 32, 64, 96, 128, 160, 256), (32, 64, 64, 128, 256))
TILES = (
    (16, 32, 64, 64, 128, 128, 192, 256, 1, 3, 8, 512),
    (8, 16, 16, 32, 64, 96, 128, 160, 256, 1, 5, 24, 512),
    (8, 16, 32, 64, 64, 128, 256, 1, 4, 48, 80),
)
ORDERS = ("m", "n", "grouped", "hilbert")
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "tiling": {
        "mma": ("auto", "fma", "mma.sync", "wgmma.mma_async", "tcgen05.mma", "tcgen05.mma-added"),
        "operands": ("tiles", "whole", "global"),
        "threads": ("auto", "32", "64", "128", "256", "1024"),
        "warps": ("auto", "1x1", "2x2", "1x4", "4x1", "2x4", "8x1"),
        "order": ORDERS,
        "group": ("auto", "1", "2", "8", "1024"),
        "kind": ("auto", "mxf4", "mxf4nvf4", "mxf8f6f4"),
        "swap": ("true", "true", "false"),
        "lanes": ("1", "2", "4", "16", "32", "96", "128", "1024"),
    },
    "tma-insertion": {"box": ("2d", "3d")},
    "copy-insertion": {},
    "swizzle-selection": {"force": ("widest", "none", "32B", "64B", "128B"), "report": ("true",)},
    "split-k": {"parts": ("1", "2", "3", "4", "8", "16"), "over": ("cluster", "grid")},
    "epilogue-staging": {
        "columns": ("auto", "8", "16", "32", "64", "128"),
        "buffers": ("auto", "1", "2", "4", "8"),
        "write": ("auto", "rows", "matrices"),
        "vectors": ("threads", "ahead", "registers"),
        "ahead": ("0", "1", "2", "4"),
    },
    "clustering": {
        "shape": ("auto", "1x1", "2x1", "1x2", "2x2", "4x1", "1x4", "4x2", "8x1", "16x1", "4x4"),
        "pair": ("auto", "true", "false"),
        "fallback": ("auto", "1x1", "2x1", "2x2"),
    },
    "pipelining": {"stages": ("auto", "1", "2", "3", "4", "7", "16", "64")},
    "warp-specialization": {},
    "persistence": {
        "scheduler": ("static", "clc"),
        "depth": ("auto", "1", "2", "3", "8"),
        "order": ORDERS,
        "group": ("auto", "1", "2", "8"),
        "ctas": ("auto", "1", "2", "7", "300"),
    },
    "ping-pong": {},
    "slot-reuse": {},
    "k-rotation": {"along": ("n", "m"), "together": ("1", "2", "4"), "by": ("1", "3")},
    "skip-zeros": {},
    "level-groups": {"unit": ("8", "16", "24"), "box": ("8", "32", "64")},
    "edge-boxes": {},
    "expand-loops": {"reads": ("rows", "matrices"), "early": ("0", "1", "2", "8")},
    "assign-threads": {},
    "plan-memory": {},
    "pipes-to-barriers": {},
    "select-instructions": {},
    "lower-to-nvvm": {"pdl": ("auto", "true", "false", "early")},
}
SCHEDULE = tuple(name for name in OPTIONS if name not in ("assign-threads", "plan-memory"))[:12]
Call = tuple[str, dict[str, str]]


def changed(draw: random.Random, text: str) -> str:
    """A pipeline with one to four changes of it."""
    calls = _parsed(text)
    for _ in range(draw.choice((1, 1, 2, 2, 3, 4))):
        draw.choice(CHANGES)(draw, calls)
    return _text(calls)


def of_nothing(draw: random.Random) -> str:
    """Passes of a schedule with options as they come: mostly in their order, each once."""
    calls = [("tiling", _tiling(draw)), *(_drawn(draw, each) for each in SCHEDULE[1:])]
    kept = [calls[0], *(each for each in calls[1:] if draw.random() < 0.45)]
    if draw.random() < 0.2:
        draw.shuffle(kept)
    if draw.random() < 0.15:
        kept.append(draw.choice(kept))
    return _text(kept)


def _parsed(text: str) -> list[Call]:
    calls: list[Call] = []
    for each in text.split(","):
        name, _, rest = each.strip().partition("{")
        options = dict(option.split("=") for option in rest.rstrip("}").split())
        calls.append((name, options))
    return calls


def _text(calls: list[Call]) -> str:
    told = [(name, " ".join(f"{key}={each}" for key, each in o.items())) for name, o in calls]
    return ",".join(f"{name}{{{options}}}" if options else name for name, options in told)


def _tile(draw: random.Random) -> str:
    """Mostly one that tensor cores take."""
    sizes = USUAL if draw.random() < 0.75 else TILES
    return "x".join(str(draw.choice(each)) for each in sizes)


def _tiling(draw: random.Random) -> dict[str, str]:
    found = {"tile": _tile(draw)} if draw.random() < 0.95 else {}
    names = [name for name in OPTIONS["tiling"] if draw.random() < 0.08]
    return found | {name: draw.choice(OPTIONS["tiling"][name]) for name in names}


def _drawn(draw: random.Random, name: str) -> Call:
    if name == "tiling":
        return name, _tiling(draw)
    chosen = {
        key: draw.choice(values) for key, values in OPTIONS[name].items() if draw.random() < 0.45
    }
    if name == "split-k":
        chosen.setdefault("parts", draw.choice(OPTIONS[name]["parts"]))
    return name, chosen


def _drop(draw: random.Random, calls: list[Call]) -> None:
    if len(calls) > 1:
        calls.pop(draw.randrange(len(calls)))


def _repeat(draw: random.Random, calls: list[Call]) -> None:
    calls.insert(draw.randint(0, len(calls)), draw.choice(calls))


def _swap(draw: random.Random, calls: list[Call]) -> None:
    i, j = draw.randrange(len(calls)), draw.randrange(len(calls))
    calls[i], calls[j] = calls[j], calls[i]


def _insert(draw: random.Random, calls: list[Call]) -> None:
    """A pass at its place in the order, or anywhere."""
    made = _drawn(draw, draw.choice(tuple(OPTIONS)))
    names = list(OPTIONS)
    place = next(
        (
            i
            for i, (name, _) in enumerate(calls)
            if name in names and names.index(name) > names.index(made[0])
        ),
        len(calls),
    )
    calls.insert(place if draw.random() < 0.8 else draw.randint(0, len(calls)), made)


def _option(draw: random.Random, calls: list[Call]) -> None:
    number = draw.randrange(len(calls))
    name, options = calls[number]
    known = OPTIONS.get(name, {})
    if name == "tiling" and draw.random() < 0.5:
        calls[number] = name, {**options, "tile": _tile(draw)}
    elif known:
        key = draw.choice(tuple(known))
        calls[number] = name, {**options, key: draw.choice(known[key])}


def _cut(draw: random.Random, calls: list[Call]) -> None:
    del calls[max(1, draw.randint(1, len(calls))) :]


CHANGES = (_drop, _repeat, _swap, *[_insert] * 3, *[_option] * 5, _cut)


def cut(draw: random.Random, text: str) -> str:
    """The first passes of a pipeline."""
    calls = _parsed(text)
    _cut(draw, calls)
    return _text(calls)
