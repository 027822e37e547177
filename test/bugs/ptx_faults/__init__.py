"""Faults that rules put into our kernels, at every place where a rule fits."""
