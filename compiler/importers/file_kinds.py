"""The kind of a source file, by its name; imports neither MLIR nor torch."""

from __future__ import annotations

EXPORTED = ".pt2"
"""The suffix of a program of torch.export, which is a zip as a bundle is."""
