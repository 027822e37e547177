"""Copies of operands to shared memory, by TMA and by threads."""
