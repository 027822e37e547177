"""`tilewright.matmul` of f32, floats of 8 bits and bytes; here on the emulator."""

import warnings

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tilewright import compile_module, matmul
from tilewright.compiler.calls.dense.matmul_operator import matmul_operator
from tilewright.dialects.errors import CompileError
from tilewright.runtime.errors import PrecisionWarning

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(12)
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
TARGETS = ["sm_90a", "sm_100a"]


def random(*shape, dtype=torch.float32):
    if dtype in (torch.int8, torch.uint8):
        limits = torch.iinfo(dtype)
        shape = (limits.min, limits.max + 1, shape)
        return torch.randint(*shape, generator=GENERATOR, dtype=dtype)
    return torch.randn(shape, generator=GENERATOR).to(dtype)


def assert_near(c, expected, relative):
    """Within so much of the largest element."""
    assert c.shape == expected.shape
    assert (c.double() - expected).abs().max() < relative * expected.abs().max()


@pytest.mark.array(1, target=TARGETS, transposed=["", "a", "b"])
def test_f32_is_multiplied_as_tf32_in_any_layout(target, transposed):
    a = random(72, 40).T if transposed == "a" else random(40, 72)
    b = random(72, 56).T if transposed == "b" else random(56, 72)
    cut = [(each.contiguous().view(torch.int32) >> 13 << 13).view(torch.float32) for each in (a, b)]
    c = matmul(a, b, target=target, precision="tf32")
    assert c.dtype == torch.float32
    assert_near(c, cut[0].double() @ cut[1].double().T, 1e-6)


@pytest.mark.array(
    1, target=TARGETS, types=[(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3)], b_t=[False, True]
)
def test_floats_of_8_bits_give_bf16(target, types, b_t):
    a_type, b_type = types
    a, b = random(40, 80, dtype=a_type), random(56, 80, dtype=b_type)
    b = b.T.contiguous().T if b_t else b
    expected = a.double() @ b.double().T
    c = matmul(a, b, target=target)
    assert c.dtype == torch.bfloat16
    assert_near(c, expected, 2**-8)
    assert_near(matmul(a, b, target=target, out_dtype="f32"), expected, 1e-6)


@pytest.mark.array(
    1,
    target=TARGETS,
    types=[(torch.int8, torch.int8), (torch.uint8, torch.int8)],
    b_t=[False, True],
)
def test_bytes_give_exact_sums(target, types, b_t):
    a, b = random(40, 80, dtype=types[0]), random(56, 80, dtype=types[1])
    b = b.T.contiguous().T if b_t else b
    c = matmul(a, b, target=target)
    assert c.dtype == torch.int32
    assert c.equal((a.double() @ b.double().T).to(torch.int32))


def test_numpy_arrays_of_every_type_are_taken():
    a, b = (np.random.default_rng(1).standard_normal((40, 80)) for _ in "ab")
    floats = [each.astype(ml_dtypes.float8_e4m3fn) for each in (a, b)]
    c = matmul(*floats, out_dtype="f32")
    assert isinstance(c, np.ndarray)
    expected = floats[0].astype(float) @ floats[1].astype(float).T
    assert np.abs(c - expected).max() < 1e-5 * np.abs(expected).max()
    whole = [(30 * each).astype(np.int8) for each in (a, b)]
    by_columns = np.asfortranarray(whole[1])
    c = matmul(whole[0], by_columns, target="sm_90a")
    assert c.dtype == np.int32
    assert (c == whole[0].astype(int) @ whole[1].astype(int).T).all()


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
def test_gradients_of_f32_are_products_of_tf32(target):
    a, b = random(40, 72).requires_grad_(), random(56, 72).requires_grad_()
    weight = random(40, 56)
    (matmul(a, b, target=target) * weight).sum().backward()
    assert_near(a.grad, weight.double() @ b.detach().double(), 2**-9)
    assert_near(b.grad, weight.double().T @ a.detach().double(), 2**-9)


def test_8_bits_have_no_gradients():
    a, b = random(40, 80, dtype=E4M3).requires_grad_(), random(56, 80, dtype=E4M3)
    c = matmul(a, b)
    with pytest.raises(CompileError) as refused:
        c.sum().backward()
    assert str(refused.value) == (
        "error: matmul: gradients must be of 16 or 32 bits, got torch.float8_e4m3fn; "
        "convert the operands"
    )


def test_the_operator_says_the_type_of_the_product_under_torch_compile():
    @torch.compile(backend="eager", fullgraph=True)
    def product(a, b):
        return matmul(a, b)

    a, b = random(40, 80, dtype=torch.int8), random(56, 80, dtype=torch.int8)
    assert product(a, b).equal((a.double() @ b.double().T).to(torch.int32))


def test_types_that_no_kernel_takes_are_refused_under_torch_compile_too():
    @torch.compile(backend="eager", fullgraph=True)
    def product(a, b):
        return matmul(a, b)

    with pytest.raises(Exception, match=r"a must be one of f16, .*, f64, got torch\.int16"):
        product(random(40, 80).to(torch.int16), random(56, 80).to(torch.int16))


def test_types_of_different_kinds_are_refused():
    with pytest.raises(CompileError) as refused:
        matmul(random(40, 80, dtype=E4M3), random(56, 80, dtype=torch.int8))
    assert str(refused.value) == (
        "error: spec: a_dtype and b_dtype must be one type (8 bits: both floats or both integers), "
        "got e4m3 and s8; convert one of them"
    )


