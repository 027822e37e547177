"""Products with what follows them, as models have them: a function, its inputs, what is fused."""

import torch
import torch.nn.functional as F
from graphs import draw, taken_apart

import tilewright

X, W, W2, BIAS = draw(2, 16, 64), draw(96, 64), draw(96, 64), draw(96)
RESIDUAL = draw(2, 16, 96)
GELU = ["mul", "mul", "erf", "add", "mul"]
SILU = taken_apart(F.silu)
ONE = torch.tensor(0.5)
NARROW = draw(32, 64).to(torch.float8_e4m3fn)


def rms_and_itself(x, w, residual):
    h = residual + F.linear(x, w)
    return h, F.rms_norm(h, (96,))


def saved(x, w, bias):
    h = F.linear(x, w, bias)
    return h, F.gelu(h)


def backward_of_gelu(gradient, w, before):
    return torch.ops.aten.gelu_backward(gradient @ w, before)


PATTERNS = {
    "bias": (lambda x, w, b: F.linear(x, w, b), (X, W, BIAS), []),
    "gelu": (lambda x, w, b: F.gelu(F.linear(x, w, b)), (X, W, BIAS), GELU),
    "silu": (lambda x, w: F.silu(F.linear(x, w)), (X, W), SILU),
    "residual": (lambda x, w, r: r + F.linear(x, w), (X, W, RESIDUAL), ["add"]),
    "residual as addmm": (torch.addmm, (draw(32, 96), draw(32, 64), draw(64, 96)), []),
    "scale and cast": (lambda x, w: (F.linear(x, w) * 0.5).float(), (X, W), ["mul"]),
    "column": (lambda x, w, c: F.linear(x, w) * c, (X, W, draw(2, 16, 1)), ["mul"]),
    "stack": (lambda a, b: torch.bmm(a, b) * 0.125, (draw(3, 16, 32), draw(3, 32, 24)), ["mul"]),
    "rows of slices, whose weight torch expands": (
        lambda x, w, b: F.relu(F.linear(x[:, 1:], w, b)), (X, W, BIAS), ["add", "relu"]
    ),
    "a matrix that comes again": (
        lambda a, b: torch.bmm(a.expand(3, 16, 32), b) * 0.5,
        (draw(16, 32), draw(3, 32, 24)), ["mul"],
    ),
    "swiglu": (
        lambda x, w, v: F.silu(F.linear(x, w)) * F.linear(x, v), (X, W, W2), [*SILU, "mul"]
    ),
    "swiglu with biases": (
        lambda x, w, v, b: F.silu(F.linear(x, w, b)) * F.linear(x, v, b),
        (X, W, W2, BIAS), [*SILU, "mul"],
    ),
    "tilewright's own": (
        lambda x, w: F.relu(tilewright.matmul(x, w)), (X, W), ["relu"]
    ),
    "swiglu of halves": (
        lambda x, w: (lambda g, u: F.silu(g) * u)(*F.linear(x, w).chunk(2, -1)),
        (X, W), [*SILU, "mul"],
    ),
    "swiglu of slices": (
        lambda x, w: (lambda y: F.silu(y[..., :48]) * y[..., 48:])(F.linear(x, w)),
        (X, W), [*SILU, "mul"],
    ),
    "swiglu with up first": (
        lambda x, w, v: F.linear(x, v) * F.silu(F.linear(x, w)), (X, W, W2), [*SILU, "mul"]
    ),
    "swiglu of slices with up first": (
        lambda x, w: (lambda y: F.silu(y[..., 48:]) * y[..., :48])(F.linear(x, w)),
        (X, W), [*SILU, "mul"],
    ),
    "swiglu of inputs made twice": (
        lambda x, w, v: F.silu(F.linear(x * 2, w)) * F.linear(x * 2, v), (X, W, W2), [*SILU, "mul"]
    ),
    "an activation before it": (
        lambda x, w: F.relu(x) @ w, (draw(32, 32), draw(32, 32)), []
    ),
    "scaled": (
        lambda a, b, s, r: torch._scaled_mm(
            a, b.t(), s, s, out_dtype=torch.bfloat16, use_fast_accum=True
        ) + r,
        (NARROW, NARROW, ONE, draw(32, 32)), ["add"],
    ),
    "a mask that is known": (
        lambda x, w: F.linear(x, w).masked_fill(torch.full((2, 16, 96), False), 3.0) * 2,
        (X, W), ["where", "mul"],
    ),
    "a mask of rows": (
        lambda x, w, m: F.linear(x, w).masked_fill(m, 0.0) * 2,
        (X, W, draw(2, 16, 1) > 0), ["where", "mul"],
    ),
    "a mask of columns": (
        lambda x, w, m: torch.where(m, F.linear(x, w), 1.0), (X, W, draw(96) > 0), ["where"],
    ),
    "a number as addend": (
        lambda x, w: F.relu(F.linear(x, w, torch.full((96,), 0.5, dtype=x.dtype))), (X, W), ["relu"]
    ),
    "groups": (
        lambda x, w, ends: F.relu(torch._grouped_mm(x, w, ends)) * x[:, :48],
        (draw(32, 64), draw(2, 64, 48), torch.tensor([9, 32], dtype=torch.int32)), ["relu", "mul"],
    ),
}  # fmt: skip


