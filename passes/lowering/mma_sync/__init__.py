"""Products by mma.sync, with operands and accumulators in registers of warps."""
