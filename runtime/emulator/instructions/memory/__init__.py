"""Memory: loads, stores, atomics, and copies by threads, in bulk and of tensors."""
