"""`tilewright.matmul` and `compile_module` of stacks of matrices, beside torch's own."""

import pytest
import torch

from tilewright import compile_module, matmul
from tilewright.compiler.calls.kernels import lookup
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
    tensors = list(lookup._kernels.values())[-1].manifest["tensors"]
    assert [each["shape"] for each in tensors[:2]] == shapes


LEADING = [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (1, 1), (2, 1, 3), (0,), (2, 0)]


@pytest.mark.sweep(2)
@pytest.mark.array(1, a=LEADING, b=[each for each in LEADING if each], how=["plain", "function"])
def test_dims_before_the_matrices_broadcast_as_torchs_do(a, b, how):
    a, b = integers(*a, 5, 24), integers(*b, 8, 24)
    try:
        expected = (a.double() @ b.double().mT).bfloat16()
    except RuntimeError:
        with pytest.raises(CompileError, match="must be the same, or 1 or missing in one, got"):
            matmul(a, b)
        return
    options = {"epilogue": torch.relu} if how == "function" else {}
    expected = expected.relu() if options else expected
    found, out = matmul(a, b, **options), torch.full_like(expected, torch.nan)
    assert found.shape == expected.shape and found.equal(expected)
    assert matmul(a, b, out=out, **options) is out and out.equal(expected)
    if not options:
        as_numpy = (each.float().numpy() for each in (a, b))
        assert (matmul(*as_numpy, precision="ieee") == expected.float().numpy()).all()


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "options", [{}, {"batch": "dynamic"}, {"batch": "dynamic", "m": "dynamic"}]
)
def test_heads_of_several_texts_are_copied_to_a_stack(options):
    """[texts, heads, rows, k], as attention transposes them."""
    q, k = (integers(2, rows, 4, 16).transpose(1, 2) for rows in (24, 20))
    assert matmul(q, k, **options).equal((q.double() @ k.double().mT).bfloat16())


def test_operands_that_are_broadcast_have_gradients():
    draw = {"generator": GENERATOR, "dtype": torch.float64}
    a = torch.randn(2, 1, 2, 3, **draw).requires_grad_()
    b = torch.randn(2, 2, 3, **draw).requires_grad_()
    assert torch.autograd.gradcheck(matmul, (a, b), fast_mode=True)


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
            (2, 24, 40),
            "error: matmul: the dims of a and b before their matrices must be the same, or 1 or "
            "missing in one, got [2, 3] and [2]; reshape one of them",
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
