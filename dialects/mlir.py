"""The one place that names the MLIR wheel: upstream `mlir` when installed, else `torch_mlir`."""

# The upstream builders have no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

try:
    from mlir import ir, passmanager
    from mlir.dialects import arith, ext, func, gpu, linalg, llvm, math, memref, nvvm, scf, vector

    PACKAGE = "mlir"
except ImportError:
    from torch_mlir import ir, passmanager
    from torch_mlir.dialects import (
        arith,
        ext,
        func,
        gpu,
        linalg,
        llvm,
        math,
        memref,
        nvvm,
        scf,
        vector,
    )

    PACKAGE = "torch-mlir"

__all__ = [
    "PACKAGE",
    "arith",
    "ext",
    "func",
    "gpu",
    "ir",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvvm",
    "passmanager",
    "scf",
    "vector",
]
