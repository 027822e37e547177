"""Shapes of a few tiles: the emulator's time grows with the tiles, and two more show nothing."""

from dataclasses import replace

from tilewright.compiler.spec import MatmulSpec


def a_few_tiles(tile: str, most: int = 136) -> tuple[int, ...]:
    """M, N and K for a tile such as "64x48x128": two whole tiles each way and 8 more, up to `most`.

    That is a first, a middle and a ragged last one. Multiples of 8, which TMA can address.
    """
    return tuple(min(2 * int(extent) + 8, most) for extent in tile.split("x"))


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
