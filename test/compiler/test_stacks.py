"""`tilewright.matmul` and `compile_module` of stacks of matrices, beside torch's own."""

import pytest
import torch

from tilewright import compile_module, matmul
from tilewright.compiler.calls import kernels
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(31)


def integers(*shape, dtype=torch.bfloat16):
    """Values whose products and sums every order of additions gets exactly."""
    return torch.randint(-3, 4, shape, generator=GENERATOR).to(dtype)


@pytest.mark.parametrize(
    ("a", "b", "shapes"),
    [
        ((3, 40, 72), (3, 24, 72), [[3, 40, 72], [3, 24, 72]]),
        ((5, 40), (2, 3, 24, 40), [[5, 40], [6, 24, 40]]),
        ((2, 3, 8, 40), (1, 1, 24, 40), [[48, 40], [24, 40]]),
    ],
)
def test_stacks_are_multiplied_matrix_by_matrix(a, b, shapes):
    a, b = integers(*a), integers(*b)
    assert matmul(a, b, out_dtype="f32").equal(a.float() @ b.float().mT)
    tensors = list(kernels._kernels.values())[-1].manifest["tensors"]
    assert [each["shape"] for each in tensors[:2]] == shapes


def test_stacks_give_gradients_and_take_out():
    a, b = (integers(*s, dtype=torch.float32).requires_grad_() for s in ((16, 24), (3, 8, 24)))
    matmul(a, b).sum().backward()
    mine, others = (a, b), [each.detach().requires_grad_() for each in (a, b)]
    (others[0] @ others[1].mT).sum().backward()
    assert all(x.grad.equal(y.grad) for x, y in zip(mine, others, strict=True))
    out = torch.full((3, 16, 8), torch.nan)
    assert matmul(a.detach(), b.detach(), out=out) is out
    assert out.equal(a.detach() @ b.detach().mT)


@pytest.mark.parametrize(("a", "b"), [((0, 4, 8), (0, 8, 8)), ((3, 4, 0), (3, 8, 0))])
def test_stacks_of_nothing_give_what_torch_gives(a, b):
    a, b = integers(*a), integers(*b)
    assert matmul(a, b).equal(a @ b.mT)


class Added(torch.nn.Module):
    def forward(self, c, a, b):
        return torch.relu(torch.baddbmm(c, a, b))


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("dtype", "target"), [(torch.bfloat16, "sm_100a"), (torch.float32, "sm_90a")]
)
def test_baddbmm_is_one_kernel(dtype, target):
    """Of f32 the MMA reads K-major operands only, so that b is taken transposed."""
    c, a, b = (integers(*s, dtype=dtype) for s in ((3, 8, 24), (3, 8, 16), (3, 16, 24)))
    with torch.no_grad():
        assert compile_module(Added(), c, a, b, target=target)(c, a, b).equal(Added()(c, a, b))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            (2, 3, 8, 40),
            (3, 24, 40),
            "error: matmul: the dims of a and b before their matrices must be the same, or those "
            "of one be 1, got [2, 3] and [3]; expand them and pass contiguous copies",
        ),
        (
            (3, 8, 40),
            (3, 24, 48),
            "error: matmul: stacks must be [batch, m, k] and [batch, n, k], or one of them a "
            "matrix, got [3, 8, 40] and [3, 24, 48]",
        ),
    ],
)
def test_stacks_that_do_not_fit_are_refused(a, b, message):
    with pytest.raises(CompileError) as refused:
        matmul(integers(*a), integers(*b))
    assert str(refused.value) == message
