"""`tilewright.matmul` inside torch on a GPU: opcheck, torch.compile, gradients, CUDA graphs."""

import copy

import pytest
import torch
from torch import library

from tilewright import matmul
from tilewright.compiler.calls.dense.matmul_operator import matmul_operator, product_operator

pytestmark = pytest.mark.usefixtures("gpu")
MODES = ["default", "reduce-overhead"]


@pytest.fixture(autouse=True)
def fresh_dynamo(gpu):
    torch._dynamo.reset()


@pytest.mark.parametrize("out_dtype", ["", "f32"])
@pytest.mark.parametrize("gradients", [False, True])
def test_the_operator_keeps_torchs_rules(draws, out_dtype, gradients):
    for a in (draws.normal(40, 72), draws.transposed(40, 72)):
        a, b = a.requires_grad_(gradients), draws.transposed(56, 72).requires_grad_(gradients)
        library.opcheck(matmul_operator, (a, b, out_dtype, "", "", ""))
        library.opcheck(product_operator, (a.detach(), b.detach(), out_dtype, "", "", ""))


def layer(x, weight):
    return torch.relu(matmul(x, weight) + 1) * 2


def expected(x, weight):
    return torch.relu((x.double() @ weight.double().T).to(x.dtype) + 1) * 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_code_keeps_the_call_in_one_graph(draws, mode, dynamic):
    compiled = torch.compile(layer, fullgraph=True, mode=mode, dynamic=dynamic)
    weight = draws.integers(136, 72)
    for rows in (64, 64, 64, 200, 64, 200):
        x = draws.integers(rows, 72)
        assert compiled(x, weight).equal(expected(x, weight))


@pytest.mark.parametrize("mode", MODES)
def test_compiled_code_reads_transposed_operands_as_they_lie(draws, mode):
    compiled = torch.compile(
        lambda x, w: matmul(x.T, w.T + 0) + 1, fullgraph=True, mode=mode, dynamic=False
    )
    for _ in range(3):
        x, weight = draws.integers(72, 64), draws.integers(72, 136)
        assert compiled(x, weight).equal(expected_sum(x.T, weight.T))


def expected_sum(x, weight):
    return (x.double() @ weight.double().T).to(x.dtype) + 1


@pytest.mark.parametrize("mode", MODES)
def test_compiled_code_writes_out(draws, mode):
    compiled = torch.compile(
        lambda x, w, c: matmul(x, w, out=c).relu(), fullgraph=True, mode=mode, dynamic=False
    )
    weight, c = draws.integers(136, 72), draws.normal(64, 136)
    for _ in range(3):
        x = draws.integers(64, 72)
        c.fill_(torch.nan)
        result = compiled(x, weight, c)
        product = (x.double() @ weight.double().T).to(x.dtype)
        assert c.equal(product)
        assert result.equal(product.relu())


