"""Regions of stacks whose length and rows are symbols: kernels for any of both in their place."""

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

N, K = 48, 32
OPEN, KNOWN = DimDynamic.DYNAMIC, DimDynamic.STATIC
A, B, C = (OPEN, OPEN, KNOWN), (OPEN, KNOWN, KNOWN), (OPEN, OPEN, KNOWN)
FIXED = (KNOWN, KNOWN, KNOWN)
SIZES = ((16, 4), (17, 4), (16, 5), (17, 5))
"""Rows and matrices, about the bounds of ranges and of bands."""


@pytest.fixture(autouse=True)
def two_kernels(monkeypatch):
    """One for up to 16 rows of up to 4 matrices and any rows of more, and one for more rows."""

    def made(spec: MatmulSpec, _target: str) -> list[Bucket]:
        assert spec.dynamic_m
        passes = "tma-insertion,swizzle-selection"
        few, more = (1, 16, 1, 4), (17, ROWS_MOST, 1, 4)
        bounds = ({"least_m": own[0], "most_m": ROWS_MOST} for own in (few, more))
        first, second = (replace(spec, m=64, **each) for each in bounds)
        return [
            Bucket(first, f"tiling{{tile=64x32x32}},{passes}", (few, (1, ROWS_MOST, 5, ROWS_MOST))),
            Bucket(second, f"tiling{{tile=64x64x32}},{passes}", (more,)),
        ]

    monkeypatch.setattr(row_kernels, "kept_buckets", made)


def taken(function, values, opened, target="sm_90a"):
    """The graph of a function with symbols for the dims of the values that are open."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fakes = [
        mode.from_tensor(value, symbolic_context=StatelessSymbolicContext(dynamic_sizes=[*dims]))
        for value, dims in zip(values, opened, strict=True)
    ]
    module = aten_graph(function, *fakes)
    take_regions(module.graph, Settings(device="emulator", target=target, processes=1))
    module.recompile()
    return module


def kernels(module):
    nodes = (node for node in module.graph.nodes if node.target is region_operator)
    return [kernel_of(node.args[1]) for node in nodes]


def plain(x, y):
    return torch.bmm(x, y)


def added(x, y, c):
    return F.gelu(torch.baddbmm(c, x, y, beta=0.5, alpha=2.0))


def biased(x, y, c):
    return torch.relu(torch.bmm(x, y) * c[:, :, :1] + c[:, :1])


@pytest.mark.sweep(3)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("function", "several", "opened"),
    [
        (plain, False, (A, B)),
        (plain, False, ((KNOWN, OPEN, KNOWN), FIXED)),
        (added, True, (A, B, C)),
        (biased, True, (A, B, C)),
    ],
)
def test_a_region_is_right_for_sizes_that_nobody_traced(function, several, opened, target, rows):
    def values(batch, m):
        shapes = ((m, K), (K, N), (m, N))[: 2 + several]
        return [draw(batch, *shape, seed=batch + n) for n, shape in enumerate(shapes)]

    module = taken(function, values(2, 12), opened, target)
    assert [row.taken for row in rows] == [True], rows[0]
    (kernel,) = kernels(module)
    assert type(kernel).__name__ == "DynamicKernel"
    tiles = [kernel.bundle.at(*sizes).manifest["schedule"]["tile"][1] for sizes in SIZES]
    assert tiles == [32, 64, 32, 32]
    batches = (2, 2, 2) if opened[1] is FIXED else (1, 3, 5)
    for batch, m in zip(batches, (7, 1, 40), strict=True):
        given = values(batch, m)
        assert_close(module(*given), function(*given), rtol=2e-2, atol=2e-2)


def test_columns_that_are_a_symbol_are_left_with_their_reason(rows):
    values = [draw(2, 24, K), draw(2, 40, K)]
    module = taken(lambda x, y: x @ y.mT, values, (A, (OPEN, OPEN, KNOWN)))
    assert kernels(module) == [] and not rows[0].taken
    assert "of a stack the matrices and their rows alone may be symbols" in rows[0].reason
    assert_close(module(*values), values[0] @ values[1].mT)
