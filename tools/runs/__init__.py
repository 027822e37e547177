"""What `tilewright run` gives kernels, holds them to, and reports."""
