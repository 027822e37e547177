"""From matmul to Blackwell and Hopper PTX, and an emulator that runs it.

    matmul          a [m, k] · b [n, k]ᵀ, by a kernel that is compiled at the first such call
    compile         a spec, or linalg on tensors → PTX, cubin and manifest
    compile_module  a torch module → one kernel
    load            a bundle → a function of arrays
    grouped_mm      products of groups of rows, like torch.nn.functional.grouped_mm
    scaled_mm       a product of scaled operands, like torch.nn.functional.scaled_mm
    scaled_grouped_mm  products of groups of scaled operands
    weight_only_mm  a product with 8-bit or 4-bit weights with group scales
    emulate         runs PTX from any compiler on the CPU

A name is imported when it is first used: `import tilewright` itself loads neither MLIR nor torch
nor numpy. `load` and `emulate` need neither MLIR nor torch at all.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.calls.dense.matmul import matmul
    from .compiler.calls.dense.module import compile_module
    from .compiler.calls.dense.scaled import scaled_mm
    from .compiler.calls.grouped.grouped_mm import grouped_mm
    from .compiler.calls.grouped.scaled_grouped import scaled_grouped_mm
    from .compiler.calls.weights.weight_only import weight_only_mm
    from .compiler.driver import compile_matmul as compile
    from .compiler.spec import MatmulSpec
    from .dialects.errors import CompileError
    from .runtime.emulator import launch as emulate
    from .runtime.errors import DeviceError
    from .runtime.launch.loading import load
    from .runtime.version import VERSION as __version__

__all__ = [
    "CompileError",
    "DeviceError",
    "MatmulSpec",
    "__version__",
    "compile",
    "compile_module",
    "emulate",
    "grouped_mm",
    "load",
    "matmul",
    "scaled_grouped_mm",
    "scaled_mm",
    "weight_only_mm",
]

_HOMES = {
    "CompileError": ("dialects.errors", "CompileError"),
    "DeviceError": ("runtime.errors", "DeviceError"),
    "MatmulSpec": ("compiler.spec", "MatmulSpec"),
    "__version__": ("runtime.version", "VERSION"),
    "compile": ("compiler.driver", "compile_matmul"),
    "compile_module": ("compiler.calls.dense.module", "compile_module"),
    "emulate": ("runtime.emulator", "launch"),
    "load": ("runtime.launch.loading", "load"),
    "matmul": ("compiler.calls.dense.matmul", "matmul"),
    "scaled_mm": ("compiler.calls.dense.scaled", "scaled_mm"),
    "grouped_mm": ("compiler.calls.grouped.grouped_mm", "grouped_mm"),
    "scaled_grouped_mm": ("compiler.calls.grouped.scaled_grouped", "scaled_grouped_mm"),
    "weight_only_mm": ("compiler.calls.weights.weight_only", "weight_only_mm"),
}

_MODULES = ("layout", "nn", "scales", "torch")
"""Those that `import tilewright` alone gives, when they are first asked for."""


def __getattr__(name: str) -> Any:
    """A public name, from its home."""
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .runtime.collector import no_full_collections
    from .runtime.extras import home_of

    module, attribute = _HOMES[name]
    with no_full_collections():
        home = home_of(f"{__name__}.{module}")
    found = globals()[name] = getattr(home, attribute)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
