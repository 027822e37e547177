"""`tilewright.nn.Linear` beside torch's linear in float64, and models whose layers are replaced."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import tilewright
from tilewright.compiler.calls.layers import linear_operator
from tilewright.nn import Linear, replace
from tilewright.runtime.errors import DeviceError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
SHAPE = (2, 16, 32)


def layer(bias=True, dtype=torch.bfloat16):
    torch.manual_seed(3)
    return Linear(32, 32, bias=bias, dtype=dtype)


def exact(module, x):
    bias = None if module.bias is None else module.bias.double()
    return nn.functional.linear(x.double(), module.weight.double(), bias)


def assert_close(found, expected):
    assert found.shape == expected.shape
    assert (found.double() - expected).norm() <= 2**-7 * expected.norm()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_it_is_torchs_linear_with_leading_dims(bias, gradients):
    module, x = layer(bias), torch.randn(SHAPE, dtype=torch.bfloat16)
    with torch.set_grad_enabled(gradients):
        found = module(x)
    assert found.dtype == torch.bfloat16
    assert_close(found, exact(module, x).detach())
    if gradients:
        found.float().square().sum().backward()
        of_found = 2 * found.detach().double().flatten(0, 1)
        assert_close(module.weight.grad, of_found.T @ x.double().flatten(0, 1))
        if bias:
            assert_close(module.bias.grad, of_found.sum(0))


def test_float32_keeps_torchs_precision(monkeypatch):
    module, x = layer(dtype=torch.float32), torch.randn(32, 32)
    monkeypatch.setattr("tilewright.compiler.calls.layers.linear.linear", None)
    assert torch.equal(module(x), nn.functional.linear(x, module.weight, module.bias))


@pytest.mark.parametrize("shape", [(40, 32), (2, 20, 32)], ids=["rows", "batches of rows"])
def test_a_layer_called_again_asks_for_its_kernel_alone(shape, monkeypatch):
    module = Linear(32, 16, bias=False, dtype=torch.bfloat16)
    x = torch.randn(shape).bfloat16()
    with torch.no_grad():
        first = module(x)
        monkeypatch.delattr(sys.modules["tilewright.compiler.calls.dense.matmul"], "check_call")
        assert torch.equal(module(x), first)
    assert first.shape == (*shape[:-1], 16)


@pytest.mark.parametrize("shape", [(40, 32), (2, 20, 32)], ids=["rows", "batches of rows"])
@pytest.mark.parametrize("gradients", [True, False])
def test_a_layer_with_a_bias_that_is_called_again_looks_for_no_kernel(
    shape, gradients, monkeypatch
):
    module, x = Linear(32, 16, dtype=torch.bfloat16), torch.randn(shape).bfloat16()
    with torch.set_grad_enabled(gradients):
        module(x)
        with monkeypatch.context() as without:
            without.delattr(linear_operator, "multiply_fused")
            with torch.no_grad():
                module.weight.mul_(2)
            made = module(x * 2)
    assert_close(made, exact(module, x * 2).detach())


def test_a_layer_called_with_other_tensors_is_not_taken_for_the_last_one():
    module, x = Linear(32, 16, dtype=torch.bfloat16), torch.randn(40, 32).bfloat16()
    transposed = torch.randn(32, 40).bfloat16().T
    apart = torch.randn(40, 48).bfloat16()[:, 3:35]
    shifted = torch.randn(40 * 32 + 1).bfloat16()[1:].view(40, 32)
    wide = Linear(32, 16, dtype=torch.bfloat16)
    with torch.no_grad():
        wide.weight.set_(torch.randn(32, 16).bfloat16().T)
        wide.bias.set_(torch.randn(32).bfloat16()[::2])
        for layer, given in [
            (module, x),
            (module, transposed),
            (module, apart),
            (module, shifted),
        ] * 2:
            assert_close(layer(given), exact(layer, given))
        for layer in (wide, module, wide):
            assert_close(layer(x), exact(layer, x))
        half = Linear(32, 16, dtype=torch.float16)
        found = half(x.half())
        assert found.dtype == torch.float16
        assert half(x.half()).equal(found)


def test_autocast_gives_it_16_bits():
    module, x = layer(dtype=torch.float32), torch.randn(32, 32)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found = module(x)
    assert found.dtype == torch.bfloat16
    assert_close(found, exact(module, x))


def test_bias_and_gradients_take_no_step_of_their_own(monkeypatch):
    """A product in float32, a sum and a conversion would write three matrices for one."""
    monkeypatch.setattr("tilewright.compiler.calls.dense.fused.two_steps", None)
    module, x = layer(), torch.randn(SHAPE, dtype=torch.bfloat16, requires_grad=True)
    (of_x,) = torch.autograd.grad(module(x).float().square().sum(), x, create_graph=True)
    (again,) = torch.autograd.grad(of_x.float().square().sum(), module.bias)
    weight = module.weight.double()
    of_found = 2 * exact(module, x).detach()
    assert_close(of_x.detach(), of_found @ weight)
    assert_close(again, (4 * of_x.detach().double() @ weight.mT).sum((0, 1)))


class OwnWeight(torch.Tensor):
    """As quantised weights are: torch's linear of it is its own."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is nn.functional.linear:
            return "its own"
        return super().__torch_function__(function, types, args, kwargs or {})


