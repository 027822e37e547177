"""Programs of other compilers, whose launches the emulator runs.

Tensors that a program has "on the GPU" are the host's (`torch_tensors`). Each launch becomes a
launch file (`launch_files`), which runs here and may be saved (`launches`). How a compiler's host
side comes to that is told in `cute_dsl` and `triton_programs`.
"""
