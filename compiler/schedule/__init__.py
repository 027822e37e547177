"""Chooses the passes and their options for a matmul; nothing here imports MLIR."""
