"""A step of training with backend="tilewright": forward, backward, and the same gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.proj = nn.Linear(64, 96), nn.Linear(96, 64)

    def forward(self, x):
        return x + self.proj(F.gelu(self.fc(x), approximate="tanh"))


@pytest.mark.slow
def test_gradients_are_as_close_to_float64_as_eagers(rows):
    torch.manual_seed(2)
    torch._dynamo.reset()
    layer, x = Layer().bfloat16(), torch.randn(3, 8, 64).bfloat16()
    wide = Layer().double()
    wide.load_state_dict(layer.state_dict())
    compiled = torch.compile(layer, backend="tilewright", options={"device": "emulator"})
    exact = gradients(wide, wide, x.double())
    eager = gradients(layer, layer, x)
    ours = gradients(compiled, layer, x)
    assert len(rows) == 6 and all(row.taken for row in rows)
    fused = [row.fused for row in rows]
    assert ["add"] in fused and sum("tanh" in each for each in fused) == 2
    for name, wanted in exact.items():
        distances = [(each[name].double() - wanted).norm() for each in (eager, ours)]
        assert distances[1] <= 1.2 * distances[0] + 1e-9 * wanted.norm(), name


def gradients(call, layer, x):
    """Of the parameters and of the input, by name."""
    layer.zero_grad(set_to_none=True)
    x = x.clone().requires_grad_()
    made = call(x)
    (made * torch.linspace(-1, 1, made.numel()).view_as(made).to(made.dtype)).sum().backward()
    return {"x": x.grad, **{name: each.grad for name, each in layer.named_parameters()}}
