"""Elementwise operators of torch after a product: what a kernel gives, beside torch itself.

Values reach the epilogue unchanged, as a residual that is chosen where the product is 0. Every
value of bf16 and f16 is among them, of f32 a sample: NaN, infinities, zeros and denormals, too.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tilewright import compile_module
from tilewright.compiler.driver import read_spec
from tilewright.compiler.importers.torch_module import import_module
from tilewright.dialects.errors import CompileError

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
COLUMNS = 64
EXACT = {
    "abs": torch.abs,
    "neg": torch.neg,
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "threshold": lambda x: F.threshold(x, 0.1, 20),
    "clamp": lambda x: torch.clamp(x, -0.5, 0.3),
    "clamp, crossed": lambda x: torch.clamp(x, 1, -1),
    "clamp_min": lambda x: torch.clamp_min(x, 0.3),
    "clamp_max": lambda x: torch.clamp(x, max=0.3),
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "frac": torch.frac,
    "x ** -1": lambda x: x**-1,
    "towards 0": lambda x: torch.div(x, 3, rounding_mode="trunc"),
    "3 / x towards 0": lambda x: torch.div(3.0, x, rounding_mode="trunc"),
    "1 ** x": lambda x: torch.where(x > 0.3, x, 1.0**x),
    "square": torch.square,
    "reciprocal": torch.reciprocal,
    "3 / x": lambda x: 3 / x,
    "x / 3": lambda x: x / 3,
    "x * 1.1": lambda x: x * 1.1,
    "x + 1.1": lambda x: x + 1.1,
    "1.1 - x": lambda x: 1.1 - x,
    "x > 0.3": lambda x: torch.where(x > 0.3, x, -x),
    "x == 0.3": lambda x: torch.where(x == 0.3, 7.0, x),
    "isnan": lambda x: torch.where(torch.isnan(x), 1.0, x),
    "isfinite": lambda x: torch.where(torch.isfinite(x), x, 1.0),
    "a xor b": lambda x: torch.where((x > 0.3) ^ ~(x < 1), x, -x),
    "a and b or c": lambda x: torch.where((x > -1) & (x < 0.3) | torch.isinf(x), 7.0, x),
    "nan_to_num": lambda x: torch.nan_to_num(x, 3.0, 5.0, -5.0),
    "masked_fill": lambda x: x.masked_fill(x <= 0, 0.1),
    "to f16": lambda x: x.to(F16),
    "to f32": lambda x: x.float() * 1.1,
    "deg2rad": torch.deg2rad,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "clamp by tensor": lambda x, y: torch.clamp(x, min=y),
    "add": torch.add,
    "rsub": torch.rsub,
    "mul": torch.mul,
    "div": torch.div,
    "div towards 0": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "where": lambda x, y: torch.where(x >= y, x, y),
}
"""Those whose every rounding the ISA fixes; the others are approximations.

torch.add with an alpha is among these: on some processors torch rounds its product, on others not.
"""
CLOSE = {
    "x + 0.3 x": lambda x: torch.add(x, x, alpha=0.3),
    "elu": F.elu,
    "elu, alpha": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
    "expm1": torch.expm1,
    "exp": torch.exp,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "cos": torch.cos,
    "tan": torch.tan,
    "sinc": torch.sinc,
    "softplus": F.softplus,
    "softplus, beta": lambda x: F.softplus(x, 2.5, 10),
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
    "logit": lambda x: torch.logit(x, 0.01),
    "logaddexp": lambda x: torch.logaddexp(x, -x),
    "xlogy": lambda x: torch.xlogy(x, x.abs()),
    "exp2": torch.exp2,
    "2 ** x": lambda x: 2**x,
    "1.5 ** x": lambda x: 1.5**x,
    "pow -2": lambda x: x**-2,
    "pow -0.5": lambda x: x**-0.5,
    "round, decimals": lambda x: torch.round(x, decimals=2),
    "pow 3": lambda x: x**3,
    "pow 8": lambda x: x**8,
}
TWO = list(EXACT)[list(EXACT).index("maximum") :]
REFUSED = ["acos", "sinh", "sin", "digamma", "erfinv", "atan"]


class After(nn.Module):
    """An operator after a product of 0."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def forward(self, a, b, x, *others):
        product = a @ b.T
        return self.operator(torch.where(product == 0, x, product.to(x.dtype)), *others)


