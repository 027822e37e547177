"""tcgen05: products in tensor memory, and what allocates, fills, reads and orders it."""
