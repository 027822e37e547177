"""`weight_only_mm` and `WeightOnlyLinear` beside float64 products of weights dequantized here."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import tilewright
from tilewright.dialects.errors import CompileError
from tilewright.nn import WeightOnlyLinear, quantize, quantize_weights

N, K = 40, 128
KINDS = ("int4", "uint4", "int8", "e4m3", "e5m2")


def drawn(kind, group, dtype=torch.bfloat16):
    """(b, scales, zeros) of random codes, and the weights that they are, in float64."""
    draw = np.random.default_rng(len(kind) + group)
    scales = torch.from_numpy(draw.uniform(0.5, 2, (N, K // group))).to(dtype)
    zeros = torch.from_numpy(draw.integers(0, 16, (N, K // group)).astype(np.uint8))
    if kind in ("int4", "uint4"):
        low = -8 if kind == "int4" else 0
        values = draw.integers(low, low + 16, (N, K))
        b = torch.from_numpy(((values[:, ::2] & 15) | (values[:, 1::2] & 15) << 4).astype(np.uint8))
    elif kind == "int8":
        values = draw.integers(-128, 128, (N, K))
        b = torch.from_numpy(values.astype(np.int8))
    else:
        b = torch.from_numpy(draw.standard_normal((N, K))).to(
            {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[kind]
        )
        values = b.double().numpy()
    shifted = values.astype(np.float64)
    if kind == "uint4":
        shifted = shifted - np.repeat(zeros.double().numpy(), group, 1)
    wide = shifted * np.repeat(scales.double().numpy(), group, 1)
    return (b, scales, zeros if kind == "uint4" else None), torch.from_numpy(wide)


def close(result, a, wide, digits=2.0**-8):
    """Within a unit of bf16, or of as many `digits`, and what float32 may lose of the products."""
    exact = a.double() @ wide.T
    magnitude = a.double().abs() @ wide.abs().T
    allowed = digits * exact.abs() + (K + 2) * 2.0**-24 * magnitude
    return bool(((result.double() - exact).abs() <= allowed).all())


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("kind", "group"), list(zip(KINDS, (32, 64, 128, 32, 128), strict=True)))
def test_a_product_is_that_of_dequantized_weights(kind, group):
    (b, scales, zeros), wide = drawn(kind, group)
    a = torch.randn(5, K).to(torch.float16 if group == 32 else torch.bfloat16)
    out_dtype = None if kind == "uint4" else "f32"
    c = tilewright.weight_only_mm(a, b, scales, zeros=zeros, group_size=group, out_dtype=out_dtype)
    assert (c.shape, c.dtype) == ((5, N), a.dtype if kind == "uint4" else torch.float32)
    assert close(c, a, wide, digits=2.0**-8 if kind == "uint4" else 0)


def test_an_epilogue_reads_other_operands_and_gives_several_results():
    (b, scales, _), wide = drawn("int4", 64)
    a, bias, residual = torch.randn(2, 3, K).bfloat16(), torch.randn(N), torch.randn(2, 3, N)

    def epilogue(acc, bias, residual):
        whole = acc + bias
        return torch.relu(whole) + residual, whole

    made, whole = tilewright.weight_only_mm(
        a.reshape(6, K),
        b,
        scales,
        epilogue=epilogue,
        operands=(bias, residual.reshape(6, N)),
        out_dtype="f32",
        target="sm_90a",
    )
    exact = a.double().reshape(6, K) @ wide.T + bias.double()
    torch.testing.assert_close(whole.double(), exact, rtol=1e-5, atol=1e-3)
    wanted = exact.relu() + residual.double().reshape(6, N)
    torch.testing.assert_close(made.double(), wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "group", "dtype"), [("int8", K, torch.bfloat16), ("int4", 64, torch.float32)]
)
def test_a_residual_of_many_rows_comes_beside_weights_in_tensor_memory(kind, group, dtype):
    """As products of thousands of rows are compiled; two tiles along M, with rows outside of C."""
    (b, scales, _), wide = drawn(kind, group)
    a, residual = torch.randn(100, K).bfloat16(), torch.randn(100, N).to(dtype)
    mma = f"tcgen05.mma+cvt{'' if group == K else '+fma'}"
    text = f"tiling{{tile=128x64x64 mma={mma} swap=true}},tma-insertion,swizzle-selection,"
    text += (
        "epilogue-staging{columns=32 ahead=2},pipelining{stages=2},warp-specialization,persistence"
    )
    options = {"epilogue": lambda acc, x: acc * 0.5 + x, "operands": (residual,), "pipeline": text}
    c = tilewright.weight_only_mm(a, b, scales, group_size=group, target="sm_100a", **options)
    exact = (a.double() @ wide.T) * 0.5 + residual.double()
    allowed = 2.0**-8 * exact.abs() + (K + 2) * 2.0**-23 * (a.double().abs() @ wide.abs().T)
    assert bool(((c.double() - exact).abs() <= allowed).all())


def test_one_kernel_takes_any_number_of_rows(monkeypatch):
    from tilewright.compiler.calls.kernels.found_kernels import FoundKernels
    from tilewright.compiler.calls.weights import weight_product

    (b, scales, _), wide = drawn("int8", K)
    monkeypatch.setattr(weight_product, "_kernels", FoundKernels())
    for rows in (1, 3, 16):
        a = torch.randn(rows, K, dtype=torch.bfloat16)
        c = tilewright.weight_only_mm(a, b, scales[:, 0], m="dynamic")
        assert close(c, a, wide)
    assert len(weight_product._kernels) == 1
    empty = tilewright.weight_only_mm(torch.empty(2, 0, K, dtype=torch.bfloat16), b, scales)
    assert empty.shape == (2, 0, N)


def test_weights_without_scales_are_multiplied_as_they_are():
    (b, _, _), _ = drawn("int8", K)
    a = torch.randn(4, K, dtype=torch.float16)
    assert close(tilewright.weight_only_mm(a, b, out_dtype="f32"), a, b.double(), digits=0)


ROWS = {"a": torch.zeros(2, K).bfloat16(), "b": torch.zeros(N, K // 2, dtype=torch.uint8)}
ROWS["scales"] = torch.zeros(N, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": torch.zeros(2, 64).bfloat16()}, "a must be [..., m, 128], got [2, 64]"),
        (
            {"b": torch.zeros(N, K).bfloat16()},
            "b must be int8, float8_e4m3fn, float8_e5m2, or uint8 of two s4 or u4, got "
            "torch.bfloat16 as none",
        ),
        ({"b_dtype": "s8"}, "got torch.uint8 as s8"),
        ({"b": ROWS["b"].T}, "b must be a contiguous matrix, got [64, 40] with strides [1, 64]"),
        (
            {"scales": torch.zeros(N, 3)},
            "scales must be [40, k / group_size] for groups of any size, got [40, 3]",
        ),
        ({"group_size": 64}, "scales must be [40, 2] for groups of 64, got [40, 4]"),
        (
            {"scales": torch.zeros(N, 4).double()},
            "scales must be bfloat16, float16 or float32, got torch.float64",
        ),
        (
            {"zeros": torch.zeros(N, 4)},
            "zeros must be uint8 [40, 4], as scales, got torch.float32 [40, 4]",
        ),
        ({"scales": None, "group_size": 32}, "group_size and zeros must come with scales"),
        ({"m": "any"}, "m must be None or \"dynamic\", got 'any'"),
        (
            {"m": "dynamic", "epilogue": torch.add, "operands": (torch.zeros(2, N),)},
            "operands must be one number or one for each column where m is dynamic, got [2, 40]",
        ),
        ({"scales": torch.zeros(N, 16)}, "group_size must be 32, 64, 128 or all 128 of K, got 8"),
        ({"a": torch.zeros(2, K)}, "a must be bfloat16 or float16, got torch.float32"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    given = {**ROWS, **changes}
    with pytest.raises(CompileError) as caught:
        tilewright.weight_only_mm(given.pop("a"), given.pop("b"), given.pop("scales"), **given)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["int4", "uint4", "e4m3"])
def test_a_layer_is_the_linear_one_of_its_rounded_weights(kind):
    torch.manual_seed(3)
    linear = torch.nn.Linear(K, N, dtype=torch.bfloat16)
    layer = WeightOnlyLinear.from_linear(linear, kind, 64)
    x = torch.randn(2, 3, K, dtype=torch.bfloat16)
    with torch.no_grad():
        result = layer(x)
    exact = x.double() @ layer.dequantized().double().T + linear.bias.double()
    torch.testing.assert_close(result.double(), exact, rtol=2.0**-8, atol=1e-4)
    steps = {"int4": 7, "uint4": 7, "int8": 127, "e4m3": 16, "e5m2": 8}[kind]
    bound = linear.weight.abs().max().item() / steps * 0.6
    assert (layer.dequantized() - linear.weight.float()).abs().max().item() < bound
    again = WeightOnlyLinear.from_linear(torch.nn.Linear(K, N, dtype=torch.bfloat16), kind, 64)
    again.load_state_dict(layer.state_dict())
    with torch.no_grad():
        assert torch.equal(again(x), result)


def test_a_layer_has_gradients_of_its_input_and_its_bias():
    torch.manual_seed(4)
    layer = WeightOnlyLinear.from_linear(torch.nn.Linear(K, N, dtype=torch.bfloat16), "int4")
    x = torch.randn(3, K, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(3, N)
    (layer(x).float() * weight).sum().backward()
    wanted = weight.bfloat16().double() @ layer.dequantized().double()
    torch.testing.assert_close(x.grad.double(), wanted, rtol=2.0**-6, atol=2e-2)
    torch.testing.assert_close(
        layer.bias.grad.double(), weight.double().sum(0), rtol=1e-2, atol=2e-2
    )


def test_torch_compiles_a_layer_without_a_break():
    layer = WeightOnlyLinear.from_linear(torch.nn.Linear(K, N, dtype=torch.bfloat16), "uint4", 32)
    x = torch.randn(2, K, dtype=torch.bfloat16)
    with torch.no_grad():
        assert torch.equal(torch.compile(layer, fullgraph=True, backend="aot_eager")(x), layer(x))


def test_a_model_gets_narrow_weights_where_it_is_asked():
    model = torch.nn.Sequential(
        torch.nn.Linear(K, 64), torch.nn.Sequential(torch.nn.Linear(64, 8)), torch.nn.Linear(8, 2)
    )
    quantize(model, "int8", None, only=lambda name, _: name != "2")
    kinds = [type(each).__name__ for each in (model[0], model[1][0], model[2])]
    assert kinds == ["WeightOnlyLinear", "WeightOnlyLinear", "Linear"]
    assert model[0].scales.shape == (64, 1)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dtype": "int3"}, "dtype must be one of int4, uint4, int8, e4m3, e5m2, got 'int3'"),
        ({"group": 48}, "K of 128 must be whole groups of 48; pad K"),
    ],
)
def test_weights_that_cannot_be_rounded_are_refused(how, message):
    with pytest.raises(CompileError) as caught:
        quantize_weights(torch.zeros(4, K), **how)
    assert message in str(caught.value)


def test_only_weights_of_4_bits_lie_in_pairs():
    assert quantize_weights(torch.ones(4, 15), "int8", 3)[1].shape == (4, 5)
    with pytest.raises(CompileError, match="K of 15 must be whole groups of 3; pad K"):
        quantize_weights(torch.ones(4, 15), "int4", 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", ["int4", "uint4", "int8", "e4m3", "e5m2"])
def test_small_weights_keep_a_scale_that_is_not_0(kind, dtype):
    weight = torch.randn(4, K, dtype=dtype)
    weight[1], weight[2] = 0, weight[2] * 2**-18
    layer = WeightOnlyLinear(*quantize_weights(weight, kind, 32), dtype=kind)
    error = (layer.dequantized() - weight.float()).abs().amax(1)
    largest = weight.float().abs().amax(1)
    assert (error[:2] <= 0.1 * largest[:2]).all()
    assert error[2] < 0.5 * largest[2]


@pytest.mark.parametrize("gradients", [True, False])
def test_a_layer_takes_what_torchs_linear_takes_and_says_what_not(gradients):
    layer = WeightOnlyLinear.from_linear(torch.nn.Linear(K, N, dtype=torch.bfloat16), "int4", 32)
    transposed = torch.randn(8, 3, K).bfloat16().transpose(0, 1)
    wide, bias = layer.dequantized().double(), layer.bias.detach().double()
    with torch.set_grad_enabled(gradients):
        found = layer(transposed).detach()
        assert_close(found.double(), transposed.double() @ wide.T + bias, rtol=2e-2, atol=2e-2)
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(transposed.float()).detach().equal(found)
        for given in (transposed.float(), transposed[..., 1:]):
            with pytest.raises(CompileError, match=rf"input must be \[..., {K}\] of bfloat16 or"):
                layer(given)


def test_of_layers_of_which_one_is_refused_none_is_changed():
    first, last = torch.nn.Linear(K, 64), torch.nn.Linear(100, 64)
    model = torch.nn.ModuleList([first, last, torch.nn.ModuleList([first])])
    with pytest.raises(CompileError, match=r"quantize: 1: .* whole groups of 32; .* by only="):
        quantize(model, "int4", 32)
    assert list(model[:2]) == [first, last]
    quantize(model.eval(), "int4", 32, only=lambda name, module: module is not last)
    assert type(model[0]) is WeightOnlyLinear and model[2][0] is model[0] and model[1] is last
    assert not model[0].training
    for root in (first, {}):
        with pytest.raises(TypeError, match="with linear layers in it, got"):
            quantize(root)
