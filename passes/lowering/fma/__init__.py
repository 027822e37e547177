"""Products by fma of threads."""