@pytest.mark.parametrize("a_kind", ["normal", "transposed"])
@pytest.mark.parametrize("b_kind", ["normal", "transposed"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_are_those_of_float64(draws, assert_product, a_kind, b_kind, dtype):
    a = getattr(draws, a_kind)(136, 72, dtype=dtype).requires_grad_()
    b = getattr(draws, b_kind)(200, 72, dtype=dtype).requires_grad_()
    weight = draws.normal(136, 200, dtype=dtype)
    c = matmul(a, b)
    c.backward(weight)
    assert_product(c.detach(), a, b)
    assert_product(a.grad, weight, b.T)
    assert_product(b.grad, weight.T, a.T)


def test_only_the_gradients_that_are_needed_are_computed(draws, assert_product):
    a, b = draws.normal(136, 72), draws.normal(200, 72).requires_grad_()
    matmul(a, b, out_dtype="f32").sum().backward()
    assert a.grad is None
    assert_product(b.grad, torch.ones(200, 136, dtype=torch.bfloat16, device="cuda:0"), a.T)


def test_second_derivatives_are_those_of_torch(draws):
    results = []
    a, b = draws.integers(40, 24), draws.integers(56, 24)
    for product in (matmul, torch.nn.functional.linear):
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        (of_x,) = torch.autograd.grad(product(x, y).square().sum(), x, create_graph=True)
        results.append(torch.autograd.grad(of_x.sum(), [x, y]))
    for ours, theirs in zip(*results, strict=True):
        assert (ours.double() - theirs.double()).norm() <= 2e-2 * theirs.double().norm()


class Perceptron(torch.nn.Module):
    def __init__(self, product):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        shapes = ((136, 72), (64, 136))
        self.product = product
        self.weights = torch.nn.ParameterList(
            (torch.randn(shape, generator=generator) / 9).bfloat16().cuda() for shape in shapes
        )

    def forward(self, x):
        return self.product(torch.relu(self.product(x, self.weights[0])), self.weights[1])


def gradients(module, x):
    module.zero_grad()
    module(x).float().square().mean().backward()
    return [weight.grad.clone() for weight in module.parameters()]


@pytest.mark.parametrize("how", ["eager", *MODES, "graphed"])
def test_a_module_learns_as_with_torchs_products(draws, how):
    ours, exact = Perceptron(matmul), Perceptron(torch.nn.functional.linear).double()
    run, inputs = ours, [draws.normal(200, 72) for _ in range(4)]
    if how == "graphed":
        run = torch.cuda.make_graphed_callables(ours, (inputs[0].clone(),))
    elif how != "eager":
        run = torch.compile(ours, fullgraph=True, mode=how)
    for x in inputs:
        run.zero_grad()
        run(x).float().square().mean().backward()
        for found, right in zip(ours.parameters(), gradients(exact, x.double()), strict=True):
            assert (found.grad.double() - right).norm() <= 1e-2 * right.norm()


def test_a_captured_call_replays_on_new_values(draws, assert_product):
    x, weight, graph = draws.normal(136, 72), draws.normal(200, 72), torch.cuda.CUDAGraph()
    matmul(x, weight)
    with torch.cuda.graph(graph):
        c = matmul(torch.relu(x), weight) * 1
    for _ in range(3):
        x.copy_(draws.normal(136, 72))
        c.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert_product(c, torch.relu(x), weight)


def test_fake_tensors_and_modes_get_the_operator(draws):
    from torch._subclasses.fake_tensor import FakeTensorMode

    a, b = draws.normal(40, 72), draws.normal(56, 72)
    matmul(a, b)
    with FakeTensorMode() as mode:
        c = matmul(mode.from_tensor(a), mode.from_tensor(b), out_dtype="f32")
    assert (tuple(c.shape), c.dtype, str(c.device)) == ((40, 56), torch.float32, "cuda:0")


def test_an_exported_program_holds_the_operator(draws):
    module = Perceptron(matmul)
    x = draws.normal(200, 72)
    program = torch.export.export(copy.deepcopy(module), (x,))
    targets = [str(node.target) for node in program.graph.nodes]
    assert targets.count("tilewright.matmul.default") == 2
    assert program.module()(x).equal(module(x))


@pytest.mark.parametrize("mode", MODES)
def test_a_loaded_kernel_is_one_operator_of_compiled_code(draws, mode):
    from tilewright.compiler.calls.kernels import lookup

    x, weight = draws.integers(96, 72), draws.integers(136, 72)
    matmul(x, weight)
    kernel = list(lookup._kernels.values())[-1]
    compiled = torch.compile(lambda x, w: kernel(x, w) + 1, fullgraph=True, mode=mode)
    for _ in range(3):
        x = draws.integers(96, 72)
        assert compiled(x, weight).equal(expected_sum(x, weight))
    operator = torch.ops.tilewright.run_kernel.default
    library.opcheck(operator, (kernel.key, [x, weight]))
