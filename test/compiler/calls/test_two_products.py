"""Two products of one A by `tilewright.matmul`, against torch; and what is refused."""

import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import tilewright
from tilewright.compiler.calls.dense import fused
from tilewright.compiler.driver import choose_pipeline, read_spec
from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")


def swiglu(gate, up):
    return F.silu(gate) * up


def operands(*shapes):
    draw = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=draw).bfloat16() for shape in shapes]


def expected(a, g, u):
    return swiglu(a.float() @ g.float().mT, a.float() @ u.float().mT).bfloat16()


def test_gate_and_up_are_one_kernel_of_any_leading_dims():
    a, w = operands((2, 40, 64), (48, 64))
    g, u = w[:24], w[24:]
    c = tilewright.matmul(a, (g, u), epilogue=swiglu, target="sm_90a")
    assert_close(c, expected(a, g, u), rtol=1e-2, atol=1e-5)


def test_rows_of_one_weight_and_slices_are_read_and_written_in_place():
    """Alternating rows of the weight are gate and up; A and C are columns of wider matrices."""
    draw = torch.Generator().manual_seed(4)
    wide, w = (
        torch.randint(-3, 4, size, generator=draw).bfloat16() for size in ((40, 96), (48, 64))
    )
    out = torch.full((40, 32), torch.nan)
    a, g, u = wide[:, 16:80], w[0::2], w[1::2]
    place = out[:, :24]
    assert tilewright.matmul(a, (g, u), epilogue=torch.sub, out=place, out_dtype="f32") is place
    assert place.equal(a.float() @ g.float().T - a.float() @ u.float().T)
    assert out[:, 24:].isnan().all()
    tensors = [*fused._fused.values()][-1].kernel.manifest["tensors"]
    assert [each["strides"] for each in tensors] == [[96, 1], [128, 1], [128, 1], [32, 1]]


def test_gradients_are_those_of_two_products():
    a, g, u = operands((24, 64), (16, 64), (16, 64))
    leaves = [each.float().requires_grad_() for each in (a, g, u)]
    swiglu(leaves[0] @ leaves[1].T, leaves[0] @ leaves[2].T).sum().backward()
    ours = [each.clone().requires_grad_() for each in (a, g, u)]
    tilewright.matmul(ours[0], ours[1:], epilogue=swiglu, target="sm_90a").sum().backward()
    for got, wanted in zip(ours, leaves, strict=True):
        assert_close(got.grad.float(), wanted.grad, rtol=2e-2, atol=0.5)


@pytest.mark.parametrize(
    ("b", "epilogue", "message"),
    [
        ([(16, 64), (16, 64)], None, "two b are for an epilogue of both sums"),
        ([(16, 64), (8, 64)], swiglu, "two b must be matrices of one shape and type"),
        ([(16, 64)] * 3, swiglu, "b must be one tensor or two, got 3"),
    ],
)
def test_what_is_no_pair_is_refused(b, epilogue, message):
    a, *bs = operands((24, 64), *b)
    with pytest.raises(OptionError, match=message):
        tilewright.matmul(a, tuple(bs), epilogue=epilogue)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_the_default_schedule_counts_the_columns_of_both(target):
    """Each product has half of a tile, which would leave a tensor core idle if it were small."""
    pipeline = choose_pipeline(MatmulSpec(4096, 4096, 4096, products=2), target)
    m, n, _ = re.match(r"tiling{tile=(\d+)x(\d+)x(\d+)}", pipeline).groups()
    assert int(m) >= 128 and int(n) >= 128


def test_a_function_and_its_text_have_as_many_instructions():
    """Of fast functions they count less; what only converts counts as none."""
    spec = MatmulSpec(64, 32, 64, products=2)
    found, epilogue, *_ = import_epilogue(spec, Frame.of([64, 32], 0), swiglu, [])
    assert found == replace(spec, epilogue_instructions=4)
    assert read_spec(LinalgText(found.mlir_text(epilogue), "swiglu")) == found
