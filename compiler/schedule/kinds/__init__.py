"""Products with schedules of their own: mma.sync, threads, lanes, block scales, narrow weights."""
