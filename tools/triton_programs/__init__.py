"""Programs of Triton on the emulator: `tilewright triton`.

Triton compiles kernels as ever, and finds a driver (`driver`) whose GPU is the emulator.
"""
