"""`tilewright.matmul` of more than two dims, and of sizes that are 0, beside torch's."""

import ml_dtypes
import numpy as np
import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels import lookup
from tilewright.dialects.errors import CompileError
from tilewright.runtime.errors import CopyWarning, DeviceError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(29)


def integers(*shape, dtype=torch.bfloat16):
    """Values whose products and sums every order of additions gets exactly."""
    return torch.randint(-3, 4, shape, generator=GENERATOR).to(dtype)


def linear(a, b):
    return torch.nn.functional.linear(a.float(), b.float())


@pytest.mark.parametrize(("shape", "rows"), [((2, 3, 5, 40), 30), ((7, 1, 40), 7)])
def test_dims_before_the_rows_are_rows_of_one_matrix(shape, rows):
    a, b = integers(*shape), integers(24, 40)
    assert matmul(a, b, out_dtype="f32").equal(linear(a, b))
    assert list(lookup._kernels.values())[-1].manifest["spec"]["m"] == rows


def test_a_view_of_rows_that_step_evenly_gives_gradients_and_takes_out():
    a, b = integers(3, 4, 40).requires_grad_(), integers(24, 40).requires_grad_()
    matmul(a, b).sum().backward()
    wide = [each.detach().float().requires_grad_() for each in (a, b)]
    linear(*wide).sum().backward()
    assert all(
        each.grad.float().equal(other.grad) for each, other in zip((a, b), wide, strict=True)
    )
    out = torch.full((3, 4, 24), torch.nan)
    assert matmul(a.detach(), b.detach(), out=out, out_dtype="f32") is out
    assert out.equal(linear(a.detach(), b.detach()))


@pytest.mark.parametrize("options", [{}, {"m": "dynamic"}, {"epilogue": torch.relu}])
def test_rows_that_do_not_step_evenly_are_copied(options):
    a, b = integers(3, 4, 40).transpose(0, 1), integers(24, 40)
    expected = linear(a, b)
    expected = expected.relu() if "epilogue" in options else expected
    assert matmul(a, b, out_dtype="f32", **options).equal(expected)
    assert matmul(a.float().numpy(), b.float().numpy(), precision="ieee").shape == (4, 3, 24)


def test_a_large_copy_of_rows_is_told_of():
    a = torch.zeros(6, 2048, 64, dtype=torch.bfloat16).transpose(0, 1)
    with pytest.warns(
        CopyWarning, match=r"matmul: a \[2048x6x64\] is copied in each such call, 2 "
    ):
        matmul(a, integers(8, 64))


def test_numpy_arrays_have_leading_dims_too():
    a, b = integers(2, 5, 40), integers(24, 40)
    as_numpy = [each.float().numpy().astype(ml_dtypes.bfloat16) for each in (a, b)]
    assert np.array_equal(matmul(*as_numpy, out_dtype="f32"), linear(a, b).numpy())


def test_torch_compile_takes_leading_dims():
    compiled = torch.compile(lambda x, w: matmul(x, w, out_dtype="f32") + 1, backend="aot_eager")
    a, b = integers(2, 5, 40), integers(24, 40)
    assert compiled(a, b).equal(linear(a, b) + 1)
    assert torch.ops.tilewright.matmul(a, b, "f32", "", "", "").equal(linear(a, b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0, 40), (24, 40)),
        ((5, 40), (0, 40)),
        ((5, 0), (24, 0)),
        ((0, 0), (0, 0)),
        ((2, 0, 40), (8, 40)),
        ((2, 3, 0), (8, 0)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_sizes_of_0_give_what_torch_gives_and_launch_nothing(a, b, dtype, monkeypatch):
    monkeypatch.setattr(lookup, "Kernel", None)
    a, b = torch.ones(a, dtype=dtype), torch.ones(b, dtype=dtype)
    expected = torch.nn.functional.linear(a, b)
    found = matmul(a, b)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.equal(expected)
    out = torch.full_like(expected, torch.nan)
    assert matmul(a, b, out=out) is out
    assert out.equal(expected)
    if dtype == torch.float32:
        assert np.array_equal(matmul(a.numpy(), b.numpy()), expected.numpy())


def test_gradients_of_nothing_are_those_of_torch():
    for shapes in (((5, 0), (24, 0)), ((0, 40), (24, 40))):
        mine, others = ([torch.ones(s, requires_grad=True) for s in shapes] for _ in range(2))
        matmul(*mine).sum().backward()
        torch.nn.functional.linear(*others).sum().backward()
        assert all(x.grad.equal(y.grad) for x, y in zip(mine, others, strict=True))


@pytest.mark.parametrize(
    ("a", "b", "out", "message"),
    [
        (
            integers(3, 4, 40),
            integers(24, 40),
            torch.empty(4, 3, 24, dtype=torch.bfloat16).transpose(0, 1),
            "error: matmul: the dims of out before its last must step evenly, so that they are rows"
            " of one matrix, got strides [24, 72, 1] for [3, 4, 24]; copy the result there",
        ),
        (
            integers(3, 4, 40),
            integers(24, 40),
            torch.empty(4, 3, 24, dtype=torch.bfloat16),
            "error: matmul: out must be [3, 4, 24], got [4, 3, 24]",
        ),
        (
            integers(3, 0),
            integers(24, 1),
            None,
            "error: matmul: a and b must be [m, k] and [n, k], got [3, 0] and [24, 1]; "
            "pass b.T for a b of [k, n]",
        ),
        (
            integers(3, 0),
            integers(24, 0),
            torch.empty(24, 3, dtype=torch.bfloat16),
            "tensor 'c': shape must be [3, 24], got [24, 3]",
        ),
        (
            integers(3, 0),
            integers(24, 0),
            torch.empty(3, 24),
            "tensor 'c': must be torch.bfloat16 or numpy bfloat16 or uint16 or int16, "
            "got torch.float32",
        ),
    ],
)
def test_what_has_no_such_dims_is_refused(a, b, out, message):
    with pytest.raises((CompileError, DeviceError)) as refused:
        matmul(a, b, out=out)
    assert str(refused.value) == message
