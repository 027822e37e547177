"""`matmul`, `scaled_mm` and `compile_module`, with epilogues and quantised results."""
