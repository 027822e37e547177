"""Torch modules as one kernel, against the modules themselves in float64."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tilewright import compile_module
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.dialects.errors import CompileError
from tilewright.runtime import load
from tilewright.runtime.errors import DeviceError

TARGETS = ["sm_100a", "sm_90a"]


class Scaled(nn.Module):
    """Parameters that the kernel takes in another order, a buffer, and an input beside x."""

    def __init__(self, k, n):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(n, dtype=torch.bfloat16))
        self.weight = nn.Parameter(torch.randn(n, k, dtype=torch.bfloat16) / k**0.5)
        self.register_buffer("scale", torch.rand(n, dtype=torch.bfloat16))

    def forward(self, residual, x):
        product = nn.functional.linear(x, self.weight, self.bias)
        return nn.functional.silu(product * self.scale) + residual


def operands(m=72, n=40, k=88, dtype=torch.bfloat16):
    torch.manual_seed(m)
    return torch.randn(m, n, dtype=dtype), torch.randn(m, k, dtype=dtype)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_takes_the_modules_parameters_as_they_are_at_the_call(target):
    residual, x = operands()
    module = Scaled(88, 40)
    kernel = compile_module(module, residual, x, target=target)
    assert kernel.tensors == {
        "a": "input 1", "b": "weight", "e0": "input 0", "e1": "bias", "e2": "scale",
    }  # fmt: skip
    with torch.no_grad():
        module.bias += 3
        module.scale.mul_(2)
        out = torch.full((72, 40), float("nan"), dtype=torch.bfloat16)
        assert kernel(residual, x, out=out) is out
        expected = copy.deepcopy(module).double()(residual.double(), x.double())
    assert (out.double() - expected).abs().max() <= 2**-6 * expected.abs().max()


def test_a_kernel_of_a_module_is_kept_as_a_bundle(tmp_path):
    residual, x = operands()
    module = Scaled(88, 40)
    kernel = compile_module(module, residual, x)
    as_bundle(kernel.compiled, tmp_path / "layer.zip")
    loaded = load(tmp_path / "layer.zip")
    weight, bias, scale = (each.detach() for each in (module.weight, module.bias, module.scale))
    with torch.no_grad():
        assert torch.equal(loaded(residual, x, bias, weight, scale), kernel(residual, x))


@pytest.mark.array(1, approximate=["none", "tanh"], dtype=[torch.bfloat16, torch.float32])
def test_gelu_is_rounded_as_often_as_torch_rounds_it(approximate, dtype):
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(64, 48, dtype=dtype), nn.GELU(approximate))
    x = torch.randint(-2, 3, (80, 64)).to(dtype)
    with torch.no_grad():
        module[0].weight.copy_(torch.randint(-2, 3, (48, 64)) / 4)
        result, expected = compile_module(module, x)(x), module(x)
    step = torch.finfo(dtype).eps
    rtol, atol = (step, step / 64) if dtype == torch.bfloat16 else (0, 16 * step)
    assert torch.allclose(result, expected, rtol=rtol, atol=atol)


class Gated(nn.Module):
    """What an MLP computes before its last product, as Llama (SiLU) and Gemma (GELU) have it."""

    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(72, 40, bias=False, dtype=torch.bfloat16) for _ in range(2))

    def forward(self, x):
        return nn.functional.silu(self.gate(x)) * self.up(x)


class Halves(nn.Module):
    """The same of one weight, gate before up."""

    def __init__(self):
        super().__init__()
        self.both = nn.Linear(72, 80, dtype=torch.bfloat16)

    def forward(self, x):
        gate, up = self.both(x).chunk(2, dim=-1)
        return nn.functional.gelu(gate, approximate="tanh") * up


class Interleaved(Halves):
    """The same in alternating rows."""

    def forward(self, x):
        gate, up = self.both(x).unflatten(-1, (40, 2)).unbind(-1)
        return nn.functional.silu(gate) * up


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("kind", "target", "weights", "strides"),
    [
        (Gated, "sm_90a", ["gate.weight", "up.weight"], [72, 1]),
        (Halves, "sm_100a", ["both.weight[0:40]", "both.weight[40:80]"], [72, 1]),
        (Interleaved, "sm_90a", ["both.weight[0:79:2]", "both.weight[1:80:2]"], [144, 1]),
    ],
)
def test_gate_and_up_of_a_module_are_one_kernel(kind, target, weights, strides):
    """It reads both where they lie, as they are at the call."""
    torch.manual_seed(8)
    module, x = kind(), torch.randn(72, 72).bfloat16()
    kernel = compile_module(module, x, target=target)
    tensors = {each["name"]: each for each in kernel.compiled.manifest["tensors"]}
    assert [kernel.tensors[name] for name in ("b", "b2")] == weights
    assert [tensors[name]["strides"] for name in ("b", "b2")] == [strides, strides]
    with torch.no_grad():
        for each in module.parameters():
            each.mul_(2)
        expected = copy.deepcopy(module).double()(x.double())
        assert (kernel(x).double() - expected).abs().max() <= 2**-6 * expected.abs().max()


class CutAndWhole(Halves):
    def forward(self, x):
        both = self.both(x)
        return both[:, :40] * both.flip(-1)[:, 40:]


def test_an_output_that_is_cut_and_read_whole_is_refused():
    with pytest.raises(CompileError, match=r"aten\.flip: must be elementwise where it reads"):
        compile_module(CutAndWhole(), torch.randn(16, 72).bfloat16())


@pytest.fixture(scope="module")
def linear():
    """A kernel of a linear layer, and an input for it."""
    x = torch.randn(16, 32, dtype=torch.bfloat16)
    return compile_module(nn.Linear(32, 16, dtype=torch.bfloat16), x), x


def test_gradients_are_refused_and_not_lost(linear):
    kernel, x = linear
    with pytest.raises(CompileError, match=r"has no gradient.*call it under torch\.no_grad"):
        kernel(x)


def test_other_inputs_are_refused_by_name(linear):
    kernel, x = linear
    with torch.no_grad():
        with pytest.raises(CompileError, match="Linear: input 0 must be given, got none"):
            kernel()
        with pytest.raises(CompileError, match="Linear: must be called with 1 inputs, got 2"):
            kernel(x, x)
        with pytest.raises(CompileError, match=r"input 0 must be a torch\.Tensor, got list"):
            kernel([])
        with pytest.raises(DeviceError, match="tensor 'a': shape must be"):
            kernel(x[:8])


def test_inputs_by_their_names_are_refused(linear):
    kernel, x = linear
    rule = r"inputs must be given by their places, got 'scale' by its name; pass it in the order"
    with pytest.raises(CompileError, match=f"compile_module: {rule}"):
        compile_module(nn.Linear(32, 16, dtype=torch.bfloat16), x, scale=x)
    with torch.no_grad(), pytest.raises(CompileError, match=f"Linear: {rule}"):
        kernel(x, scale=x)


def test_what_is_no_module_of_torch_is_refused():
    with pytest.raises(CompileError, match=r"must be a torch\.nn\.Module, got function"):
        compile_module(lambda x: x, torch.ones(2, 2))
    with pytest.raises(CompileError, match=r"input 0 must be a torch\.Tensor, got ndarray"):
        compile_module(nn.Linear(4, 4), np.ones((4, 4)))


def test_a_compiled_call_stays_in_the_graph(linear):
    kernel, x = linear
    with torch.no_grad():
        compiled = torch.compile(lambda value: kernel(value), backend="aot_eager", fullgraph=True)
        assert torch.equal(compiled(x), kernel(x))


def test_a_file_of_the_modules_name_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "Linear").write_text("this is no MLIR")
    monkeypatch.chdir(tmp_path)
    x = torch.randn(16, 32, dtype=torch.bfloat16)
    assert compile_module(nn.Linear(32, 16, dtype=torch.bfloat16), x).tensors["b"] == "weight"


@pytest.mark.parametrize(
    ("module", "shape", "rule"),
    [
        (nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 16)), (16, 32), "got one of another"),
        (nn.ReLU(), (16, 32), "one linalg.matmul, got 0"),
        (
            nn.Sequential(nn.Linear(32, 16), nn.Softmax(-1)),
            (16, 32),
            "not one of the ops that a kernel is",
        ),
        (nn.Linear(48, 16), (16, 32), "Linear: torch must be able to export it, got: "),
    ],
    ids=["two", "none", "softmax", "shapes"],
)
def test_what_is_no_matmul_with_an_epilogue_is_refused(module, shape, rule):
    with pytest.raises(CompileError, match=rule):
        compile_module(module, torch.randn(shape))


def test_refusals_name_the_line_of_python():
    with pytest.raises(CompileError, match=r"activation\.py:\d+:\d+: error: func\.func"):
        compile_module(nn.ReLU(), torch.randn(16, 32))


@pytest.mark.array(1, name=["erf", "tanh"], target=TARGETS)
def test_special_functions_keep_their_bounds_over_all_of_f32(name, target):
    half_ulps = {"erf": 8, "tanh": 4}[name]
    function = getattr(torch, name)

    class Applied(nn.Module):
        def forward(self, x, y, added):
            return function(x.float() @ y.float().T + added)

    bits = np.random.default_rng(5).integers(0, 2**32, (64, 32), np.uint64).astype(np.uint32)
    dense = np.linspace(-6, 6, 64 * 32, dtype=np.float32).reshape(64, 32)
    added = torch.from_numpy(np.concatenate([bits.view(np.float32), dense], axis=1))
    zeros = torch.zeros(64, 16, dtype=torch.bfloat16)
    result = compile_module(Applied(), zeros, zeros, added, target=target)(zeros, zeros, added)
    expected = function(added.double())
    assert torch.equal(result.isnan(), expected.isnan())
    normal = expected.abs() >= 2.0**-126
    error = (result.double() - expected).abs()
    assert (error[normal] <= half_ulps * 2.0**-24 * expected[normal].abs()).all()
    assert (error[~normal & ~expected.isnan()] <= 2.0**-126).all()


ADDED = {
    "addmm": (lambda c, a, b: torch.addmm(c, a, b), (72, 40)),
    "addmm with factors": (lambda c, a, b: torch.addmm(c, a, b, beta=0.3, alpha=1.7), (72, 40)),
    "addmm of a row": (lambda c, a, b: torch.addmm(c, a, b, beta=0.3), (40,)),
    "linear": (lambda c, a, b: nn.functional.linear(a, b.T, c), (40,)),
    "linear of a stack": (lambda c, a, b: nn.functional.linear(a.view(2, 36, 88), b.T, c), (40,)),
    "baddbmm": (
        lambda c, a, b: torch.baddbmm(c, a.view(2, 36, 88), b.expand(2, 88, 40)),
        (2, 36, 40),
    ),
}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_joins_the_sums_before_they_are_rounded(name, dtype):
    """Within 2^-14 besides: a second rounding shows in every fourth element."""
    function, sizes = ADDED[name]

    class Added(nn.Module):
        def forward(self, c, a, b):
            return function(c, a, b)

    torch.manual_seed(3)
    a, b = torch.randn(72, 88, dtype=dtype), torch.randn(88, 40, dtype=dtype)
    given = (torch.randn(sizes, dtype=dtype) * 16, a, b)
    wanted = function(*(each.double() for each in given))
    got = compile_module(Added(), *given)(*given)
    bits = {torch.bfloat16: 8, torch.float16: 11}[dtype]
    unit = torch.ldexp(torch.ones_like(wanted), torch.frexp(wanted)[1] - bits)
    assert ((got.double() - wanted).abs() <= 0.51 * unit + 2.0**-14).all()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("sizes", [(40, 24), (24,), (2, 40, 24)])
def test_with_a_beta_of_0_nothing_of_what_is_added_is_read(sizes, dtype):
    """So that NaN in it is none of the result's, as in torch."""

    class Added(nn.Module):
        def forward(self, c, a, b):
            added = torch.baddbmm if a.dim() == 3 else torch.addmm
            return added(c, a, b, beta=0, alpha=2)

    torch.manual_seed(4)
    stack = sizes[:-2] if len(sizes) > 1 else ()
    a, b = (torch.randn(*stack, *size).round().to(dtype) for size in ((40, 16), (16, 24)))
    given = torch.full(sizes, torch.nan, dtype=dtype), a, b
    assert torch.equal(compile_module(Added(), *given)(*given), 2 * (a @ b))
