"""Kernels that calls need: found again, in the cache, or compiled."""
