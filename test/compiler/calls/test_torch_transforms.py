"""`matmul` under torch.func, in forward mode and under gradcheck, beside products in float64.

Matrices are square, so that few kernels serve all these tests.
"""

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, hessian, jvp, vmap

from tilewright import matmul
from tilewright.dialects.errors import OptionError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(5)


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, generator=GENERATOR).to(dtype)


A, DA = random(2, 32, 32)
B, DB = random(2, 32, 32)
STACK_A, STACK_B = torch.stack([A, DA]), torch.stack([B, DB])


def exact(a, b):
    return a.double() @ b.double().mT


def assert_close(found, expected):
    assert found.shape == expected.shape
    assert (found.double() - expected).norm() <= 2**-7 * expected.norm()


def test_forward_mode_gives_tangents_also_with_an_epilogue():
    with forward_ad.dual_level():
        a, b = forward_ad.make_dual(A, DA), forward_ad.make_dual(B, DB)
        both = forward_ad.unpack_dual(matmul(a, b)).tangent
        one = forward_ad.unpack_dual(matmul(A, b, epilogue=lambda acc: 2 * acc)).tangent
    assert_close(both, exact(DA, B) + exact(A, DB))
    assert_close(one, 2 * exact(A, DB))


CASES = {
    "rows": (lambda x: matmul(x, B), (0,), (STACK_A,), exact(STACK_A, B)),
    "columns": (lambda x: matmul(A, x), (0,), (STACK_B,), exact(A, STACK_B)),
    "both": (matmul, (0, 0), (STACK_A, STACK_B), exact(STACK_A, STACK_B)),
    "another dim": (
        matmul,
        (2, 1),
        (STACK_A.permute(1, 2, 0), STACK_B.permute(1, 0, 2)),
        exact(STACK_A, STACK_B),
    ),
    "rows of a stack": (
        lambda x: matmul(x, STACK_B),
        (0,),
        (STACK_A,),
        exact(STACK_A[:, None], STACK_B),
    ),
    "nest": (
        vmap(matmul, in_dims=(None, 0)),
        (0, None),
        (STACK_A, STACK_B),
        exact(STACK_A[:, None], STACK_B),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_vmap_multiplies_a_batch_by_one_kernel(case):
    function, dims, operands, expected = CASES[case]
    assert_close(vmap(function, in_dims=dims)(*operands), expected)


def test_derivatives_of_functions_of_a_product():
    gradient = grad(lambda x: matmul(x, B).float().square().sum())(A)
    assert_close(gradient, 2 * exact(A, B) @ B.double())
    assert_close(jvp(matmul, (A, B), (DA, DB))[1], exact(DA, B) + exact(A, DB))
    of_each = vmap(grad(lambda x, y: matmul(x, y).float().sum(), argnums=1))(STACK_A, STACK_B)
    assert_close(of_each, STACK_A.double().sum(1)[:, None].expand(2, 32, 32))


def test_second_derivatives_of_a_quadratic_are_those_of_its_matrix():
    x, y = random(2, 4, dtype=torch.float32), random(4, 4, dtype=torch.float32)
    found = hessian(lambda each: matmul(each, y).square().sum())(x).reshape(8, 8)
    expected = torch.kron(torch.eye(2).double(), 2 * y.double().T @ y.double())
    assert (found.double() - expected).norm() <= 2**-7 * expected.norm()


@pytest.mark.slow
def test_gradcheck_in_float64():
    a, b = (random(*shape, dtype=torch.float64).requires_grad_() for shape in ((2, 2), (3, 2)))
    checks = {"check_forward_ad": True, "check_batched_grad": True, "fast_mode": True}
    assert torch.autograd.gradcheck(matmul, (a, b), **checks)


def test_operands_of_8_bits_have_no_tangents():
    a = A.to(torch.float8_e4m3fn)
    with pytest.raises(OptionError, match="gradients must be of 16 or 32 bits"):
        jvp(lambda x: matmul(x, B.to(a.dtype)), (a,), (a,))