def test_f32_is_multiplied_as_it_is_where_that_is_asked_for():
    a, b = random(20, 40), random(24, 40)
    a.requires_grad_()
    c = matmul(a, b, precision="ieee")
    bound = 40 * 2**-23 * (a.double().abs() @ b.double().abs().T)  # of any order of the sums
    assert ((c.double() - a.double() @ b.double().T).abs() <= bound).all()
    c.sum().backward()
    assert torch.allclose(a.grad, b.sum(0).expand(20, 40), rtol=0, atol=2**-16)


@pytest.fixture
def set_precision():
    """Sets `torch.set_float32_matmul_precision`, until the test ends."""
    before = torch.get_float32_matmul_precision()
    yield torch.set_float32_matmul_precision
    torch.set_float32_matmul_precision(before)


def is_exact(c, a, b):
    """Whether C has all digits of f32; else it must have those of tf32."""
    wanted = a.double() @ b.double().T
    error = (c.double() - wanted).abs().max() / wanted.abs().max()
    assert error < 1e-6 or 1e-5 < error < 2e-3
    return bool(error < 1e-6)


def test_torchs_setting_is_the_default_precision_also_when_it_changes(set_precision):
    """Of a call by itself, of one like it, of arrays, and of the operator in graphs."""
    a, b = random(8, 48), random(16, 48)
    for setting in ("highest", "high", "highest"):
        set_precision(setting)
        arrays = torch.from_numpy(matmul(a.numpy(), b.numpy()))
        scaled = matmul(a, b, epilogue=lambda acc: acc * 1.0)
        operator = matmul_operator(a, b, "", "", "", "")
        for c in (matmul(a, b), matmul(a, b), arrays, scaled, operator):
            assert is_exact(c, a, b) == (setting == "highest")


def test_gradients_have_the_precision_that_their_product_took(set_precision):
    a, b = random(8, 48).requires_grad_(), random(16, 48)
    upstream = random(8, 16)
    set_precision("high")
    c = matmul(a, b)
    set_precision("highest")
    (found,) = torch.autograd.grad(c, a, upstream)
    assert not is_exact(found, upstream, b.T)


def test_passes_that_are_named_keep_tf32_and_a_preset_tells_of_it():
    a, b = random(8, 48), random(16, 48)
    with pytest.warns(PrecisionWarning, match="multiplied as tf32, by 10 fraction bits"):
        c = matmul(a, b, preset="kernel2")
    assert not is_exact(c, a, b)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrecisionWarning)
        matmul(a, b, preset="kernel2", precision="tf32")
    with pytest.raises(
        CompileError, match="precision must be tf32 or 3xtf32 or bf16x9 or ieee, got 'bf16x6'"
    ):
        matmul(a, b, precision="bf16x6")


MODULES = {
    "layer": (F.linear, (8, 48), None),
    "any M": (F.linear, (8, 48), ({0: torch.export.Dim("m")}, None)),
    "views": (lambda x, w: F.linear(x.flatten(0, 1), w).view(2, 4, 16), (2, 4, 48), None),
}


class Applied(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.mark.parametrize("setting", ["highest", "high"])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_the_digits_that_torchs_setting_asks_for(name, setting, set_precision):
    function, sizes, dynamic = MODULES[name]
    x, weight = random(*sizes), random(16, 48)
    set_precision(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrecisionWarning)
        kernel = compile_module(Applied(function), x, weight, dynamic_shapes=dynamic)
        c = kernel(x, weight)
    assert is_exact(c.view(8, 16), x.view(8, 48), weight) == (setting == "highest")


def test_a_module_tells_of_digits_that_torch_asks_for_when_it_is_called(set_precision):
    x, module = random(8, 48), torch.nn.Linear(48, 16).requires_grad_(False)
    set_precision("high")
    kernel = compile_module(module, x)
    set_precision("highest")
    with pytest.warns(PrecisionWarning, match="Linear: f32 operands .* compile the module again"):
        kernel(x)
    with pytest.warns(PrecisionWarning, match="compile_module: f32 operands .* leave the preset"):
        compile_module(module, x, preset="kernel2")


def test_a_module_tells_so_of_each_graph_that_torch_traces(set_precision):
    """A graph is of one setting, and torch traces another one for each."""
    x, module = random(8, 48), torch.nn.Linear(48, 16).requires_grad_(False)
    set_precision("high")
    kernel = compile_module(module, x)
    layer = torch.compile(lambda x: kernel(x) * 2, backend="aot_eager", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrecisionWarning)
        layer(x)
        set_precision("highest")
        with pytest.warns(PrecisionWarning, match="Linear: f32 operands .* module again"):
            layer(x)
        layer(x)


@pytest.mark.parametrize(("setting", "k"), [("ieee", 56), ("none", 64), ("tf32", 72)])
def test_the_setting_by_backend_counts(setting, k):
    """Where it is set, the older one cannot be asked: torch refuses to mix them."""
    backend = torch.backends.cuda.matmul
    if not hasattr(backend, "fp32_precision"):
        pytest.skip("torch has the older setting alone")
    before, backend.fp32_precision = backend.fp32_precision, setting
    try:
        a, b = random(8, k), random(16, k)
        c = matmul(a, b)
    finally:
        backend.fp32_precision = before
    assert is_exact(c, a, b) == (setting != "tf32")
