"""Products of groups and with narrow weights under torch.func and in forward mode, beside float64;
kernels that have no derivatives refuse them."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, jvp, vmap

import tilewright
from tilewright import compile_module, grouped_mm, weight_only_mm
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.nn import WeightOnlyLinear, quantize_weights
from tilewright.runtime.errors import LaunchError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(9)


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, generator=GENERATOR).to(dtype)


A, DA = random(2, 40, 32)
STACK, D_STACK = random(2, 3, 32, 16)
ENDS = torch.tensor([7, 7, 40], dtype=torch.int32)
PARTS = torch.tensor([0] * 7 + [2] * 33)
NUMBERS = torch.randint(0, 40, (40,), generator=GENERATOR, dtype=torch.int32)


def of_rows(a, b):
    """Each row by the matrix of its group, in float64."""
    return torch.einsum("mk,mkn->mn", a.double(), b.double()[PARTS])


def assert_close(found, expected):
    assert found.shape == expected.shape
    assert (found.double() - expected).norm() <= 2**-7 * expected.norm()


def groups(a, b, **how):
    return grouped_mm(a, b, offs=ENDS, **how)


def test_groups_of_rows_have_tangents():
    made, tangent = jvp(groups, (A, STACK), (DA, D_STACK))
    assert_close(made, of_rows(A, STACK))
    assert_close(tangent, of_rows(DA, STACK) + of_rows(A, D_STACK))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(A, DA)
        tangent = forward_ad.unpack_dual(groups(dual, STACK, epilogue=lambda acc: 3 * acc)).tangent
    assert_close(tangent, 3 * of_rows(DA, STACK))


def test_gathered_rows_and_groups_of_k_have_tangents():
    def gathered(a):
        return groups(a, STACK, rows=NUMBERS)

    tangent = jvp(gathered, (A,), (DA,))[1]
    assert_close(tangent, of_rows(DA[NUMBERS.long()], STACK))
    first, second, along = A.T, random(40, 16), random(40, 16)
    tangent = jvp(lambda b: groups(first, b), (second,), (along,))[1]
    parts = [first[:, :7] @ along[:7], torch.zeros(32, 16), first[:, 7:] @ along[7:]]
    assert_close(tangent, torch.stack([each.double() for each in parts]))


def test_functions_of_groups_have_gradients_of_any_order():
    """The sum of squares is quadratic in the rows: of each the gradient is 2 a·B·Bᵀ."""

    def squares(a):
        return groups(a, STACK, out_dtype="f32").square().sum()

    both = STACK.double() @ STACK.double().mT
    assert_close(grad(squares)(A), 2 * of_rows(A, both))
    assert_close(jvp(grad(squares), (A,), (DA,))[1], 2 * of_rows(DA, both))


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_batch_of_groups_is_multiplied_one_by_one():
    several = torch.stack([A, DA])
    assert_close(vmap(groups, (0, None))(several, STACK), torch.stack([
        of_rows(each, STACK) for each in several]))  # fmt: skip
    ends = torch.stack([ENDS, torch.tensor([7, 40, 40], dtype=torch.int32)])
    made = vmap(lambda offs: grouped_mm(A, STACK, offs=offs))(ends)
    exact = of_rows(A, STACK), torch.cat([A[:7].double() @ STACK[0].double(),
                                          A[7:].double() @ STACK[1].double()])  # fmt: skip
    assert_close(made, torch.stack(exact))
    per_sample = vmap(grad(lambda a: groups(a, STACK).float().sum()))(several)
    exact = of_rows(torch.ones(40, 16), STACK.mT)
    assert_close(per_sample, torch.stack([exact, exact]))


WEIGHT = random(16, 32)
X, DX = random(2, 40, 64)
CODES, SCALES, _ = quantize_weights(random(16, 64).float(), "int8", 32)
EXACT = (CODES.double().unflatten(1, (2, 32)) * SCALES.double()[..., None]).flatten(1)


def narrow(a, scales=SCALES):
    return weight_only_mm(a, CODES, scales)


@pytest.mark.filterwarnings("error::UserWarning")
def test_products_with_narrow_weights_are_transformed():
    made, tangent = jvp(narrow, (X,), (DX,))
    assert_close(made, X.double() @ EXACT.T)
    assert_close(tangent, DX.double() @ EXACT.T)
    assert_close(grad(lambda a: narrow(a).float().sum())(X), EXACT.sum(0).expand(40, 64))
    several = torch.stack([X, DX], 1)
    assert_close(vmap(narrow, 1)(several), several.double().transpose(0, 1) @ EXACT.T)
    both = torch.stack([SCALES, 2 * SCALES])
    made = vmap(lambda scales: narrow(X, scales))(both)
    assert_close(made, torch.stack([X.double() @ EXACT.T, 2 * X.double() @ EXACT.T]))
    with pytest.raises(OptionError, match="narrow weights, scales and zeros have no gradients"):
        jvp(lambda scales: narrow(X, scales), (SCALES,), (SCALES,))


def test_a_layer_with_narrow_weights_has_tangents_of_input_and_bias():
    layer = WeightOnlyLinear.from_linear(torch.nn.Linear(64, 16, dtype=torch.bfloat16), "int8", 32)
    bias, along = random(2, 16)

    def call(x, bias):
        return torch.func.functional_call(layer, {"bias": bias}, (x,))

    tangent = jvp(call, (X, bias), (DX, along))[1]
    exact = jvp(lambda x: call(x, bias), (X,), (DX,))[1]
    assert_close(tangent, exact.double() + along.double())
    assert_close(jvp(lambda b: call(X, b), (bias,), (along,))[1], along.double().expand(40, 16))


TRANSFORMS = {
    "forward": lambda call: jvp(call, (A,), (DA,)),
    "backward": lambda call: grad(lambda a: call(a).float().sum())(A),
    "batches": lambda call: vmap(call)(torch.stack([A, DA])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_kernels_without_derivatives_refuse_transforms(name, tmp_path):
    as_bundle(tilewright.compile(tilewright.MatmulSpec(40, 16, 32)), tmp_path / "kernel.zip")
    kernel = tilewright.load(tmp_path / "kernel.zip")
    with pytest.raises(
        LaunchError, match=r"kernel matmul_\w+: has no derivatives and no rules for"
    ):
        TRANSFORMS[name](lambda a: kernel(a, WEIGHT))
    fused = compile_module(torch.nn.Linear(32, 16, bias=False, dtype=torch.bfloat16), A)
    with (
        torch.no_grad(),
        pytest.raises(CompileError, match="a kernel has no tangents"),
    ):
        TRANSFORMS[name](fused)


def test_a_loaded_kernel_refuses_a_tangent_without_torch_func(tmp_path):
    """Warm as well, where it would launch without a look."""
    as_bundle(tilewright.compile(tilewright.MatmulSpec(40, 16, 32)), tmp_path / "kernel.zip")
    kernel = tilewright.load(tmp_path / "kernel.zip")
    for _ in range(2):
        with forward_ad.dual_level():
            with pytest.raises(LaunchError, match=r"kernel matmul_\w+: has no derivatives"):
                kernel(forward_ad.make_dual(A, DA), WEIGHT)
            assert kernel(A, WEIGHT).shape == (40, 16), "a level alone is no tangent"


def test_a_kernel_of_a_module_refuses_a_tangent_without_torch_func():
    fused = compile_module(torch.nn.Linear(32, 16, bias=False, dtype=torch.bfloat16), A)
    with torch.no_grad(), forward_ad.dual_level():
        with pytest.raises(CompileError, match="a kernel has no tangents"):
            fused(forward_ad.make_dual(A, DA))
        assert fused(A).shape == (40, 16), "a level alone is no tangent"
