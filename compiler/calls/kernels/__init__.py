"""Look-up of kernels: in memory, on disk, or by compilation."""
