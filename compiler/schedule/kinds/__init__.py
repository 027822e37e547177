"""Other kinds of kernels with their own schedules: mma.sync, FMA, GEMV, scales, weights."""
