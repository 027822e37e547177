"""Which calls of `matmul` may go to a kernel at once, as its last one did."""

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls import kernels

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")


class Named(torch.Tensor):
    """A tensor of a type that torch doesn't make itself."""


class Knowing:
    """A kernel that takes any tensors for its last ones; it computes nothing for them."""

    def __init__(self, kernel, heard):
        self.kernel, self.heard = kernel, heard

    def __call__(self, *inputs, out=None):
        return self.kernel(*inputs, out=out)

    def relaunched(self, inputs, out):
        self.heard.append((*inputs, out))
        return True


@pytest.fixture
def tensors():
    torch.manual_seed(5)
    return torch.randn(24, 40).bfloat16(), torch.randn(16, 40).bfloat16()


@pytest.fixture
def asked(tensors, monkeypatch):
    """The tensors that a kernel knew, of those that were multiplied."""
    matmul(*tensors)
    heard = []
    known = {
        key: seen._replace(kernel=Knowing(seen.kernel, heard))
        for key, seen in kernels._seen.items()
    }
    monkeypatch.setattr(kernels, "_seen", known)
    return heard


def test_a_call_like_the_last_one_is_the_kernels_alone(tensors, asked):
    out = torch.full((24, 16), 7.0, dtype=torch.bfloat16)
    assert matmul(*tensors, out=out) is out
    assert [list(map(id, each)) for each in asked] == [[*map(id, tensors), id(out)]]
    assert (out == 7).all(), "nothing else has computed it"


@pytest.mark.parametrize(
    "given",
    [
        {"out_dtype": "f32"},
        {"precision": "tf32"},
        {"math": "fast"},
        {"epilogue": torch.relu},
        {"of": lambda a, b: (a, b.requires_grad_())},
        {"of": lambda a, b: (a.as_subclass(Named), b)},
        {"of": lambda a, b: (a[:8], b)},
    ],
    ids=["type", "precision", "math", "epilogue", "gradient", "subclass", "rows"],
)
def test_another_call_is_not(tensors, asked, given):
    a, b = given.pop("of", lambda *them: them)(*tensors)
    dtype = torch.float32 if "out_dtype" in given else torch.bfloat16
    out = torch.full((len(a), 16), torch.nan, dtype=dtype)
    matmul(a, b, out=out, **given)
    assert not asked
    exact = a.detach().double() @ b.detach().double().T
    exact = exact.relu() if "epilogue" in given else exact
    assert (out.double() - exact).norm() < 0.01 * exact.norm()


def test_a_call_with_a_wrong_option_is_refused_all_the_same(tensors, asked):
    out = torch.empty(24, 16, dtype=torch.bfloat16)
    for wrong in ({"precision": "double"}, {"operands": [out]}, {"m": "any"}):
        with pytest.raises(Exception, match=f"matmul: {next(iter(wrong))}"):
            matmul(*tensors, out=out, **wrong)
    assert not asked
