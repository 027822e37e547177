"""Products on CUDA cores, by FMA."""
