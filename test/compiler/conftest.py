"""What tests of the schedule choice share."""

import pytest

from tilewright.compiler.schedule import choice, tile_extents
from tilewright.dialects.target import REGISTERS


@pytest.fixture
def no_tables(monkeypatch):
    """The estimate decides: measured schedules have tests of their own."""
    monkeypatch.setattr(choice, "tuned_schedule", lambda problem, chip: None)


@pytest.fixture
def fewer_tiles(request, monkeypatch):
    """Every third width of tiles on Hopper, whose whole list has 100,000 candidates; --all: all.

    The quick choice and the whole list look at the same widths, so either finds what the other does
    for the same reasons.
    """
    if not request.config.getoption("--all"):
        monkeypatch.setitem(tile_extents.N_TILES, REGISTERS, tile_extents.N_TILES[REGISTERS][::3])
