"""What compiler and loader know of groups of rows: their offsets' name, and how many tiles do."""

OFFSETS = "offsets"
"""The name of the input that says where groups of rows end."""


def tiles_of_groups(extent: int, groups: int, tile: int, together: int) -> int:
    """Tiles of `tile` rows that are enough for any groups of `extent` rows.

    Each group has a multiple of `together` of them, for clusters.
    """
    unit = tile * together
    return max(1, (extent + groups * (unit - 1)) // unit) * together
