"""What the CTA has to do that ends last, of tiles of groups: by counting, not by time.

    python benchmarks/grouped_tails.py [2048x1536x65536x128k] [--tile 128x256] [--ctas 132]

Tiles are shared out, each CTA getting as many as any other (a static schedule), or handed out, to
the CTA that has ended (cluster launch control).

Of groups of K (a shape in k) K steps are counted, in the order of groups, or from the heaviest on.
A tile takes its group's K steps of 64 and OVERHEAD more.

Of groups of rows tiles are counted, over those of so many rows in one group, shared out evenly: as
whole ones, with the last one of a group half of one where it has at most half of its rows, with two
such as one, and with such halves handed out; beside them, what all together have, and what they
would have of MMAs of 32 rows.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Sequence

from grouped import KINDS, offsets_of, sizes_of

OVERHEAD, DEPTH, GROUP = 2, 64, 8


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts K steps of the CTA that ends last.")
    parser.add_argument("shape", nargs="?", default="2048x1536x65536x128k")
    parser.add_argument("--tile", default="128x256", help="rows and columns (default 128x256)")
    parser.add_argument("--ctas", type=int, default=132, help="that run at once (default 132)")
    options = parser.parse_args()
    m, n, k, groups, letter = sizes_of(options.shape)
    rows, columns = (int(each) for each in options.tile.split("x"))
    if letter != "k":
        count_rows((m, n, groups), (rows, columns), options.ctas)
        return
    along = -(-m // rows), -(-n // columns)
    for kind in KINDS:
        counts = counts_of(kind, k, groups)
        heavy = sorted(range(groups), key=lambda group, counts=counts: -counts[group])
        for name, order in (("in order", range(groups)), ("heavy first", heavy)):
            costs = [OVERHEAD + max(1, -(-counts[g] // DEPTH)) for g in tiles(order, along)]
            shared = max(sum(costs[cta :: options.ctas]) for cta in range(options.ctas))
            print(
                f"{kind:8} {name:12} shared {shared:6} handed out {last(costs, options.ctas):6.0f}"
            )


def counts_of(kind: str, extent: int, groups: int) -> list[int]:
    """What each group has."""
    ends = offsets_of(kind, extent, groups)
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def count_rows(shape: tuple[int, int, int], tile: tuple[int, int], ctas: int) -> None:
    """A line for each kind of groups of rows."""
    (m, n, groups), (rows, columns) = shape, tile
    across = -(-n // columns)
    even = m / rows * across / ctas
    for kind in KINDS:
        counts = counts_of(kind, m, groups)
        high = tiles_of_rows(counts, rows, across)
        halves = [math.ceil(2 * each / rows) / 2 for each in high]
        paired = [1.0] * halves.count(1) + pairs_of_rows(counts, rows, across)
        found = {
            "whole": max(map(len, (high[cta::ctas] for cta in range(ctas)))),
            "halves": most(halves, ctas),
            "in pairs": most(paired, ctas),
            "handed out": last(halves, ctas),
            "all": sum(halves) / ctas,
            "of 32 rows": sum(-(-each // 32) * 32 / rows for each in high) / ctas,
        }
        shown = "   ".join(f"{name} {count / even:.3f}" for name, count in found.items())
        print(f"{kind:8} {shown}")


def tiles_of_rows(counts: list[int], rows: int, across: int) -> list[int]:
    """How many rows each tile has, in the order of groups: bands along M, then along N."""
    found = []
    for count in counts:
        of_group = [min(rows, count - first) for first in range(0, count, rows)]
        for band in range(0, len(of_group), GROUP):
            found += of_group[band : band + GROUP] * across
    return found


def pairs_of_rows(counts: list[int], rows: int, across: int) -> list[float]:
    """What two neighbours count, or one, of last tiles along M with at most half of their rows."""
    short = sum(0 < count % rows <= rows // 2 for count in counts)
    return [*[1.0] * (across // 2), *[0.5] * (across % 2)] * short


def most(costs: list[float], ctas: int) -> float:
    """What the CTA has with the most, each taking as many as any other."""
    return max(sum(costs[cta::ctas]) for cta in range(ctas))


def tiles(order: range | list[int], along: tuple[int, int]) -> list[int]:
    """The group of each tile, in the grouped order of `persistence`."""
    down, across = along
    total, found = len(order) * down, []
    for first in range(0, total, GROUP):
        places = range(first, min(first + GROUP, total))
        found += [order[place // down] for _ in range(across) for place in places]
    return found


def last(costs: Sequence[float], ctas: int) -> float:
    """When the last CTA ends, where each takes the next tile when it has ended one."""
    ends = [0.0] * ctas
    for cost in costs:
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


if __name__ == "__main__":
    main()
