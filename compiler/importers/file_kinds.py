"""What a file with a matmul is, by its name; for whoever only asks, without MLIR and torch."""

from __future__ import annotations

EXPORTED = ".pt2"
"""The suffix of a program of torch.export, which is a zip as a bundle is."""
