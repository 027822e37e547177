"""Block-scaled types on the host: mxfp8, mxfp6, mxfp4 and nvfp4, and where their scales lie.

    quantize, dequantize            numbers to codes and scales, and back
    to_blocked, from_blocked        scales from [rows, blocks] to the layout that kernels read
    explain                         how a matrix of a format lies in memory, in words
    FORMATS, ROUNDINGS              formats by name, ways to round a scale
    ScaleError                      what is refused

Takes arrays of numpy and torch. Needs neither MLIR nor torch.
"""

from .runtime.element_types import OPERAND_FORMATS as FORMATS
from .runtime.scales.blocked import from_blocked, to_blocked
from .runtime.scales.explain import explain
from .runtime.scales.formats import ScaleError
from .runtime.scales.quantize import ROUNDINGS, Quantized, dequantize, quantize

__all__ = [
    "FORMATS",
    "ROUNDINGS",
    "Quantized",
    "ScaleError",
    "dequantize",
    "explain",
    "from_blocked",
    "quantize",
    "to_blocked",
]
