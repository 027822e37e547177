"""Programs of NVIDIA's CuTe DSL on the emulator: `tilewright cute`.

The DSL compiles kernels and their host programs as ever. What host programs ask of CUDA goes to a
small library (`library`), and what the DSL itself asks of the driver is answered here (`dsl`).
"""
