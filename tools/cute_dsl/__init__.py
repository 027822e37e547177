"""Programs of NVIDIA's CuTe DSL on the emulator: `tilewright cute`.

The DSL compiles kernels and their host programs as ever. Here CUDA's part is played: tensors "on
the GPU" are the host's (`torch_tensors`), the host programs' calls of CUDA go to a small library
(`library`), and each launch becomes a launch file (`launch_files`) that the emulator runs.
"""
