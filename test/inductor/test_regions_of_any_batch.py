"""Regions of stacks whose length is a symbol: kernels for any batch in their place."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from graphs import aten_graph, draw
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.testing import assert_close

from tilewright.compiler.calls.kernels import row_kernels
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.operator import kernel_of, region_operator
from tilewright.compiler.inductor.settings import Settings
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec

BIAS = draw(48)


@pytest.fixture(autouse=True)
def two_kernels(monkeypatch):
    """One for up to 3 matrices, and one for more."""

    def made(spec: MatmulSpec, _target: str) -> list[Bucket]:
        passes = "tma-insertion,swizzle-selection"
        return [
            Bucket(replace(spec, batch=own[0]), f"tiling{{tile={tile}}},{passes}", (own,))
            for tile, own in (("64x32x32", (1, 3)), ("64x64x32", (4, ROWS_MOST)))
        ]

    monkeypatch.setattr(row_kernels, "kept_buckets", made)


def taken(function, values, known=(), target="sm_90a"):
    """The graph of a function with a symbol for the first dim of the values, and kernels in it."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    symbols = (
        StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] + [DimDynamic.STATIC] * more)
        for more in (each.dim() - 1 for each in values)
    )
    fakes = [
        mode.from_tensor(*pair[:1], symbolic_context=pair[1])
        for pair in zip(values, symbols, strict=True)
    ]
    fakes += [mode.from_tensor(each, static_shapes=True) for each in known]
    module = aten_graph(function, *fakes)
    take_regions(module.graph, Settings(device="emulator", target=target, processes=1))
    module.recompile()
    return module


def kernels(module):
    return [
        type(kernel_of(node.args[1])).__name__
        for node in module.graph.nodes
        if node.target is region_operator
    ]


def plain(x, y):
    return torch.bmm(x, y)


def scores(q, k):
    """Of attention: heads are a number, and sequences are of one length."""
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1)


def added(x, y, c):
    return F.gelu(torch.baddbmm(c, x, y, beta=0.5))


def biased(x, y, gain, bias):
    return torch.relu(torch.bmm(x, y) * gain + bias)


def of_slices(x, weight):
    """A linear layer of rows with gaps: torch expands the weight to a stack."""
    return torch.relu(F.linear(x[:, 1:], weight))


@pytest.mark.sweep(5)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("function", "shapes", "known"),
    [
        (of_slices, ((24, 32),), (draw(48, 32),)),
        (plain, ((24, 32), (32, 48)), ()),
        (scores, ((3, 24, 32), (3, 40, 32)), ()),
        (added, ((24, 32), (32, 48), (24, 48)), ()),
        (biased, ((24, 32), (32, 48), (1, 1)), (BIAS,)),
    ],
)
def test_a_region_is_right_for_batches_that_nobody_traced(function, shapes, known, target, rows):
    def values(batch):
        return [draw(batch, *shape, seed=batch + n) for n, shape in enumerate(shapes)]

    module = taken(function, values(2), known, target)
    assert [row.taken for row in rows] == [True], rows[0]
    assert kernels(module) == ["DynamicKernel"]
    for batch in (1, 3, 5):
        given = values(batch)
        assert_close(module(*given, *known), function(*given, *known), rtol=2e-2, atol=2e-2)


def test_matrices_between_rows_are_left_with_their_reason(rows):
    """Rows then lie as far apart as a call brings matrices."""
    values = [draw(rows, 4, 32).transpose(0, 1) for rows in (24, 40)]
    module = taken(lambda x, y: torch.bmm(x, y.mT), values)
    assert kernels(module) == [] and not rows[0].taken
    assert "of a stack the matrices and their rows alone may be symbols" in rows[0].reason
    assert_close(module(*values), torch.bmm(values[0], values[1].mT))
