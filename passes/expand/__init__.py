"""The pass `expand-loops`: loops over tiles, stores and reductions, written out."""
