"""Products by mma.sync, with operands and sums in the registers of warps."""
