"""The pass `expand-loops`: expands loops over tiles, stores and reductions."""
