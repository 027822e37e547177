"""Kernels and the devices that run them."""
