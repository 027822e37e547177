"""`matmul` by kernels for any M: how many are compiled, and that torch's symbolic M gets one."""

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls import kernel_cache
from tilewright.dialects.errors import OptionError

N, K = 56, 48


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The specs that the compiler is asked for; without ptxas, since the emulator runs PTX."""
    from tilewright.compiler import driver
    from tilewright.compiler.backend import Assembled
    from tilewright.compiler.calls import kernels
    from tilewright.compiler.schedule import buckets

    asked, compile_matmul = [], kernel_cache.compile_matmul

    def noted(spec, **options):
        asked.append(spec)
        return compile_matmul(spec, **options)

    nothing = Assembled(b"", 0, 0, 0, 0, 0, "")
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(driver, "assemble", lambda *_, **__: nothing)
    monkeypatch.setattr(kernel_cache, "compile_matmul", noted)
    kernel_cache.cached_bundle.cache_clear()
    monkeypatch.setattr(buckets, "STEPS", (16, 64))
    monkeypatch.setattr(buckets, "_serves", lambda *_: False)  # a kernel for each step
    monkeypatch.setattr(kernels, "_kernels", {})
    monkeypatch.setattr(kernels, "_seen", {})
    return asked


def operands(m: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m)
    a, b = (torch.randn(rows, K, generator=generator) for rows in (m, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> bool:
    wanted = a.double() @ b.double().T
    return c.shape == wanted.shape and bool(
        ((c.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()
    )


def test_rows_of_one_range_share_a_kernel(compiled):
    for m in (3, 9, 0, 16, 9, 1):
        a, b = operands(m)
        assert is_product(matmul(a, b, m="dynamic", target="sm_90a"), a, b)
    a, b = operands(20)
    stacked = matmul(a.reshape(4, 5, K), b, m="dynamic", target="sm_90a")
    assert is_product(stacked.reshape(20, N), a, b)
    rows = [(spec.least_m, spec.m, spec.most_m, spec.dynamic_m) for spec in compiled]
    assert rows == [(1, 16, 16, True), (17, 64, 64, True)]


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
    assert [(spec.m, spec.dynamic_m) for spec in compiled] == [(16, True)]


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


def test_a_column_major_operand_is_refused():
    a, b = operands(4)
    with pytest.raises(OptionError, match="a dynamic m must come with a_major = 'k'"):
        matmul(a.T.contiguous().T, b, m="dynamic")
