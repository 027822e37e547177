"""How many K steps the CTA has that ends last, of tiles of groups of K: by counting, not by time.

    python benchmarks/grouped_tails.py [2048x1536x65536x128k] [--tile 128x256] [--ctas 132]

Tiles are shared out, each CTA getting as many as any other (a static schedule), or handed out, to
the CTA that has ended (cluster launch control); in the order of groups, or from the heaviest on.
A tile takes its group's K steps of 64 and OVERHEAD more.
"""

from __future__ import annotations

import argparse
import heapq

from grouped import KINDS, offsets_of, sizes_of

OVERHEAD, DEPTH, GROUP = 2, 64, 8


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts K steps of the CTA that ends last.")
    parser.add_argument("shape", nargs="?", default="2048x1536x65536x128k")
    parser.add_argument("--tile", default="128x256", help="rows and columns (default 128x256)")
    parser.add_argument("--ctas", type=int, default=132, help="that run at once (default 132)")
    options = parser.parse_args()
    m, n, k, groups, _ = sizes_of(options.shape)
    rows, columns = (int(each) for each in options.tile.split("x"))
    along = -(-m // rows), -(-n // columns)
    for kind in KINDS:
        ends = offsets_of(kind, k, groups)
        counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
        heavy = sorted(range(groups), key=lambda group, counts=counts: -counts[group])
        for name, order in (("in order", range(groups)), ("heavy first", heavy)):
            costs = [OVERHEAD + max(1, -(-counts[g] // DEPTH)) for g in tiles(order, along)]
            shared = max(sum(costs[cta :: options.ctas]) for cta in range(options.ctas))
            print(f"{kind:8} {name:12} shared {shared:6} handed out {last(costs, options.ctas):6}")


def tiles(order: range | list[int], along: tuple[int, int]) -> list[int]:
    """The group of each tile, in the grouped order of `persistence`."""
    down, across = along
    total, found = len(order) * down, []
    for first in range(0, total, GROUP):
        places = range(first, min(first + GROUP, total))
        found += [order[place // down] for _ in range(across) for place in places]
    return found


def last(costs: list[int], ctas: int) -> int:
    """When the last CTA ends, where each takes the next tile when it has ended one."""
    ends = [0] * ctas
    for cost in costs:
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


if __name__ == "__main__":
    main()
