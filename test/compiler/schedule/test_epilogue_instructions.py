"""About how many instructions an epilogue is said to take for an element."""

import pytest
import torch
import torch.nn.functional as F

from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.traced_function import TensorLike
from tilewright.compiler.spec import MatmulSpec

SHAPE = (64, 64)


def gradient_of_gelu(acc, x):
    """As torch takes it apart: tanh is a term of a sum."""
    tanh = torch.tanh(x * (x * x * 0.0357 + 0.798))
    return acc * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * (x * x * 0.107 + 0.798))


def gradient_by_erf(acc, x):
    """As torch takes it apart, in f32."""
    x = x.float()
    density = torch.exp(-0.5 * x * x) * 0.3989423
    return acc * (0.5 * (1 + torch.erf(x * 0.5**0.5)) + x * density)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda acc, x: acc + x, 1),
        (lambda acc, x: torch.tanh(acc) * x, 2),
        (lambda acc, x: torch.tanh(acc) + x, 7),
        (lambda acc, x: F.gelu(acc) * x, 7),
        (lambda acc, x: F.gelu(acc) + x, 11),
        (lambda acc, x: F.gelu(acc, approximate="tanh") * x, 6),
        (lambda acc, x: acc * torch.sigmoid(x), 4),
        (gradient_of_gelu, 13),
        (lambda acc, x: gradient_of_gelu(acc, x.float()), 8),
        (gradient_by_erf, 10),
    ],
    ids=[
        *("sum", "tanh", "tanh, a sum", "GELU", "GELU, a sum", "by tanh", "SiLU"),
        *("gradient, tanh of 16 bits", "gradient", "gradient by erf"),
    ],
)
def test_functions_count_as_the_lowering_takes_them(function, count):
    """A function is fast where nothing is added to what it gives, and exact elsewhere."""
    operands = [TensorLike(SHAPE, torch.bfloat16)]
    found, *_ = import_epilogue(MatmulSpec(64, 64, 64), Frame.of(SHAPE, 0), function, operands)
    assert found.epilogue_instructions == count
