"""Checks of the barriers of a planned kernel: counts, phases, and the end of a kernel."""
