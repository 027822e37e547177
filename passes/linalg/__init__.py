"""Linalg on tensors to the one product that a kernel computes: `normalize`, and its parts."""
