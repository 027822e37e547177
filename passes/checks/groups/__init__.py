"""Stacks of matrices and groups of rows or of K."""
