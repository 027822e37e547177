"""Inputs of the compiler: linalg text, .mlir files, torch modules and exported programs."""
