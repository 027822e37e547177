"""`matmul` by kernels for any M of an A, or into a C, that has M contiguous."""

from dataclasses import replace

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import OptionError

N, K, UNIT = 56, 48, 8
TMA = "tma-insertion,swizzle-selection"


def two_kernels(spec: MatmulSpec, _target: str) -> list[Bucket]:
    """Of an A with M contiguous one for multiples of 8, and one for others."""
    any_rows = Bucket(replace(spec, m=8192), f"tiling{{tile=64x32x16}},{TMA}")
    if spec.a_major == "k":
        return [any_rows]
    own = replace(spec, m=8192, least_m=1, most_m=ROWS_MOST, multiple_m=UNIT)
    return [Bucket(own, f"tiling{{tile=64x16x16}},{TMA}"), any_rows]


@pytest.mark.parametrize("function", [None, torch.relu])
def test_calls_of_an_a_by_columns_share_two_kernels(compiled, function):
    b = torch.randn(N, K).bfloat16()
    wide = torch.randn(K, 40).bfloat16()
    for m in (7, 8, 33, 1):
        lying = wide[:, :m].clone().t(), wide[:, :m].t()  # the second is copied, as it has gaps
        for a in lying if m < 9 else lying[:1]:
            wanted = a.double() @ b.double().T
            wanted = wanted if function is None else wanted.relu()
            c = matmul(a, b, m="dynamic", target="sm_90a", epilogue=function)
            assert ((c.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()
    texts = [each.mlir_text() if isinstance(each, MatmulSpec) else each.text for each in compiled]
    assert len(texts) == 3  # one row is one of an A by rows, too
    assert sum("tile.rows_multiple = 8" in each for each in texts) == 1


def test_an_output_by_columns_is_copied_there(compiled):
    b = torch.randn(N, K).bfloat16()
    for m in (5, 9):
        a = torch.randn(m, K).bfloat16()
        out = torch.full((N, m), torch.nan).bfloat16().t()
        assert matmul(a, b, m="dynamic", target="sm_90a", out=out) is out
        assert ((out.double() - a.double() @ b.double().T).abs() < 0.3).all()
    assert len(compiled) == 1
    with pytest.raises(OptionError, match="out must be row-major with m='dynamic', or a torch"):
        outs = out.float().numpy().astype("float16")
        matmul(*(each.half().numpy() for each in (a, b)), m="dynamic", out=outs.copy("F"))


def test_torch_takes_them_for_symbols(compiled):
    @torch.compile(dynamic=True, backend="aot_eager")
    def product(columns, b):
        return matmul(columns.t(), b, target="sm_90a") * 2

    b = torch.randn(N, K).bfloat16()
    for m in (8, 7, 24):
        columns = torch.randn(K, m).bfloat16()
        for each, axes in ((b, (0, 1)), (columns, 0)):
            torch._dynamo.mark_static(each, axes)
        wanted = 2 * (columns.t().double() @ b.double().T)
        found = product(columns, b).double()
        assert ((found - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()
    assert sorted(spec.multiple_m for spec in compiled) == [0, UNIT]
