"""Sizes that the PTX ISA fixes, for the compiler and for those who read its bundles."""

WARP_THREADS = 32
BARRIER_BYTES = 8  # of an mbarrier object
