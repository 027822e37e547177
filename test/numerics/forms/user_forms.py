"""More forms of modules, as those write who know torch and not this compiler.

Each is computed with torch's own values and types, or refused.
"""

from __future__ import annotations

import torch
from module_forms import BF16, F16, RESIDUAL, Form, G, K, M, N, eighth, linear, of, whole_linear
from torch import nn
from torch.nn import functional as F


class Nested(nn.Module):
    """A layer in modules that change nothing but by relu."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(whole_linear(), nn.ReLU(), nn.Identity(), nn.Dropout(0.1))

    def forward(self, x):
        return self.inner(x) * 2


class Tied(nn.Module):
    """Two layers of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = whole_linear(), whole_linear()
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.a(x) * self.b(x)


class Scaled(nn.Module):
    """A layer, a number that is an attribute, and a hook."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = whole_linear(), 0.5
        self.layer.register_forward_hook(lambda module, inputs, result: result * 3)

    def forward(self, x):
        return self.layer(x) * self.scale


def inferred(s, x):
    with torch.inference_mode():
        return linear(s, x) + 1


def without_gradients(s, x):
    with torch.no_grad():
        sums = linear(s, x)
    return sums * 2


def assigned(s, x):
    s.mask = linear(s, x)
    return s.mask + 1


def under_autocast(s, x):
    with torch.autocast("cpu", dtype=BF16):
        return F.linear(x, s.weight, s.bias)


FORMS = {
    "a stack viewed as rows": Form(lambda s, x: F.linear(x.view(-1, K), s.weight), ((2, M, K),)),
    "flattened rows": Form(lambda s, x: F.linear(x.flatten(0, 1), s.weight), ((2, 4, K),)),
    "made contiguous": Form(lambda s, x: F.linear(x, s.weight).contiguous()),
    "cloned": Form(lambda s, x: F.linear(x, s.weight).clone()),
    "detached": Form(lambda s, x: F.linear(x.detach(), s.weight.detach())),
    "a view of other sizes, turned": Form(lambda s, x: F.linear(x.reshape(K, M).T, s.weight)),
    "a residual of one row": Form(lambda s, x, r: linear(s, x) + r, ((M, K), (1, N))),
    "a residual of one column": Form(lambda s, x, r: linear(s, x) + r, ((M, K), (M, 1))),
    "a residual without dims": Form(lambda s, x, r: linear(s, x) + r, ((M, K), ())),
    "a residual of one element": Form(lambda s, x, r: linear(s, x) + r, ((M, K), (1,))),
    "a factor of each column, an input": Form(lambda s, x, r: linear(s, x) * r, ((M, K), (N,))),
    "an expanded residual": Form(lambda s, x, r: linear(s, x) + r.expand(M, N), ((M, K), (N,))),
    "A once more as the residual": Form(lambda s, x: x @ x + x, ((K, K),)),
    "A by its transpose": Form(lambda s, x: x @ x.T),
    "the transpose of A by A": Form(lambda s, x: x.T @ x),
    "Python's integers": Form(lambda s, x: linear(s, x) * 3 - 2),
    "Python's truth": Form(lambda s, x: linear(s, x) * True),
    "a tensor made inside": Form(lambda s, x: linear(s, x) * torch.tensor(2.0)),
    "a tensor of f64 made inside": Form(
        lambda s, x: linear(s, x) * torch.tensor(2.0, dtype=torch.float64)
    ),
    "a vector of one number": Form(lambda s, x: linear(s, x) + torch.full((N,), 3.0, dtype=BF16)),
    "ones like a parameter": Form(lambda s, x: linear(s, x) + torch.ones_like(s.bias)),
    "zeros of f32 added": Form(lambda s, x: linear(s, x) + torch.zeros(M, N)),
    "its sign": of(torch.sign, 0),
    "its sign as a factor": of(lambda y: y * torch.sign(y), 0),
    "clipped": of(lambda y: torch.clip(y, -3, 3), 0),
    "clamped by a parameter": Form(lambda s, x: linear(s, x).clamp(max=s.bias)),
    "clamped from above its end": of(lambda y: y.clamp(5, -5), 0),
    "clamped in place": of(lambda y: y.clamp_min_(0.0), 0),
    "the sums in place": of(lambda y: y.mul_(2).add_(1), 0),
    "a residual in place": Form(lambda s, x, r: linear(s, x).add_(r, alpha=-1), RESIDUAL),
    "addmm without its matrix": Form(
        lambda s, x, r: torch.addmm(r, x, s.transposed, beta=0), RESIDUAL
    ),
    "addmm without its product": Form(
        lambda s, x, r: torch.addmm(r, x, s.transposed, alpha=0), RESIDUAL
    ),
    "addmm of one number": Form(lambda s, x: torch.addmm(s.one, x, s.transposed)),
    "addmm with a half of its vector": Form(
        lambda s, x: torch.addmm(s.bias, x, s.transposed, beta=0.5)
    ),
    "operands in f32": Form(lambda s, x: F.linear(x.float(), s.weight.float())),
    "in f32, rounded": Form(lambda s, x: (x.float() @ s.transposed.float()).to(BF16)),
    "f32 added to bf16": Form(lambda s, x: linear(s, x) + torch.ones(N)),
    "to e4m3": Form(lambda s, x: linear(s, x).to(torch.float8_e4m3fn)),
    "to the type of A": Form(lambda s, x: linear(s, x).float().type_as(x)),
    "to f16 and f32": Form(lambda s, x: linear(s, x).to(F16).float() * 2),
    "in inference mode": Form(inferred),
    "without gradients": Form(without_gradients),
    "modules in modules": Form(lambda s, x: s.more(x), more=Nested),
    "two layers of one weight": Form(lambda s, x: s.more(x), more=Tied, relative=2.0**-7),
    "a layer times an attribute": Form(lambda s, x: s.more(x), more=Scaled),
    "three results": Form(lambda s, x: (linear(s, x), linear(s, x) + 1, linear(s, x) * 2)),
    "one result twice": Form(lambda s, x: (lambda y: (y, y))(linear(s, x))),
    "silu of a half by the other": Form(
        lambda s, x: (lambda g: F.silu(g[0] / 8) * g[1])(linear(s, x).chunk(2, -1)),
        relative=2.0**-4,
    ),
    "halves of the columns": Form(
        lambda s, x: (lambda g: F.relu(g[0]) * g[1])(linear(s, x).chunk(2, -1))
    ),
    "halves exchanged": Form(
        lambda s, x: (lambda g: F.relu(g[1]) - g[0])(linear(s, x).chunk(2, -1))
    ),
    "every other column by those between": Form(
        lambda s, x: (lambda y: y[:, ::2] * F.relu(y[:, 1::2]))(linear(s, x))
    ),
    "a product less itself": Form(lambda s, x: linear(s, x) - linear(s, x)),
    "where not NaN": of(lambda y: torch.where(torch.isnan(y), 0.0, y), 0),
    "nan_to_num": of(torch.nan_to_num, 0),
    "numbers for infinities": of(
        lambda y: torch.nan_to_num(y / 0, nan=3.0, posinf=1.0, neginf=-1.0), 0
    ),
    "softsign": eighth(F.softsign),
    "prelu": Form(lambda s, x: F.prelu(linear(s, x), s.one.reshape(1))),
    "prelu of each column": Form(lambda s, x: F.prelu(linear(s, x), s.bias)),
    "rrelu": of(F.rrelu, 2.0**-6),
    "rsub with a factor": of(lambda y: torch.rsub(y, 3, alpha=2), 0),
    "less a scaled residual": Form(lambda s, x, r: torch.sub(linear(s, x), r, alpha=3), RESIDUAL),
    "added to a residual, scaled": Form(
        lambda s, x, r: torch.add(r, linear(s, x), alpha=3), RESIDUAL
    ),
    "lerp by a vector": Form(lambda s, x, r: torch.lerp(linear(s, x), r, s.bias), RESIDUAL),
    "lerp from a residual": Form(lambda s, x, r: torch.lerp(r, linear(s, x), 0.25), RESIDUAL),
    "gelu by a sigmoid": eighth(lambda y: y * torch.sigmoid(1.702 * y)),
    "relu squared": of(lambda y: F.relu(y).square(), 2.0**-6),
    "one matrix times a stack": Form(lambda s, x, y: x @ y, ((M, K), (G, K, N))),
    "tensordot": Form(lambda s, x: torch.tensordot(x, s.transposed, 1)),
    "swapaxes": Form(lambda s, x: x @ s.weight.swapaxes(0, 1)),
    "movedim": Form(lambda s, x: x @ s.weight.movedim(0, 1)),
    "the short transpose": Form(lambda s, x: x.mm(s.weight.t())),
    "the weight first": Form(lambda s, x: s.weight.__matmul__(x.T)),
    "a bias times a number": Form(lambda s, x: F.linear(x, s.weight) + s.one * s.bias),
    "a bias that is computed": Form(lambda s, x: linear(s, x) + (s.bias * 2 + 1)),
    "times a size": Form(lambda s, x: linear(s, x) * x.shape[0]),
    "by the number of elements": Form(lambda s, x: linear(s, x) / x.numel(), relative=2.0**-6),
    "a branch on a size": Form(lambda s, x: linear(s, x) if x.shape[0] > 4 else x),
    "an input that is not read": Form(lambda s, x, r: linear(s, x), RESIDUAL),
    "a product that is not returned": Form(lambda s, x: (linear(s, x), F.linear(x, s.other))[0]),
    "baddbmm with both factors": Form(
        lambda s, x, y, r: torch.baddbmm(r, x, y, beta=-2, alpha=3),
        ((G, M, K), (G, K, N), (G, M, N)),
    ),
    "a product of a list": Form(lambda s, x: torch.linalg.multi_dot([x, s.transposed])),
    "a stack by its transpose": Form(lambda s, x: torch.bmm(x, x.mT), ((G, M, K),)),
    "two conditions": Form(
        lambda s, x: (lambda y: torch.where((y > 1) & (y < 9), y, -y))(linear(s, x))
    ),
    "where finite": of(lambda y: torch.where(torch.isfinite(y / 0), 1.0, y), 0),
    "baddbmm of one row": Form(
        lambda s, x, y, r: torch.baddbmm(r, x, y), ((G, M, K), (G, K, N), (G, 1, N))
    ),
    "baddbmm of one matrix": Form(
        lambda s, x, y, r: torch.baddbmm(r, x, y, beta=2, alpha=0.5),
        ((G, M, K), (G, K, N), (1, M, N)),
    ),
    "addmm of a column": Form(lambda s, x, r: torch.addmm(r, x, s.transposed), ((M, K), (M, 1))),
    "a layer of a stack": Form(lambda s, x: F.linear(x, s.weight, s.bias).relu(), ((G, M, K),)),
    "a layer of a stack, and a residual": Form(
        lambda s, x, r: F.linear(x, s.weight, s.bias) * 2 + r, ((G, M, K), (G, M, N))
    ),
    "a choice of conditions": Form(
        lambda s, x: (lambda y: torch.where((y > 1) ^ ~(y < 9) | (y == 2), y, y.sign()))(
            linear(s, x)
        )
    ),
    "filled by a mask": Form(lambda s, x: linear(s, x).masked_fill(s.mask, -5.0)),
    "chosen by a mask": Form(
        lambda s, x: torch.where(s.mask, linear(s, x), torch.zeros((), dtype=BF16))
    ),
    "times a mask": Form(lambda s, x: linear(s, x) * s.mask),
    "logarithm": of(lambda y: torch.log(y.abs() + 1), 2.0**-6),
    "sine": eighth(torch.sin),
    "softplus": eighth(F.softplus),
    "a root as a power": of(lambda y: y.abs() ** 0.5, 2.0**-6),
    "a negative power": of(lambda y: (y.abs() + 1) ** -1, 2.0**-6),
    "some rows of A": Form(lambda s, x: F.linear(x[:4], s.weight)),
    "some columns of both": Form(lambda s, x: F.linear(x[:, :16], s.weight[:, :16])),
    "some rows of the weight": Form(lambda s, x: F.linear(x, s.weight[8:24])),
    "every other row of A": Form(lambda s, x: F.linear(x[::2], s.weight)),
    "one matrix of a stack": Form(lambda s, x: F.linear(x[1], s.weight), ((G, M, K),)),
    "a matrix unbound": Form(lambda s, x: F.linear(x.unbind(0)[2], s.weight), ((G, M, K),)),
    "the result in another shape": Form(lambda s, x: F.linear(x, s.weight).view(2, 4, N)),
    "the result as heads": Form(lambda s, x: F.linear(x, s.weight).view(M, 4, 10).transpose(0, 1)),
    "the result turned": Form(lambda s, x: F.linear(x, s.weight).permute(1, 0)),
    "half rows": Form(lambda s, x: F.linear(x.reshape(2 * M, K // 2), s.weight[:, : K // 2])),
    "one row for all": Form(lambda s, x: F.linear(x.expand(M, K), s.weight), ((1, K),)),
    "a residual turned": Form(lambda s, x, r: linear(s, x) + r.T, ((M, K), (N, M))),
    "some rows of a residual": Form(lambda s, x, r: linear(s, x) + r[:M], ((M, K), (2 * M, N))),
    "the transpose of A as the residual": Form(lambda s, x: x @ x + x.T, ((K, K),)),
    "times a vector": Form(lambda s, x: s.weight @ x, ((K,),)),
    "a vector": Form(lambda s, x: F.linear(x, s.weight), ((K,),)),
    "stacks of stacks": Form(lambda s, x, y: x @ y, ((2, 3, M, K), (2, 3, K, N))),
    "stacks of which each is repeated": Form(lambda s, x, y: x @ y, ((2, 1, M, K), (1, 3, K, N))),
}
REFUSED = {
    "rounded down": of(lambda y: torch.div(y, 3, rounding_mode="floor")),
    "a broken power": of(lambda y: y.abs() ** 0.3),
    "one product for a stack": Form(lambda s, x: x.expand(G, M, K) @ s.transposed),
    "a residual of more dims": Form(lambda s, x, r: linear(s, x) + r, ((M, K), (G, M, N))),
    "a range added": Form(lambda s, x: linear(s, x) + torch.arange(N)),
    "the lower triangle": Form(lambda s, x: (x @ x.T).tril()),
    "added to an argument": Form(lambda s, x, r: r.add_(linear(s, x)), RESIDUAL),
    "addmm in place": Form(lambda s, x, r: r.addmm_(x, s.transposed), RESIDUAL),
    "copied to an argument": Form(lambda s, x, r: r.copy_(linear(s, x)), RESIDUAL),
    "A changed before": Form(lambda s, x: F.linear(x.mul_(2), s.weight)),
    "a factor before": Form(lambda s, x: F.linear(x * 2, s.weight)),
    "relu before": Form(lambda s, x: F.linear(x.relu(), s.weight)),
    "the weight negated": Form(lambda s, x: F.linear(x, -s.weight)),
    "a sum of weights": Form(lambda s, x: F.linear(x, s.weight + s.other)),
    "cast to f16 before": Form(lambda s, x: F.linear(x.half(), s.weight.half())),
    "in f64": Form(lambda s, x: F.linear(x.double(), s.weight.double())),
    "a product of bytes": Form(lambda s, x: x.to(torch.int8) @ s.transposed.to(torch.int8)),
    "stacks of bytes": Form(lambda s, x: x.byte() @ x.byte().mT, ((G, M, K),)),
    "to integers": Form(lambda s, x: linear(s, x).to(torch.int32)),
    "a truth of each": Form(lambda s, x: linear(s, x) > 0),
    "under autocast": Form(under_autocast, dtype=torch.float32),
    "a buffer assigned": Form(assigned),
    "a dict": Form(lambda s, x: {"y": linear(s, x)}),
    "a list": Form(lambda s, x: [linear(s, x), linear(s, x) + 1]),
    "an input beside": Form(lambda s, x: (linear(s, x), x)),
    "None beside": Form(lambda s, x: (linear(s, x), None)),
    "a number beside": Form(lambda s, x: (linear(s, x), 3)),
    "a tuple in a tuple": Form(lambda s, x: (lambda y: (y, (y + 1,)))(linear(s, x))),
    "sums of rows alone": Form(lambda s, x: linear(s, x).sum(-1)),
    "sums of columns beside": Form(lambda s, x: (lambda y: (y, y.sum(0)))(linear(s, x))),
    "both by cat": Form(lambda s, x: torch.cat([linear(s, x), linear(s, x)], 1)),
    "padded": Form(lambda s, x: F.pad(linear(s, x), (0, 8))),
    "glu": Form(lambda s, x: F.glu(linear(s, x)), relative=2.0**-5),
    "floored": Form(lambda s, x: linear(s, x) // 2),
    "fmod": Form(lambda s, x: torch.fmod(linear(s, x), 3)),
    "inverse sine": eighth(torch.asin),
    "the power 0": of(lambda y: y**0, 0),
    "copysign": Form(lambda s, x, r: torch.copysign(linear(s, x), r), RESIDUAL),
    "outer": Form(lambda s, x: torch.outer(x, s.bias), ((M,),)),
    "no K": Form(lambda s, x: F.linear(x[:, :0], s.weight[:, :0])),
    "no rows": Form(lambda s, x: F.linear(x[:0], s.weight)),
    "sums of products": Form(lambda s, x: (x[:, None, :] * s.weight).sum(-1)),
    "a bias of sums": Form(lambda s, x: linear(s, x) + s.weight.sum(1)),
    "sums of A beside": Form(lambda s, x: linear(s, x) + x.sum(1, keepdim=True)),
    "rows by number": Form(lambda s, x: F.linear(x[torch.tensor([1, 0, 3])], s.weight)),
    "columns by number": Form(lambda s, x: linear(s, x)[:, torch.tensor([2, 1])]),
    "A flipped": Form(lambda s, x: F.linear(x.flip(0), s.weight)),
    "A repeated": Form(lambda s, x: F.linear(x.repeat(2, 1), s.weight)),
    "rows that overlap": Form(lambda s, x: F.linear(x.as_strided((M, K), (1, 1)), s.weight)),
    "the diagonal": Form(lambda s, x: (x @ x.T).diagonal()),
    "times a number of A": Form(lambda s, x: linear(s, x) * x.sum().item()),
    "by way of complex numbers": Form(lambda s, x: (linear(s, x) + 0j).real),
    "addbmm": Form(lambda s, x, y, r: torch.addbmm(r, x, y), ((G, M, K), (G, K, N), (M, N))),
    "attention": Form(lambda s, x: F.scaled_dot_product_attention(x, x, x), ((G, M, K),)),
}
