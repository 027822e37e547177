"""`matmul` by kernels for any batch: how many are compiled, and that torch's symbolic batch gets
one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tilewright import matmul
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError

M, N, K = 24, 40, 48
ANY = {"batch": "dynamic", "target": "sm_90a"}


def two_kernels(spec: MatmulSpec, _target: str) -> list[Bucket]:
    """One for up to 2 matrices and for 5, and one for those between and for more."""
    passes = "tma-insertion,swizzle-selection"
    few, more = (replace(spec, batch=batch) for batch in (1, 3))
    return [
        Bucket(few, f"tiling{{tile=64x16x16}},{passes}", ((1, 2), (5, 5))),
        Bucket(more, f"tiling{{tile=64x32x16}},{passes}", ((3, 4), (6, ROWS_MOST))),
    ]


def operands(*batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(sum(batch))
    a, b = (torch.randn(*batch, rows, K, generator=generator) for rows in (M, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c, a, b, epilogue=lambda sums: sums) -> bool:
    sums = np.einsum("...mk,...nk->...mn", *(each.detach().double().numpy() for each in (a, b)))
    wanted, actual = epilogue(sums), c.detach().double().numpy()
    return actual.shape == wanted.shape and bool(
        (np.abs(actual - wanted) <= 2**-7 * np.abs(wanted) + 1e-3).all()
    )


def test_stacks_of_one_range_share_a_kernel(compiled):
    for batch in ((2,), (1,), (0,), (5,), (2, 1), (1, 1, 1), (2,)):
        a, b = operands(*batch)
        assert is_product(matmul(a, b, **ANY), a, b)
    assert [(spec.batch, spec.dynamic_batch) for spec in compiled] == [(1, True)]
    for batch in ((3,), (2, 2), (7,)):
        a, b = operands(*batch)
        assert is_product(matmul(a, b, **ANY), a, b)
    assert [spec.batch for spec in compiled] == [1, 3]


def test_other_strides_of_matrices_are_other_kernels(compiled):
    a, b = operands(4)
    for rows in (a[::2], a[1:3], a[::2]):
        assert is_product(matmul(rows, b[:2], **ANY), rows, b[:2])
    assert [spec.stride_a for spec in compiled] == [2 * M * K, 0]
    transposed = b.mT.contiguous().mT
    out = torch.full((4, M, N), torch.nan, dtype=torch.bfloat16)
    assert matmul(a, transposed, out=out, **ANY) is out and is_product(out, a, transposed)


def test_all_matrices_may_share_a(compiled):
    for batch in (2, 1, 5):
        a, b = operands(batch)
        assert is_product(matmul(a[0], b, **ANY), a[:1].expand(batch, -1, -1), b)
    assert [(spec.batch, spec.a_stacked) for spec in compiled] == [(1, False)]


@pytest.mark.slow
def test_a_graph_of_a_symbolic_batch_takes_one_kernel(compiled):
    product = torch.compile(lambda a, b: matmul(a, b, target="sm_90a"), backend="aot_eager")
    for batch in (2, 5):
        a, b = operands(batch)
        for each in (a, b):
            torch._dynamo.mark_dynamic(each, 0)
        assert is_product(product(a, b), a, b)
    assert [(spec.batch, spec.dynamic_batch) for spec in compiled] == [(1, True)]


def test_gradients_of_any_batch_are_of_any_batch(compiled):
    for batch in (2, 5):
        a, b = (each.requires_grad_() for each in operands(batch))
        matmul(a, b, **ANY).sum().backward()
        ones = torch.ones(batch, M, N)
        assert is_product(a.grad, ones, b.mT) and is_product(b.grad, ones.mT, a.mT)
    assert [spec.dynamic_batch for spec in compiled] == [True] * 3


def test_a_function_of_the_sums_has_operands_of_each_matrix(compiled):
    def scaled(acc, gain, bias, tile):
        return acc * gain + bias + tile

    for batch in ((2,), (5,), (2, 1)):
        a, b = operands(*batch)
        generator = torch.Generator().manual_seed(9)
        gain, bias, tile = (
            torch.randn(*shape, generator=generator)
            for shape in ((*batch, 1, 1), (M, 1), (*batch, M, N))
        )
        c = matmul(a, b, epilogue=scaled, operands=[gain, bias, tile], **ANY)
        own = (gain.double().numpy(), bias.double().numpy(), tile.double().numpy())
        assert is_product(c, a, b, lambda sums, own=own: scaled(sums, *own))
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda a, b: matmul(a, b, batch=3), OptionError, "batch must be 'dynamic', got 3"),
        (
            lambda a, b: matmul(a, b, m="any", batch="dynamic"),
            OptionError,
            "m must be 'dynamic', got 'any'; leave it out",
        ),
        (
            lambda a, b: matmul(a, b[0], batch="dynamic"),
            OptionError,
            "b must be a stack of matrices with batch='dynamic', got",
        ),
        (
            lambda a, b: matmul(a, b, batch="dynamic", out_dtype="mxfp8"),
            OptionError,
            "batch must be None for a result of mxfp8, got 'dynamic'",
        ),
        (
            lambda a, b: matmul(a.transpose(0, 1).contiguous().transpose(0, 1), b, batch="dynamic"),
            OptionError,
            "matrices of a must be stored one after the other where the batch is dynamic",
        ),
        (
            lambda a, b: matmul(a, b, batch="dynamic", epilogue=lambda acc: acc * acc.shape[0]),
            CompileError,
            "must not depend on the number of matrices with batch='dynamic'",
        ),
        (
            lambda a, b: matmul(a[0], b, batch="dynamic", out=torch.zeros(4, N, M).bfloat16().mT),
            OptionError,
            "out must be row-major with batch='dynamic' where all share a, got column-major",
        ),
        (lambda a, b: matmul(a, b, m="stack"), OptionError, "m must be 'dynamic', got 'stack'"),
    ],
)
def test_what_no_kernel_of_any_batch_takes_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call(*operands(4))
