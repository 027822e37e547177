"""Shapes of a few tiles: the emulator's time grows with the tiles, and two more show nothing."""

from dataclasses import replace

from tilewright.compiler.spec import MatmulSpec


def a_few_tiles(tile: str, most: int = 136) -> tuple[int, ...]:
    """M, N and K for a tile such as "64x48x128": one whole tile along M, two along N and K, and 8
    more, up to `most`.

    That is a first and a ragged last one, along N and K one between them; M and N have different
    counts, which shows where they are exchanged. Multiples of 8, which TMA can address.
    """
    whole = zip((1, 2, 2), tile.split("x"), strict=True)
    return tuple(min(count * int(extent) + 8, most) for count, extent in whole)


def within(
    spec: MatmulSpec, tile: tuple[int, ...], most: tuple[int, ...] = (3, 3, 6)
) -> MatmulSpec:
    """The spec with no more than `most` tiles along M, N and K: whole ones are taken away.

    What the last tile has is kept, and so is what 8 and 16 divide, where they divide the tile.
    """
    extents = zip((spec.m, spec.n, spec.k), tile, most, strict=True)
    m, n, k = (
        extent if extent <= count * each else (count - 1) * each + (extent - 1) % each + 1
        for extent, each, count in extents
    )
    return replace(spec, m=m, n=n, k=k)


def prefixes_of(*pipelines):
    """Of (target, passes), each target with the passes up to each of them."""
    return [
        (target, ",".join(passes.split(",")[:count]))
        for target, passes in pipelines
        for count in range(1, passes.count(",") + 2)
    ]
