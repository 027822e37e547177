"""Kernels that share numbers of rows and of matrices."""
