"""`tilewright.matmul`: arrays of any kind, gradients, torch.compile; here on the emulator."""

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import library
from torch._subclasses.fake_tensor import FakeTensorMode

from tilewright import matmul
from tilewright.compiler.calls.kernels import lookup
from tilewright.dialects.errors import CompileError, OptionError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(11)


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, generator=GENERATOR).to(dtype)


def assert_product(c, a, b):
    """Within the rounding of c's type and of float32 sums."""
    expected = a.double() @ b.double().T
    slack = {torch.bfloat16: 2**-8, torch.float16: 2**-11, torch.float32: 2**-20}[c.dtype]
    magnitude = a.double().abs() @ b.double().abs().T
    assert c.shape == expected.shape
    assert ((c.double() - expected).abs() <= slack * expected.abs() + 2**-18 * magnitude).all()


@pytest.mark.array(1, dtype=[torch.bfloat16, torch.float16], transposed=["", "a", "b"])
def test_either_major_order_is_taken_as_it_lies(dtype, transposed):
    a = random(72, 40, dtype=dtype).T if transposed == "a" else random(40, 72, dtype=dtype)
    b = random(72, 56, dtype=dtype).T if transposed == "b" else random(56, 72, dtype=dtype)
    c = matmul(a, b)
    assert c.dtype == dtype
    assert_product(c, a, b)


@pytest.mark.parametrize("out_dtype", ["f32", torch.float32, "torch.float16"])
def test_the_output_type_can_be_chosen(out_dtype):
    a, b = random(40, 72), random(56, 72)
    c = matmul(a, b, out_dtype=out_dtype)
    assert str(c.dtype) in (str(out_dtype), "torch.float32")
    assert_product(c, a, b)


def test_views_that_no_kernel_can_read_are_copied():
    a, b = random(40, 144)[:, ::2], random(57, 72).flatten()[4:].narrow(0, 0, 56 * 72).view(56, 72)
    assert b.data_ptr() % 16 == 8
    for _ in range(2):
        assert_product(matmul(a, b), a, b)
    transposed = random(57, 72).flatten()[4:].narrow(0, 0, 56 * 72).view(72, 56).T
    assert_product(matmul(a, transposed), a, transposed)


def test_out_is_written_and_returned():
    a, b = random(40, 72), random(56, 72)
    out = torch.full((40, 56), torch.nan, dtype=torch.bfloat16)
    assert matmul(a, b, out=out) is out
    assert_product(out, a, b)


def test_numpy_arrays_give_a_numpy_array():
    a, b = random(40, 72), random(56, 72)
    as_numpy = [each.float().numpy().astype(ml_dtypes.bfloat16) for each in (a, b)]
    c = matmul(*as_numpy)
    assert isinstance(c, np.ndarray)
    assert_product(torch.from_numpy(c.astype(np.float32)).to(torch.bfloat16), a, b)
    strided = np.repeat(as_numpy[0], 2, axis=1)[:, ::2]
    assert np.array_equal(matmul(strided, as_numpy[1]).view(np.uint16), c.view(np.uint16))


