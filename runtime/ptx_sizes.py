"""Sizes defined by the PTX ISA, for the compiler and for readers of its bundles."""

WARP_THREADS = 32
BARRIER_BYTES = 8  # of an mbarrier object
