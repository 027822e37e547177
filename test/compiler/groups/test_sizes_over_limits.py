"""Sizes that no kernel counts are refused before anything is copied or compiled."""

import pytest
import torch

from tilewright import grouped_mm, matmul
from tilewright.compiler.calls.grouped import grouped_depth
from tilewright.compiler.calls.operands import placement
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError

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
