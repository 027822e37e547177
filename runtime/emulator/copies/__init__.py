"""The copy engine: tensor maps, and their boxes in global and shared memory."""