def every_value(dtype, rows):
    """[rows, 64] values: all of a narrow type for 1024 rows, fewer evenly among them."""
    if dtype == F32:
        generator = torch.Generator().manual_seed(5)
        bits = torch.randint(-(2**31), 2**31, (rows * COLUMNS,), generator=generator)
        values = bits.to(torch.int32).view(F32)
        values[: rows * 24] = torch.linspace(-12, 12, rows * 24)
    else:
        picked = torch.linspace(0, 65535, rows * COLUMNS).round().to(torch.int32)
        values = picked.to(torch.int16).view(dtype).clone()
    special = [torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 0.3, -0.3, 0.1, 1, 1e-40, -1e-45, 3e38]
    values[-len(special) :] = torch.tensor(special).to(dtype)
    return values.reshape(rows, COLUMNS)


def check(name, operator, dtype, rows):
    x = every_value(dtype, rows)
    shuffled = torch.randperm(x.numel(), generator=torch.Generator().manual_seed(6))
    given = (x, x.flatten()[shuffled].view_as(x)) if name in TWO else (x,)
    zeros = torch.zeros(rows, 16, dtype=BF16), torch.zeros(COLUMNS, 16, dtype=BF16)
    result = compile_module(After(operator), *zeros, *given)(*zeros, *given)
    native, exact = operator(*given), operator(*(each.double() for each in given))
    assert result.dtype == native.dtype
    # Torch's own approximations on a CPU err in places, as gelu(inf) = NaN, so either will do.
    right = same(result, native) | same(result, exact.to(result.dtype))
    if name in CLOSE:
        right |= close(result, native.double()) | close(result, exact)
    wrong = ~right
    first = [each[wrong][:3].tolist() for each in (*given, result, native, exact)]
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.numel()} wrong: {first}"


def same(result, wanted):
    return (result == wanted) | (result.isnan() & wanted.isnan())


def close(result, wanted):
    """Within two units of the last place, or of the sum of 1 and what cancels there in f32."""
    info = torch.finfo(result.dtype)
    unit = wanted.abs().clamp(min=info.tiny) * info.eps
    cancelled = 2.0**-21 * (1 + wanted.abs()) + 2.0**-17 * wanted.abs()
    return (result.double() - wanted).abs() <= 2 * unit + cancelled


QUICK = ["relu6", "hardsigmoid", "clamp", "maximum", "fmax", "reciprocal", "leaky_relu", "x > 0.3"]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", QUICK)
def test_exact_operators_are_those_of_torch(name):
    check(name, EXACT[name], BF16, 32)


def test_selu_keeps_what_is_near_0():
    check("selu", F.selu, BF16, 32)
    x = torch.tensor([[-0.009765625, -1e-20, -1e-3, -0.5]], dtype=BF16)
    zeros = torch.zeros(1, 16, dtype=BF16), torch.zeros(4, 16, dtype=BF16)
    for operator in (F.selu, F.elu, torch.expm1):
        result = compile_module(After(operator), *zeros, x)(*zeros, x)
        assert torch.equal(result, operator(x.double()).to(BF16))


@pytest.mark.sweep(192)
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=["bf16", "f16", "f32"])
@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_operators_are_those_of_torch_for_every_value(name, dtype):
    rows = 64 if dtype == F32 else 1024
    check(name, (EXACT | CLOSE)[name], dtype, rows)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", REFUSED)
def test_other_operators_are_refused_by_name(name):
    x = torch.zeros(4, 16, dtype=BF16)
    with pytest.raises(CompileError) as refused:
        read_spec(import_module(After(getattr(torch, name)), x, x, torch.zeros(4, 4)))
    said = str(refused.value)
    assert name in said and "\n" not in said
