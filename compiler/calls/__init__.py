"""Functions and modules that compile a kernel when such operands first occur."""
