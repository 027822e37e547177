"""MLIR's names of torch's element types."""

from __future__ import annotations

import torch

MLIR_TYPES = {
    torch.float32: "f32",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "i1",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
}
STAND_IN = torch.bfloat16
STOOD_FOR = (torch.bool, torch.int8, torch.uint8, torch.float8_e4m3fn, torch.float8_e5m2)
"""Types of 8 bits, whose numbers are all of `STAND_IN`: operands of a function are converted to it
before the kernel, which reads no bytes beside the sums."""
