"""Products by tcgen05.mma, with accumulators in tensor memory."""