def backward_of_silu(gradient, w, before):
    return torch.ops.aten.silu_backward(gradient @ w, before)


def backward_of_swiglu(gradient, w, gate, up):
    """Of silu(gate) * up: the gradients of both."""
    h = gradient @ w
    return torch.ops.aten.silu_backward(h * up, gate), h * F.silu(gate)


def backward_of_relu(gradient, w, after):
    return torch.ops.aten.threshold_backward(gradient @ w, after, 0)


def saved_gate_and_up(x, w, v):
    gate, up = F.linear(x, w), F.linear(x, v)
    return gate, up, F.silu(gate) * up


def saved_up(x, w, v):
    """Of a gated layer whose gate backward computes anew."""
    gate, up = F.linear(x, w), F.linear(x, v)
    return up, F.gelu(gate, approximate="tanh") * up


_GRADIENT = (draw(32, 96), draw(96, 64), draw(32, 64))
TRAINED = {
    "what backward needs": (saved, (X, W, BIAS)),
    "what backward needs of tanh gelu": (
        lambda x, w, b: (lambda h: (h, F.gelu(h, approximate="tanh")))(F.linear(x, w, b)),
        (X, W, BIAS),
    ),
    "what backward needs of silu": (
        lambda x, w: (lambda h: (h, F.silu(h)))(F.linear(x, w)), (X, W)
    ),
    "what backward needs of swiglu": (saved_gate_and_up, (X, W, W2)),
    "what backward needs of a gelu gate": (saved_up, (X, W, W2)),
    "backward of gelu": (backward_of_gelu, _GRADIENT),
    "backward of tanh gelu": (
        lambda g, w, p: torch.ops.aten.gelu_backward(g @ w, p, approximate="tanh"), _GRADIENT
    ),
    "backward of silu": (backward_of_silu, _GRADIENT),
    "backward of relu": (backward_of_relu, _GRADIENT),
    "backward of swiglu": (backward_of_swiglu, (*_GRADIENT, draw(32, 64, seed=9))),
    "backward of a square of relu": (
        lambda g, w, r: (g @ w) * (r.pow(1.0) * 2) * (r > 0), _GRADIENT
    ),
    "gradient of a weight": (lambda g, x: g.T @ x, (draw(32, 96), draw(32, 64))),
    "gradient of a weight that is added to another's": (
        lambda g, x, before: before + g.T @ x, (draw(32, 96), draw(32, 64), draw(96, 64))
    ),
    "gradient of a weight that is added in f32": (
        lambda g, x, before: before + (g.T @ x).float(),
        (draw(32, 96), draw(32, 64), draw(96, 64, dtype=torch.float32)),
    ),
    "gradient of a weight as addmm": (
        lambda g, x, before: torch.addmm(before, g.T, x),
        (draw(32, 96), draw(32, 64), draw(96, 64)),
    ),
    "a gradient that is added to another": (
        lambda g, w, r: (g @ w) + r, _GRADIENT
    ),
}  # fmt: skip
"""Forward and backward products of a training step: a function and its inputs."""
