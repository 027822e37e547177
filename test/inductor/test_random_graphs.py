"""Random graphs with a size that is a symbol: what regions give beside eager torch and float64."""

from dataclasses import replace

import pytest
import torch
from graphs import aten_graph
from random_graphs import Program
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from tilewright.compiler.calls.kernels import row_kernels
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.settings import Settings
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec

TRACED, OTHERS = 12, (3, 9)


@pytest.fixture(autouse=True)
def one_kernel(monkeypatch):
    """For all rows, where the choice would have some more."""

    def made(spec: MatmulSpec, _target: str) -> list[Bucket]:
        own = replace(spec, m=64, least_m=1, most_m=ROWS_MOST)
        passes = "tiling{tile=64x32x32},tma-insertion,swizzle-selection"
        return [Bucket(own, passes, ((1, ROWS_MOST),))]

    monkeypatch.setattr(row_kernels, "kept_buckets", made)


def traced(program: Program):
    """Its graph, and the guards on its symbols."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fakes = [
        mode.from_tensor(
            value,
            symbolic_context=StatelessSymbolicContext(
                dynamic_sizes=[DimDynamic.DUCK if each else DimDynamic.STATIC for each in is_open]
            ),
        )
        for value, is_open in zip(program.inputs(TRACED), program.open_dims(), strict=True)
    ]
    with mode:
        return aten_graph(program.function, *fakes), mode.shape_env.guards


def furthest(found: torch.Tensor, exact: torch.Tensor) -> float:
    return (found.double() - exact).abs().max().item()


@pytest.mark.sweep(48)
@pytest.mark.parametrize("seed", range(96))
def test_a_random_graph_gives_what_eager_gives(seed, rows):
    program = Program(seed)
    module, guards = traced(program)
    before = len(guards)
    target = ("sm_100a", "sm_90a")[seed % 2]
    take_regions(module.graph, Settings(device="emulator", target=target, processes=1))
    assert any(row.taken for row in rows), program.steps
    assert not [row for row in rows if "internal" in row.reason], program.steps
    assert len(guards) == before, "a comparison binds the graph to its sizes"
    module.recompile()
    for count in (TRACED, *OTHERS):
        inputs = program.inputs(count)
        exact = program.function(*(x.double() if x.is_floating_point() else x for x in inputs))
        eager = program.function(*inputs)
        for found, plain, right in zip(module(*inputs), eager, exact, strict=True):
            assert (found.dtype, found.shape) == (plain.dtype, plain.shape), program.steps
            allowed = 3 * furthest(plain, right) + 0.01 * right.abs().max().item()
            assert furthest(found, right) <= allowed, f"{count} rows: {program.steps}"
