"""Shapes of a few tiles: the emulator's time grows with the tiles, and two more show nothing."""


def a_few_tiles(tile: str, most: int = 136) -> tuple[int, ...]:
    """M, N and K for a tile such as "64x48x128": two whole tiles each way and 8 more, up to `most`.

    That is a first, a middle and a ragged last one. Multiples of 8, which TMA can address.
    """
    return tuple(min(2 * int(extent) + 8, most) for extent in tile.split("x"))