@pytest.mark.parametrize("gradients", [True, False])
def test_weights_with_functions_of_their_own_keep_them(gradients):
    module, x = layer(), torch.randn(SHAPE, dtype=torch.bfloat16)
    module.weight = nn.Parameter(module.weight.detach().as_subclass(OwnWeight))
    with torch.set_grad_enabled(gradients):
        assert module(x) == "its own"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(32, 32), nn.Linear(32, 8)
        self.norm = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))


def test_replacing_keeps_parameters_hooks_and_names():
    model = Model().to(torch.bfloat16)
    before, seen = dict(model.named_parameters()), []
    model.first.register_forward_hook(lambda *_: seen.append("hook"))
    assert replace(model, only=lambda name, module: name != "last") is model
    kinds = [type(each) for each in (model.first, model.last)]
    assert kinds == [Linear, nn.Linear] and not isinstance(model.norm, Linear)
    after = dict(model.named_parameters())
    assert list(after) == list(before) and all(after[name] is before[name] for name in before)
    with torch.no_grad():
        model.first(torch.randn(32, 32, dtype=torch.bfloat16))
    assert seen == ["hook"]
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module, got dict"):
        replace({})


def test_the_names_are_public():
    names = ["Linear", "WeightOnlyLinear", "quantize", "quantize_weights", "replace"]
    assert tilewright.nn.__dir__() == names
    assert all(getattr(tilewright.nn, name) for name in names)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(
    "turn",
    [
        lambda x: x.view(16, 2, 32).transpose(0, 1),
        lambda x: x.view(2, 32, 16).mT,
        lambda x: x[:1].expand(2, 16, 32),
    ],
)
def test_rows_that_do_not_step_evenly_are_copied(turn, gradients):
    """As batch and sequence exchanged, channels first, and a batch that is one sequence."""
    module, x = layer(), turn(torch.randn(SHAPE, dtype=torch.bfloat16))
    with torch.set_grad_enabled(gradients):
        assert_close(module(x).detach(), exact(module, x).detach())


def test_autocast_leaves_float64_as_it_is():
    module, x = layer(dtype=torch.float64), torch.randn(32, 32).double()
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert torch.equal(module(x), exact(module, x))


@pytest.mark.parametrize(
    "turn",
    [
        lambda x: torch.nested.nested_tensor([x[:5], x], layout=torch.jagged),
        lambda x: torch.nested.nested_tensor([x[:5], x]),
        lambda x: x.to_sparse(),
        torch._neg_view,
    ],
    ids=["jagged", "nested", "sparse", "negative"],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_inputs_that_are_no_matrix_in_memory_are_torchs(turn, monkeypatch):
    module, x = layer(), turn(torch.randn(16, 32, dtype=torch.bfloat16))
    monkeypatch.setattr("tilewright.compiler.calls.layers.linear.linear", None)
    found, expected = module(x), nn.functional.linear(x, module.weight, module.bias)
    pairs = zip(found.unbind(), expected.unbind(), strict=True)
    assert type(found) is type(expected) and all(torch.equal(*pair) for pair in pairs)


def test_what_is_no_tensor_torch_refuses():
    layer = replace(torch.nn.Sequential(torch.nn.Linear(8, 4, dtype=torch.bfloat16)))[0]
    with pytest.raises(TypeError, match=r"must be Tensor, not numpy\.ndarray"):
        layer(np.ones((3, 8), np.float32))


def test_meta_tensors_give_meta_tensors():
    module, x = layer().to("meta"), torch.empty(SHAPE, dtype=torch.bfloat16, device="meta")
    found = module(x)
    found.sum().backward()
    assert found.is_meta and found.shape == SHAPE and found.dtype == torch.bfloat16
    assert module.weight.grad.is_meta
    narrow = tilewright.nn.WeightOnlyLinear.from_linear(layer(), group=32).to("meta")
    assert narrow(x).is_meta and narrow(x).shape == SHAPE


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", ["input", "weight"])
def test_one_meta_tensor_beside_a_real_one_is_refused(name, gradients):
    """Torch's operators would give a tensor of undefined content."""
    module, x = layer(bias=False), torch.randn(SHAPE, dtype=torch.bfloat16)
    module = module.to("meta" if name == "weight" else "cpu")
    errors = DeviceError, RuntimeError
    with torch.set_grad_enabled(gradients), pytest.raises(errors, match="meta"):
        module(x.to("meta") if name == "input" else x)


@pytest.mark.parametrize("make", [replace, tilewright.nn.quantize])
def test_an_only_that_is_no_function_is_refused(make):
    rule = rf"^{make.__name__}: only must be a function of a name and a module, or None, got int;"
    with pytest.raises(TypeError, match=rule):
        make(nn.Sequential(nn.Linear(4, 4)), only=3)


def test_a_layer_of_narrow_weights_is_not_made_of_sizes():
    with pytest.raises(tilewright.CompileError, match=r"weight must be a tensor, .* got int; make"):
        tilewright.nn.WeightOnlyLinear(32, 16)
