"""Operands on their way to shared memory: by TMA, and by threads."""
