"""Every form of a torch module that one kernel computes, and those that none does.

A form is a function of the module, whose parameters have these names, and of the inputs:

    weight [N, K], other [N, K], transposed [K, N], bias [N], rows [M, 1], one []
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

M, N, K, G = 8, 40, 24, 3
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
SHAPES = {"weight": (N, K), "other": (N, K), "transposed": (K, N), "bias": (N,), "rows": (M, 1)}
SHAPES |= {"one": ()}


class Module(nn.Module):
    """A function of itself and of its inputs, with parameters of small integers."""

    def __init__(self, function: Callable[..., object], dtype: torch.dtype, more: nn.Module | None):
        super().__init__()
        self.function, self.more = function, more
        made = torch.Generator().manual_seed(5)
        for name, shape in SHAPES.items():
            values = torch.randint(-2, 3, shape, generator=made).to(dtype)
            self.register_parameter(name, nn.Parameter(values))
        self.register_buffer("mask", torch.randint(0, 2, (M, N), generator=made).bool())

    def forward(self, *inputs):
        return self.function(self, *inputs)


class Form(NamedTuple):
    """A function, shapes of its inputs, their type, and how far from float64 it may be.

    Without a share the result is exact: every value is an integer or a half that has few bits."""

    function: Callable[..., object]
    inputs: tuple[tuple[int, ...], ...] = ((M, K),)
    dtype: torch.dtype = BF16
    relative: float = 0.0
    more: Callable[[], nn.Module] | None = None

    def module(self) -> Module:
        """The module in eval mode, as kernels are made of."""
        return Module(self.function, self.dtype, self.more and self.more()).eval()

    def examples(self) -> list[torch.Tensor]:
        """Inputs of small integers."""
        made = torch.Generator().manual_seed(7)
        return [torch.randint(-2, 3, shape, generator=made).to(self.dtype) for shape in self.inputs]


def linear(s, x):
    return F.linear(x, s.weight)


def of(function: Callable[..., object], relative: float = 2.0**-6) -> Form:
    """A function of the sums, an eighth of them where it grows fast."""
    return Form(lambda s, x: function(linear(s, x)), relative=relative)


def eighth(function: Callable[..., object]) -> Form:
    return Form(lambda s, x: function(linear(s, x) / 8), relative=2.0**-5)


RESIDUAL = ((M, K), (M, N))
PRODUCTS = {
    "linear": Form(linear),
    "linear with a bias": Form(lambda s, x: F.linear(x, s.weight, s.bias)),
    "linear of f16": Form(lambda s, x: F.linear(x, s.weight, s.bias), dtype=F16),
    "linear of f32": Form(lambda s, x: F.linear(x, s.weight, s.bias), dtype=F32),
    "einsum": Form(lambda s, x: torch.einsum("mk,nk->mn", x, s.weight)),
    "einsum of other letters": Form(
        lambda s, x: torch.einsum("ba, cb -> ac", x, s.weight), ((K, M),)
    ),
    "einsum, turned": Form(lambda s, x: torch.einsum("km,nk->nm", x, s.weight), ((K, M),)),
    "einsum of stacks": Form(
        lambda s, x, y: torch.einsum("bmk,bnk->bmn", x, y), ((G, M, K), (G, N, K))
    ),
    "einsum of stacks, turned": Form(
        lambda s, x, y: F.relu(torch.einsum("bkm,bnk->bnm", x, y)), ((G, K, M), (G, N, K))
    ),
    "einsum of a layer": Form(lambda s, x: torch.einsum("bmk,nk->bmn", x, s.weight), ((G, M, K),)),
    "times a transpose": Form(lambda s, x: x @ s.weight.T),
    "times a matrix": Form(lambda s, x: x @ s.transposed),
    "mm": Form(lambda s, x: torch.mm(x, s.transposed)),
    "a transpose times a matrix": Form(lambda s, x: x.T @ s.transposed, ((K, M),)),
    "addmm": Form(lambda s, x: torch.addmm(s.bias, x, s.transposed)),
    "addmm with factors": Form(
        lambda s, x: torch.addmm(s.bias, x, s.transposed, beta=2, alpha=0.5)
    ),
    "addmm of a matrix": Form(lambda s, x, r: torch.addmm(r, x, s.transposed, beta=-1), RESIDUAL),
    "both inputs": Form(lambda s, x, y: x @ y, ((M, K), (K, N))),
    "a matrix by itself": Form(lambda s, x: x @ x, ((K, K),)),
    "bmm": Form(lambda s, x, y: torch.bmm(x, y), ((G, M, K), (G, K, N))),
    "bmm of transposes": Form(
        lambda s, x, y: torch.bmm(x, y.transpose(1, 2)), ((G, M, K), (G, N, K))
    ),
    "a stack times one matrix": Form(lambda s, x: x @ s.transposed, ((G, M, K),)),
    "baddbmm": Form(
        lambda s, x, y, r: torch.baddbmm(r, x, y, beta=2), ((G, M, K), (G, K, N), (G, M, N))
    ),
    "nn.Linear within": Form(lambda s, x: s.more(x) + 1, more=lambda: whole_linear()),
    "gate and up": Form(lambda s, x: F.linear(x, s.weight) * F.linear(x, s.other)),
    "up less gate": Form(lambda s, x: F.linear(x, s.other) - F.linear(x, s.weight)),
    "one product twice": Form(lambda s, x: F.linear(x, s.weight) + 2 * F.linear(x, s.weight)),
}


def whole_linear() -> nn.Linear:
    """A layer of small integers."""
    layer, made = nn.Linear(K, N, dtype=BF16), torch.Generator().manual_seed(9)
    with torch.no_grad():
        for each in layer.parameters():
            each.copy_(torch.randint(-2, 3, each.shape, generator=made))
    return layer


ELEMENTS = {
    "relu": of(F.relu, 0),
    "relu in place": of(lambda s: F.relu_(s), 0),
    "gelu": eighth(F.gelu),
    "gelu by tanh": eighth(lambda s: F.gelu(s, approximate="tanh")),
    "silu": eighth(F.silu),
    "sigmoid": eighth(torch.sigmoid),
    "tanh": eighth(torch.tanh),
    "erf": eighth(torch.erf),
    "exp": eighth(torch.exp),
    "expm1": eighth(torch.expm1),
    "elu": eighth(F.elu),
    "selu": eighth(F.selu),
    "celu": eighth(lambda s: F.celu(s, 1.5)),
    "leaky_relu": of(lambda s: F.leaky_relu(s, 0.25), 0),
    "hardswish": of(F.hardswish),
    "hardsigmoid": of(F.hardsigmoid),
    "hardtanh": of(lambda s: F.hardtanh(s, -3, 5), 0),
    "relu6": of(F.relu6, 0),
    "softshrink": of(lambda s: F.softshrink(s, 1.5), 0),
    "hardshrink": of(lambda s: F.hardshrink(s, 1.5), 0),
    "threshold": of(lambda s: F.threshold(s, 3.0, -7.0), 0),
    "clamp": of(lambda s: s.clamp(-4, 6), 0),
    "clamp from below": of(lambda s: s.clamp(min=-4), 0),
    "clamp from above": of(lambda s: s.clamp(max=6), 0),
    "abs": of(torch.abs, 0),
    "neg": of(torch.neg, 0),
    "square": of(torch.square),
    "pow 3": of(lambda s: s**3),
    "exp2": eighth(torch.exp2),
    "log": of(lambda s: torch.log(s.abs() + 0.5)),
    "softplus": of(F.softplus),
    "mish": of(F.mish),
    "logsigmoid": of(F.logsigmoid),
    "floor": of(lambda s: torch.floor(s / 4), 0),
    "round": of(lambda s: torch.round(s / 4), 0),
    "pow -2": of(lambda s: (s.abs() + 0.5) ** -2, relative=2.0**-6),
    "sqrt": of(lambda s: torch.sqrt(s.abs())),
    "rsqrt": of(lambda s: torch.rsqrt(s.abs() + 0.5)),
    "reciprocal": of(lambda s: torch.reciprocal(s.abs() + 0.5)),
    "a number less it": of(lambda s: 5 - s, 0),
    "a number by it": of(lambda s: 2 / (s.abs() + 0.5)),
    "half of it": of(lambda s: s / 2, 0),
    "maximum": of(lambda s: torch.maximum(s, torch.full_like(s, 3)), 0),
    "minimum": of(lambda s: torch.minimum(s, torch.full_like(s, 3)), 0),
    "fmax": of(lambda s: torch.fmax(s, torch.ones_like(s)), 0),
    "where": of(lambda s: torch.where(s > 2, s, -1.0), 0),
    "where not": of(lambda s: torch.where(s != 2, s, 9.0), 0),
    "of f32": of(lambda s: s.float() * 3, 0),
    "to f16": of(lambda s: s.to(F16), 0),
    "in f32 and back": of(lambda s: (s.float() + 0.5).to(BF16), 0),
}
BESIDE = {
    "a residual": Form(lambda s, x, r: linear(s, x) + r, RESIDUAL),
    "a residual first": Form(lambda s, r, x: r - linear(s, x), RESIDUAL[::-1]),
    "a scaled residual": Form(lambda s, x, r: torch.add(linear(s, x), r, alpha=2), RESIDUAL),
    "a factor of each column": Form(lambda s, x: linear(s, x) * s.bias),
    "a factor of each row": Form(lambda s, x: linear(s, x) * s.rows),
    "one factor": Form(lambda s, x: linear(s, x) * s.one),
    "a bias of shape [1, N]": Form(lambda s, x: linear(s, x) + s.bias.unsqueeze(0)),
    "a function of a row of one": Form(
        lambda s, x, r: torch.where(r > 0, linear(s, x), -r), ((M, K), (1, N))
    ),
    "a function of a column of one": Form(
        lambda s, x, r: linear(s, x) * (F.relu(r) + 1), ((M, K), (M, 1))
    ),
    "one row and a residual": Form(lambda s, x, r: linear(s, x) + r, ((1, K), (1, N))),
    "one number of each matrix": Form(
        lambda s, x, y, r: torch.bmm(x, y) * r, ((G, M, K), (G, K, N), (G, 1, 1))
    ),
    "addcmul": Form(lambda s, x, r: torch.addcmul(linear(s, x), r, s.bias, value=0.5), RESIDUAL),
    "addcdiv": Form(
        lambda s, x, r: torch.addcdiv(linear(s, x), r, s.bias.abs() + 1), RESIDUAL, relative=2.0**-6
    ),
    "lerp": Form(lambda s, x, r: torch.lerp(linear(s, x), r, 0.5), RESIDUAL),
    "half of the columns": of(lambda s: s[:, : N // 2], 0),
    "dropout that is off": Form(lambda s, x: s.more(linear(s, x)), more=lambda: nn.Dropout(0.5)),
    "sums and a function of them": Form(lambda s, x: (F.relu(linear(s, x)), linear(s, x))),
    "sums in two types": Form(lambda s, x: (linear(s, x), linear(s, x).float())),
}
VIEWS = {
    "einsum of heads": Form(
        lambda s, x, y: torch.einsum("bmhk,bnhk->bhmn", x, y), ((G, M, 2, K), (G, N, 2, K))
    ),
    "relu in place of a view": of(lambda s: F.relu_(s.view(M, 2, -1)).add_(1), 0),
    "unsqueezed and squeezed": Form(lambda s, x: (x.unsqueeze(0) @ s.transposed).squeeze(0)),
    "the sums turned": of(lambda s: s.T),
    "every other column of A": Form(lambda s, x: F.linear(x[:, ::2], s.weight[:, : K // 2])),
}
FORMS = {**PRODUCTS, **ELEMENTS, **BESIDE, **VIEWS}
REFUSED = {
    "einsum with a sum": Form(lambda s, x: torch.einsum("mk,nk->m", x, s.weight)),
    "largest of rows": Form(lambda s, x: (linear(s, x), linear(s, x).abs().amax(-1))),
    "softmax": of(lambda s: F.softmax(s, -1)),
    "dropout": Form(lambda s, x: F.dropout(linear(s, x), 0.5, training=True)),
    "layer norm": of(lambda s: F.layer_norm(s, (N,))),
    "cumsum": of(lambda s: s.cumsum(-1)),
    "argmax": of(lambda s: s.argmax(-1)),
    "sorted": of(lambda s: s.sort(-1).values),
    "flipped": of(lambda s: s.flip(0)),
    "remainder": of(lambda s: torch.remainder(s, 3)),
    "no element": Form(lambda s, x, y: (x @ y).relu(), ((M, K), (K, 0))),
    "no element in between": Form(lambda s, x: linear(s, x)[:0]),
    "two products in a row": Form(lambda s, x: F.linear(x, s.weight) @ s.other),
    "random numbers": of(lambda s: s + torch.rand_like(s)),
    "a sum of squares": of(lambda s: (s * s).sum()),
    "no product": Form(lambda s, x: F.relu(x)),
}
