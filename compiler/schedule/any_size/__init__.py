"""Kernels for any M, any batch size and any K."""