class Foreign:
    """An array of a library that only speaks DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**keywords)


def test_arrays_of_any_library_are_taken_through_dlpack():
    a, b = random(40, 72), random(72, 56).T
    assert_product(matmul(Foreign(a), Foreign(b)), a, b)
    out = torch.full((40, 56), torch.nan, dtype=torch.bfloat16)
    matmul(Foreign(a), b, out=out)
    assert_product(out, a, b)


def test_a_pipeline_or_preset_can_be_named():
    a, b = random(40, 72), random(56, 72)
    assert_product(matmul(a, b, preset="kernel3"), a, b)
    assert_product(matmul(a, b, pipeline="tiling{tile=64x64x64}"), a, b)
    pipelines = {kernel.manifest["pipeline"] for kernel in lookup._kernels.values()}
    assert "normalize,tiling{tile=64x64x64},lower-to-nvvm" in pipelines


def test_a_second_call_compiles_nothing(monkeypatch):
    a, b = random(40, 72), random(56, 72)
    first = matmul(a, b)
    monkeypatch.setattr(lookup, "_find_kernel", None)
    assert matmul(a.clone(), b.clone()).equal(first)


def test_gradients_are_those_of_the_product():
    a, b = random(40, 72).requires_grad_(), random(56, 72).requires_grad_()
    weight = random(40, 56)
    (matmul(a, b) * weight).sum().backward()
    assert_product(a.grad, weight, b.detach().T)
    assert_product(b.grad, weight.T, a.detach().T)


def test_gradients_of_an_f32_output_have_the_inputs_types():
    a, b = random(40, 72).requires_grad_(), random(56, 72)
    matmul(a, b, out_dtype="f32").sum().backward()
    assert_product(a.grad, torch.ones(40, 56, dtype=torch.bfloat16), b.T)
    assert b.grad is None


def test_operands_that_come_again_are_told_from_those_that_only_look_alike():
    a, b = random(64, 64), random(64, 64)
    shifted = random(65, 64).flatten()[4 : 4 + 64 * 64].view(64, 64)
    for x in (a, a.T, a.half(), a.clone().requires_grad_(), shifted) * 2:
        c = matmul(x, b.to(x.dtype))
        assert c.requires_grad == x.requires_grad
        assert_product(c.detach(), x.detach(), b.to(x.dtype))
    with torch.no_grad():
        assert not matmul(a.requires_grad_(), b).requires_grad


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_gradients_of_f32_operands_are_products_of_tf32(target):
    a, b, weight = (random(*shape, dtype=torch.float32) for shape in ((40, 72), (56, 72), (40, 56)))
    (matmul(a.requires_grad_(), b.requires_grad_(), target=target) * weight).sum().backward()
    for found, exact in (
        (a.grad, weight.double() @ b.double()),
        (b.grad, weight.double().T @ a.double()),
    ):
        assert found.dtype == torch.float32
        assert (found - exact).norm() <= 1e-3 * exact.norm()


def test_second_derivatives_are_recorded():
    a, b = random(24, 40).requires_grad_(), random(32, 40)
    (gradient,) = torch.autograd.grad(matmul(a, b).square().sum(), a, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), a)
    expected = 2 * torch.ones(24, 40).double() @ b.double().T @ b.double()
    assert (second.double() - expected).norm() <= 1e-2 * expected.norm()


def test_fake_tensors_get_the_operators_fake():
    a, b = random(40, 72), random(56, 72)
    matmul(a, b)
    with FakeTensorMode() as mode:
        c = matmul(mode.from_tensor(a), mode.from_tensor(b), out_dtype="f32")
    assert (tuple(c.shape), c.dtype) == ((40, 56), torch.float32)


@pytest.mark.parametrize(("other", "out_dtype", "rule"), [
    (torch.float16, None, "a_dtype and b_dtype must be one type, got bf16 and f16"),
    (torch.bfloat16, torch.int32, "c_dtype must be one of bf16, .* for sums in f32, got s32"),
])  # fmt: skip
def test_types_that_no_kernel_multiplies_are_refused_in_a_graph_too(other, out_dtype, rule):
    with FakeTensorMode() as mode, pytest.raises(OptionError, match=rule):
        a, b = (mode.from_tensor(random(40, 72).to(each)) for each in (torch.bfloat16, other))
        matmul(a, b, out_dtype=out_dtype)


def test_threads_may_compile_at_the_same_time(monkeypatch):
    found, find = [], lookup._find_kernel

    def count(*asked):
        found.append(asked[0].shape)
        return find(*asked)

    monkeypatch.setattr(lookup, "_find_kernel", count)
    operands = [(random(24 + 8 * (i // 2), 104), random(32, 104)) for i in range(8)]
    with ThreadPoolExecutor(len(operands)) as threads:
        products = list(threads.map(lambda pair: matmul(*pair), operands))
    for c, pair in zip(products, operands, strict=True):
        assert_product(c, *pair)
    assert sorted(found) == [(24, 104), (32, 104), (40, 104), (48, 104)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile_keeps_the_call_in_one_graph(dynamic):
    def layer(x, weight):
        return torch.relu(matmul(x, weight)) * 2

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    x, weight = random(40, 72), random(56, 72)
    assert compiled(x, weight).equal(layer(x, weight))
    x, weight = random(24, 72).requires_grad_(), random(56, 72)
    compiled(x, weight).sum().backward()
    expected = x.detach().clone().requires_grad_()
    layer(expected, weight).sum().backward()
    assert x.grad.equal(expected.grad)


def test_the_operators_keep_torchs_rules():
    from tilewright.compiler.calls.dense.matmul_operator import matmul_operator, product_operator

    a, b = random(40, 72), random(56, 72)
    library.opcheck(product_operator, (a, b, "f32", "", "", ""))
    a, b = a.requires_grad_(), b.requires_grad_()
    library.opcheck(matmul_operator, (a, b, "f32", "", "", ""))


class Squared(torch.nn.Module):
    def forward(self, x):
        return matmul(x, x)


def test_an_exported_program_holds_the_operator_and_is_taken_apart_into_products():
    x = random(40, 72)
    program = torch.export.export(Squared(), (x,))
    assert "tilewright.matmul.default" in [str(node.target) for node in program.graph.nodes]
    assert program.module()(x).equal(matmul(x, x))
    parts = [str(node.target) for node in program.run_decompositions().graph.nodes]
    assert parts == ["x", "tilewright.product.default", "output"]


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (
            random(40, 72),
            random(72, 56),
            {},
            "error: matmul: a and b must be [m, k] and [n, k], got [40, 72] and [72, 56];"
            " pass b.T for a b of [k, n]",
        ),
        (
            random(40, 72).double(),
            random(56, 72),
            {},
            "error: spec: a_dtype and b_dtype must be one type, got f64 and bf16; "
            "convert one of them",
        ),
        (
            random(40, 72),
            random(56, 72),
            {"out_dtype": torch.int8},
            "error: matmul: out_dtype must be one of bf16, f16, f32, s32, f64, e4m3, e5m2, "
            "mxfp8, mxfp8_e5m2, mxfp6, mxfp6_e3m2, mxfp4, nvfp4, got torch.int8",
        ),
        (
            [1.0],
            random(56, 72),
            {},
            "error: matmul: a must be an array of torch, numpy or DLPack, got list",
        ),
        (
            random(40, 72),
            random(56, 72).half(),
            {},
            "error: spec: a_dtype and b_dtype must be one type, got bf16 and f16; "
            "convert one of them",
        ),
        (
            np.ones((40, 72), ">f4"),
            np.ones((56, 72), ">f4"),
            {},
            "error: matmul: a must be one of f16, bf16, tf32, e4m3, e5m2, s8, u8, "
            "f32, f64, got >f4; convert it",
        ),
        (
            random(40, 72).to_sparse(),
            random(56, 72),
            {},
            "error: matmul: a must be dense, got torch.sparse_coo; convert it",
        ),
        (
            random(40, 72),
            random(56, 72),
            {"preset": "v1a", "pipeline": "tiling"},
            "error: pipeline: must be a text or a preset, got both; drop one",
        ),
    ],
)
def test_what_cannot_be_multiplied_is_refused(a, b, options, message):
    with pytest.raises(CompileError) as refused:
        matmul(a, b, **options)
    assert str(refused.value) == message
