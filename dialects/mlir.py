"""The one place that names the MLIR wheel: upstream `mlir` when installed, else `torch_mlir`."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

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


def declare_dialect(name: str) -> None:
    """Say that a dialect of ours needs no module of the wheel's.

    The bindings look for one, in every folder of the path, each time that they meet an op or type
    of a dialect without: some 3,000 times in one compilation, which took half of it.
    """
    module = f"{arith.__name__.rpartition('.')[0]}.{name}"
    sys.modules.setdefault(module, ModuleType(module))


def linalg_of_torch(module: Any, *inputs: Any, decompositions: Mapping[Any, Any]) -> str:
    """A torch module as linalg on tensors, with the lines of Python: the text of an MLIR module.

    By torch_mlir's importer, whichever wheel MLIR itself is from; `decompositions` go before its
    own. Raises what torch.export and the importer raise: any exception.
    """
    from torch_mlir import fx
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    table = {**get_decomposition_table(), **decompositions}
    imported = fx.export_and_import(
        module, *inputs, output_type="linalg-on-tensors", decomposition_table=table
    )
    return imported.operation.get_asm(enable_debug_info=True)


__all__ = [
    "PACKAGE",
    "arith",
    "declare_dialect",
    "ext",
    "func",
    "gpu",
    "ir",
    "linalg",
    "linalg_of_torch",
    "llvm",
    "math",
    "memref",
    "nvvm",
    "passmanager",
    "scf",
    "vector",
]
