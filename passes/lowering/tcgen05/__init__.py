"""Products by tcgen05.mma, with sums in tensor memory."""
