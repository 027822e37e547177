"""Tiles in shared memory, as MMAs and threads read them."""
