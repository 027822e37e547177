"""`matmul` by kernels for any M: how many are compiled, and that torch's symbolic M gets one."""

from dataclasses import replace

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels import lookup
from tilewright.compiler.calls.kernels.found_kernels import FoundKernels
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import OptionError

N, K = 56, 48


def two_kernels(spec: MatmulSpec, _target: str) -> list[Bucket]:
    """One for up to 16 and for 33 to 64 rows, and one for those between and for more."""
    passes = "tma-insertion,swizzle-selection"
    few = replace(spec, m=64, least_m=1, most_m=64)
    more = replace(spec, m=8192, least_m=17, most_m=ROWS_MOST)
    return [
        Bucket(few, f"tiling{{tile=64x16x16}},{passes}", ((1, 16), (33, 64))),
        Bucket(more, f"tiling{{tile=64x32x16}},{passes}", ((17, 32), (65, ROWS_MOST))),
    ]


def operands(m: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m)
    a, b = (torch.randn(rows, K, generator=generator) for rows in (m, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> bool:
    wanted = a.double() @ b.double().T
    return c.shape == wanted.shape and bool(
        ((c.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()
    )


def test_rows_of_one_range_share_a_kernel(compiled, monkeypatch):
    monkeypatch.setattr(lookup, "_kernels", FoundKernels())
    for m in (3, 9, 0, 16, 33, 64, 9, 1):
        a, b = operands(m)
        assert is_product(matmul(a, b, m="dynamic", target="sm_90a"), a, b)
    assert [(spec.least_m, spec.most_m, spec.dynamic_m) for spec in compiled] == [(1, 64, True)]
    a, b = operands(20)
    stacked = matmul(a.reshape(4, 5, K), b, m="dynamic", target="sm_90a")
    assert is_product(stacked.reshape(20, N), a, b)
    for m in (17, 32, 65, 70):
        a, b = operands(m)
        assert is_product(matmul(a, b, m="dynamic", target="sm_90a"), a, b)
    assert [(spec.least_m, spec.most_m) for spec in compiled] == [(1, 64), (17, ROWS_MOST)]
    assert len(lookup._kernels) == 1


class Linear(torch.nn.Module):
    """A weight of known sizes, as a model has it."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(operands(1)[1])

    def forward(self, a):
        return matmul(a, self.weight, target="sm_90a")


@pytest.mark.slow
def test_a_graph_of_a_symbolic_m_takes_one_kernel(compiled):
    module = Linear()
    graph = torch.compile(module, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        for m in (3, 7, 12):
            a, _ = operands(m)
            assert is_product(graph(a), a, module.weight)
    assert [(spec.m, spec.dynamic_m) for spec in compiled] == [(64, True)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"m": "any"}, "matmul: m must be 'dynamic', got 'any'"),
        ({"m": "dynamic", "out_dtype": "mxfp8"}, "m must be None for a result of mxfp8, got"),
    ],
)
def test_another_m_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        matmul(*operands(4), **options)


@pytest.mark.parametrize("function", [None, torch.relu])
def test_rows_that_no_kernel_reads_as_they_lie_are_copied_in_every_call(compiled, function):
    generator = torch.Generator().manual_seed(6)
    shapes = (6, K), (N, K), (6, 2 * K)
    drawn = (torch.randint(-3, 4, shape, generator=generator) for shape in shapes)
    contiguous, b, wide = (each.bfloat16() for each in drawn)
    lying = (
        contiguous,
        contiguous[:1].expand(6, -1),
        wide[:, ::2],
        wide.as_strided(contiguous.shape, (8, 1)),
    )
    for a in (*lying, *lying):  # before a kernel is known, and after
        c = matmul(a, b, m="dynamic", epilogue=function, out_dtype="f32")
        exact = a.double() @ b.double().T
        assert torch.equal(c.double(), exact if function is None else exact.relu())


@pytest.mark.usefixtures("fresh_cache")
def test_stacks_that_no_kernel_reads_as_they_lie_are_copied_in_every_call():
    b = torch.arange(4 * 8 * 16).remainder(7).reshape(4, 8, 16).bfloat16()
    whole = torch.arange(4 * 5 * 32).remainder(5).reshape(4, 5, 32).bfloat16()
    lying = whole[..., :16].contiguous(), whole[:1, :, :16].expand(4, 5, 16), whole[..., ::2]
    for a in lying:
        for right in (b, b[:1].expand(4, 8, 16)):
            c = matmul(a, right, batch="dynamic", out_dtype="f32")
            assert torch.equal(c.double(), torch.matmul(a.double(), right.double().mT))
