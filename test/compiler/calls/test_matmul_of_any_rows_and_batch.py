"""`matmul` by kernels for any M and any batch: how many are compiled, and that torch's symbols get
one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels import row_kernels
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime.errors import CopyWarning
from tilewright.runtime.operands import copies

N, K = 40, 48
ANY = {"m": "dynamic", "batch": "dynamic", "target": "sm_90a"}


def two_kernels(spec: MatmulSpec, _target: str) -> list[Bucket]:
    """One for up to 16 rows, and one for more."""
    passes = "tma-insertion,swizzle-selection"
    few = replace(spec, m=16, least_m=1, most_m=16)
    more = replace(spec, m=64, least_m=17, most_m=ROWS_MOST)
    return [
        Bucket(few, f"tiling{{tile=64x16x16 swap=true}},{passes}", ((1, 16),)),
        Bucket(more, f"tiling{{tile=64x32x16}},{passes}", ((17, ROWS_MOST),)),
    ]


def kernels_in_bands(spec: MatmulSpec, _target: str) -> list[Bucket]:
    """Those two, of which the first is for any rows of three matrices and more."""
    first, second = two_kernels(spec, "")
    many = replace(first.spec, m=64, most_m=ROWS_MOST)
    passes = first.pipeline.replace(" swap=true", "")
    return [
        Bucket(many, passes, ((1, 16, 1, 2), (1, ROWS_MOST, 3, ROWS_MOST))),
        Bucket(second.spec, second.pipeline, ((17, ROWS_MOST, 1, 2),)),
    ]


def operands(*sizes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The last size is that of the rows."""
    generator = torch.Generator().manual_seed(sum(sizes))
    *batch, m = sizes
    a, b = (torch.randn(*batch, rows, K, generator=generator) for rows in (m, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c, a, b, epilogue=lambda sums: sums) -> bool:
    sums = np.einsum("...mk,...nk->...mn", *(each.detach().double().numpy() for each in (a, b)))
    wanted, actual = epilogue(sums), c.detach().double().numpy()
    return actual.shape == wanted.shape and bool(
        (np.abs(actual - wanted) <= 2**-7 * np.abs(wanted) + 1e-3).all()
    )


def test_stacks_of_one_range_of_rows_share_a_kernel(compiled):
    for sizes in ((2, 7), (1, 16), (0, 7), (3, 0), (5, 1), (2, 2, 9)):
        a, b = operands(*sizes)
        assert is_product(matmul(a, b, **ANY), a, b)
    assert [(spec.most_m, spec.dynamic_m, spec.dynamic_batch) for spec in compiled] == [
        (16, True, True)
    ]
    for sizes in ((3, 17), (1, 70), (7, 33)):
        a, b = operands(*sizes)
        out = torch.full((*sizes, N), torch.nan, dtype=torch.bfloat16)
        assert matmul(a, b, out=out, **ANY) is out and is_product(out, a, b)
    assert [spec.least_m for spec in compiled] == [1, 17]


@pytest.mark.parametrize("shared", [False, True])
def test_bands_of_matrices_have_kernels_of_their_own(compiled, monkeypatch, shared):
    """Also where A is no stack, and B says how many matrices there are."""
    monkeypatch.setattr(row_kernels, "kept_buckets", kernels_in_bands)
    for number, sizes in enumerate(((2, 16), (3, 17), (3, 5), (2, 17), (1, 18))):
        a, b = operands(*sizes)
        given = a[0] if shared else a
        assert is_product(matmul(given, b, **ANY), given.expand(*sizes, K), b)
        assert [spec.least_m for spec in compiled] == [1, 17][: 1 + (number > 2)]


def test_all_matrices_may_share_a_and_rows_may_have_gaps(compiled):
    a, b = operands(3, 20)
    assert is_product(matmul(a[0], b, **ANY), a[:1].expand(3, 20, K), b)
    wide = torch.zeros(3, 20, 64, dtype=torch.bfloat16)
    wide[..., :K] = a
    assert is_product(matmul(wide[..., :K], b, **ANY), a, b)
    assert [(spec.a_stacked, spec.lda) for spec in compiled] == [(False, 0), (True, 64)]


def test_matrices_that_do_not_lie_behind_one_another_are_copied(compiled, monkeypatch):
    monkeypatch.setattr(copies, "SILENT_BYTES", 2 * 70 * K)  # of smaller matrices than a user's
    a, b = operands(2, 71)
    with pytest.warns(
        CopyWarning, match="matrices of any number of rows must be stored one after the other"
    ):
        c = matmul(a[:, :70], b, **ANY)
    assert is_product(c, a[:, :70], b)
    assert len(compiled) == 1


def test_a_function_of_the_sums_has_operands_of_rows_and_matrices(compiled):
    def scaled(acc, gain, bias, tile, column):
        return acc * gain + bias + tile + column

    for sizes in ((2, 7), (5, 13), (2, 3, 4)):
        a, b = operands(*sizes)
        *batch, m = sizes
        generator = torch.Generator().manual_seed(9)
        shapes = ((*batch, 1, 1), (*batch, m, 1), (*batch, m, N), (*batch, 1, N))
        given = [torch.randn(*shape, generator=generator) for shape in shapes]
        c = matmul(a, b, epilogue=scaled, operands=given, **ANY)
        own = [each.double().numpy() for each in given]
        assert is_product(c, a, b, lambda sums, own=own: scaled(sums, *own))
    assert len(compiled) == 1


def test_gradients_have_kernels_for_any_rows_and_matrices(compiled):
    for sizes in ((2, 7), (3, 5)):
        a, b = (each.requires_grad_() for each in operands(*sizes))
        matmul(a, b, **ANY).sum().backward()
        ones = torch.ones(*sizes, N, dtype=torch.double)
        for given, wanted in ((a, ones @ b.double()), (b, ones.mT @ a.double())):
            assert (given.grad.double() - wanted).abs().max() <= 2**-7 * wanted.abs().max()
    assert [spec.dynamic_m for spec in compiled].count(True) == 2
    assert [(spec.k, spec.dynamic_m) for spec in compiled if not spec.dynamic_m] == [
        (7, False), (5, False)
    ]  # fmt: skip


@pytest.mark.parametrize("choice", [two_kernels, kernels_in_bands])
def test_torch_takes_them_for_symbols(compiled, monkeypatch, choice):
    monkeypatch.setattr(row_kernels, "kept_buckets", choice)

    @torch.compile(dynamic=True, backend="aot_eager")
    def product(a, b):
        return matmul(a, b, target="sm_90a") * 2

    weight = torch.randn(6, N, K).bfloat16()
    for sizes in ((2, 7), (3, 9), (6, 16)):
        a = operands(*sizes)[0]
        b = weight[: sizes[0]].clone()
        torch._dynamo.mark_static(b, 1)
        torch._dynamo.mark_static(b, 2)
        torch._dynamo.mark_static(a, 2)
        assert is_product(product(a, b), a, b, lambda sums: 2 * sums)
    assert {(spec.dynamic_m, spec.dynamic_batch) for spec in compiled} == {(True, True)}


OUT = torch.empty(3, N, 8).half().mT.numpy()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda a, b: matmul(a, b, m="dynamic"),
            OptionError,
            "a dynamic m must come with batch = 0, got 3",
        ),
        (
            lambda a, b: matmul(*(each.half().numpy() for each in (a, b)), out=OUT, **ANY),
            OptionError,
            "out must be row-major with m='dynamic', or a torch tensor, to which rows are copied",
        ),
        (
            lambda a, b: matmul(a, b, epilogue=lambda acc: acc * acc.shape[1], **ANY),
            CompileError,
            "must not depend on the numbers of rows and matrices that are dynamic",
        ),
    ],
)
def test_what_no_such_kernel_computes_is_refused(compiled, call, error, said):
    with pytest.raises(error, match=said):
        call(*operands(3, 8))
    assert not compiled
