"""Sizes that no kernel counts are refused before anything is copied or compiled."""

import pytest
import torch

from tilewright import grouped_mm, matmul
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.calls.grouped import grouped_depth
from tilewright.compiler.calls.operands import placement
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime.bundles.sizes import most_rows

LONG = 2**31
OFFS = torch.zeros(2, dtype=torch.int32)


def lies(*shape: int) -> torch.Tensor:
    """A tensor of one element in memory, which no kernel reads as it lies."""
    return torch.zeros((), dtype=torch.bfloat16).expand(shape)


CALLS = [
    lambda: grouped_mm(lies(LONG, 8), lies(2, 8, 8), offs=OFFS),
    lambda: grouped_mm(lies(2, 8, 8), lies(8, LONG), offs=OFFS),
    lambda: grouped_mm(lies(8, LONG), lies(LONG, 8), offs=OFFS),
    lambda: grouped_mm(lies(LONG, 8, 8), lies(LONG, 8, 8)),
    lambda: grouped_mm(lies(LONG, 8), lies(2, 8, 8).contiguous(), offs=OFFS, rows=OFFS),
    lambda: matmul(lies(LONG, 8), lies(8, 8)),
    lambda: matmul(lies(LONG, 8), lies(8, 8), m="dynamic"),
    lambda: matmul(lies(8, LONG), lies(8, LONG)),
]


@pytest.mark.parametrize("call", CALLS)
def test_operands_that_are_too_long_are_refused_and_not_copied(call, monkeypatch):
    for module in (placement, grouped_depth):  # gigabytes would follow
        monkeypatch.setattr(
            module, "warn_of_copy", lambda name, *_: pytest.fail(f"{name} is copied")
        )
    said = rf"must have at most {LONG - 1} elements along each dim, got \[.*{LONG}.*multiply in"
    with pytest.raises(OptionError, match=said):
        call()


def test_more_groups_than_kernels_count_are_refused():
    few = torch.zeros(4, 8, dtype=torch.bfloat16)
    many = torch.zeros(2**16 + 1, dtype=torch.int32)
    stacks = torch.zeros(len(many), 8, 8, dtype=torch.bfloat16)
    said = "groups must be 0 to 65536, got 65537; multiply in several calls"
    for operands in ((few, stacks), (stacks, few.T), (few[:, :4].T, few)):
        with pytest.raises(OptionError, match=said):
            grouped_mm(*operands, offs=many)


@pytest.mark.parametrize("axis", ["m", "k"])
def test_more_rows_than_maps_of_groups_reach_are_refused(axis):
    sizes = {"m": 8, "n": 8, "k": 8, axis: 2**30 + 8}
    majors = {"a_major": "m", "b_major": "n"} if axis == "k" else {}
    said = f"{axis} must be at most 1073741824 where it is grouped, got 1073741832; multiply in"
    with pytest.raises(OptionError, match=said):
        MatmulSpec(**sizes, groups=3, group_axis=axis, **majors)
    MatmulSpec(**sizes | {axis: 2**30}, groups=3, group_axis=axis, **majors)


def test_rows_that_the_last_tile_passes_are_refused_with_a_cure():
    """Tiles of 192 rows end behind what 32 bits count; of 128 they end with it."""
    spec = MatmulSpec(2**31 - 1, 8, 64)
    said = "tiles of 192 must end at 2147483648 or before, got 0 to 11184810, of which one ends at "
    with pytest.raises(CompileError, match=f"{said}2147483712; multiply in parts, or shorten"):
        compile_matmul(spec, target="sm_90a", pipeline="tiling{tile=192x8x64}")
    compile_matmul(spec, target="sm_90a", pipeline="tiling{tile=128x8x64}")


def test_a_launch_says_no_more_rows_in_groups_than_maps_reach():
    spec = MatmulSpec(64, 8, 8, groups=3, b_major="n", dynamic_m=True)
    made = compile_matmul(spec, target="sm_90a", pipeline="tiling{tile=64x8x16}")
    assert most_rows(as_bundle(made).manifest) == 2**30
