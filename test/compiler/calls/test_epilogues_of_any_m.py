"""Functions of the sums by kernels for any M: what they read, further outputs, two products."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from tilewright import matmul
from tilewright.compiler.calls.dense import fused_rows
from tilewright.compiler.calls.kernels.found_kernels import FoundKernels
from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError

N, K = 40, 48


def two_kernels(spec: MatmulSpec, target: str) -> list[Bucket]:
    """One for up to 16 rows, and one for more."""
    if spec.dynamic_k:
        return [Bucket(spec, choose_pipeline(spec, target))]
    few = replace(spec, m=16, least_m=1, most_m=16)
    more = replace(spec, m=MANY_ROWS, least_m=17, most_m=ROWS_MOST)
    return [
        Bucket(each, choose_pipeline(each, target), ((each.least_m, each.most_m),))
        for each in (few, more)
    ]


def drawn(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def is_close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    bound = 2**-7 * wanted.abs() + 2e-2
    return found.shape == wanted.shape and bool(((found.double() - wanted).abs() <= bound).all())


def layer(acc, bias, residual, factor):
    return torch.relu(acc + bias) + residual * factor


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_new_number_of_rows_compiles_nothing(compiled, target, monkeypatch):
    monkeypatch.setattr(fused_rows, "_found", FoundKernels())
    weight, bias = drawn(N, K), drawn(N, dtype=torch.float32)
    for m in (5, 3, 16, 0, 70, 17, N):
        a, residual, factor = drawn(m, K), drawn(m, N), drawn(m, 1, dtype=torch.float32)
        beside = [bias, residual, factor]
        c = matmul(a, weight, m="dynamic", target=target, epilogue=layer, operands=beside)
        sums = a.double() @ weight.double().T
        assert is_close(c, layer(sums, *(each.double() for each in beside)))
    assert len(compiled) == 2
    found = [*fused_rows._found.values()]
    assert len(found) == 2  # one row may read what is broadcast, N rows what is not
    assert all(any(layer is kept for kept in each.kept) for each in found)  # whose id is the key


def test_one_row_reads_what_is_broadcast_and_what_is_its_own(compiled):
    """[1, N] beside one row may be either; beside more rows it is told by its size."""
    weight = drawn(N, K)
    for m in (1, 4):
        for rows in {1, m}:
            a, beside = drawn(m, K), drawn(rows, N)
            c = matmul(a, weight, m="dynamic", epilogue=torch.add, operands=[beside])
            assert is_close(c, a.double() @ weight.double().T + beside.double())
    assert len(compiled) == 2  # of broadcast rows, and of rows


def test_rows_may_have_several_dims_and_outputs_be_several(compiled):
    weight = drawn(N, K)

    def both(acc, beside):
        return acc + beside, acc

    for shape in ((2, 3), (3, 2), (1, 6)):
        a, beside = drawn(*shape, K), drawn(*shape, N, dtype=torch.float32)
        out = torch.full((*shape, N), torch.nan).bfloat16(), torch.full((*shape, N), torch.nan)
        found = matmul(
            a, weight, m="dynamic", epilogue=both, operands=[beside], out=out, target="sm_90a"
        )
        sums = a.double() @ weight.double().T
        assert found is out
        assert is_close(out[0], sums + beside.double()) and is_close(out[1], sums)
    assert len(compiled) == 1


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_two_products_share_any_m(compiled, target):
    gate, up = drawn(N, K), drawn(N, K).flip(0)
    for m in (2, 9):
        a = drawn(m, K)
        c = matmul(
            a,
            (gate, up),
            m="dynamic",
            target=target,
            epilogue=lambda gate, up: functional.silu(gate) * up,
        )
        gated, sums = (a.double() @ each.double().T for each in (gate, up))
        assert is_close(c, functional.silu(gated) * sums)
    assert len(compiled) == 1


def test_scales_of_rows_and_columns_share_any_m(compiled):
    """As scaled_mm has them: 8-bit floats with a factor for each row of a and each row of b."""
    weight, columns = drawn(N, K, dtype=torch.float8_e4m3fn), drawn(N, dtype=torch.float32)
    for m in (3, 8):
        a, rows = drawn(m, K, dtype=torch.float8_e4m3fn), drawn(m, 1, dtype=torch.float32)
        c = matmul(
            a,
            weight,
            m="dynamic",
            epilogue=lambda acc, rows, columns: acc * rows * columns,
            operands=[rows, columns],
        )
        wanted = a.double() @ weight.double().T * rows.double() * columns.double()
        assert is_close(c, wanted)
    assert len(compiled) == 1


def test_gradients_are_those_of_two_steps(compiled):
    weight, a = drawn(N, K).requires_grad_(), drawn(6, K)
    matmul(a, weight, m="dynamic", target="sm_90a", epilogue=torch.relu).sum().backward()
    sums = a.double() @ weight.double().T
    assert is_close(weight.grad, (sums > 0).double().T @ a.double())


def reduced(acc, bias):
    z = acc + bias
    return z, z.sum(-1), z.abs().amax(-1, keepdim=True), z.abs().max()


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_rows_are_reduced_as_they_are_said(compiled, target):
    """Neighbours in a row by the kernel of its bucket, then what that gives of each row, or all."""
    weight, bias = drawn(N, K), drawn(N)
    for rows in ((5,), (1,), (2, 9), (33,)):
        a = drawn(*rows, K)
        found = matmul(a, weight, m="dynamic", target=target, epilogue=reduced, operands=[bias])
        z = a.double() @ weight.double().T + bias.double()
        wanted = z, z.sum(-1), z.abs().amax(-1, keepdim=True), z.abs().max()
        assert all(map(is_close, found, wanted))
    assert len(compiled) == 2


def test_reductions_of_any_rows_take_no_out():
    out = torch.zeros(4, N, dtype=torch.bfloat16), torch.zeros(4)
    with pytest.raises(OptionError, match="out must be None where a result is a reduction"):
        matmul(drawn(4, K), drawn(N, K), m="dynamic", out=out, epilogue=lambda x: (x, x.sum(-1)))


@pytest.mark.parametrize(
    ("function", "beside", "said"),
    [
        (lambda acc: acc * acc.shape[0], (), "must not depend on the number of rows"),
        (lambda acc: acc * (2 if acc.shape[0] > 5000 else 1), (), "must not depend on the number"),
        (lambda acc: acc + acc.numel() // 10**6, (), "must not depend on the number of rows"),
        (lambda acc: acc * (len(acc) in (7, 9)), (), "must not depend on the number of rows"),
        (lambda acc: (acc, acc.sum(0)), (), "must not depend|reduce outside"),
        (lambda acc, other: acc + other, [(5, N)], "broadcast a dimension of length 5"),
    ],
)
def test_what_depends_on_the_rows_is_refused(compiled, function, beside, said):
    operands = [drawn(*shape) for shape in beside]
    with pytest.raises((CompileError, OptionError), match=said):
        matmul(drawn(4, K), drawn(N, K), m="dynamic", epilogue=function, operands=operands)


def test_a_stack_of_b_is_refused():
    a, b = drawn(2, 4, K), drawn(2, N, K)
    with pytest.raises(OptionError, match="b must be a matrix with m='dynamic'"):
        matmul(a, b, m="dynamic", epilogue=torch.relu)


def test_out_of_another_shape_is_refused(compiled):
    out = torch.zeros(5, N, dtype=torch.bfloat16)
    with pytest.raises(OptionError, match=r"out must be \[4, 40\], got \[5, 40\]"):
        matmul(drawn(4, K), drawn(N, K), m="dynamic", epilogue=torch.relu, out=out)
