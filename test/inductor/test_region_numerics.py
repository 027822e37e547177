"""Kernels of regions on the emulator, beside the functions themselves in float64."""

from collections import Counter

import pytest
import torch
from graphs import draw, graph_of
from patterns import PATTERNS, TRAINED
from torch._ops import OpOverload

from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.operator import region_operator
from tilewright.compiler.inductor.settings import Settings

CHIPS = ("sm_100a", "sm_90a")
ALL = {**{name: each[:2] for name, each in PATTERNS.items()}, **TRAINED}


def of_random(values, seed):
    """Other numbers in the place of the floats, no two of them alike; scales stay positive."""
    found = []
    for number, each in enumerate(values):
        if each.dtype in (torch.bfloat16, torch.float8_e4m3fn):
            wide = draw(*each.shape, dtype=torch.float32, seed=seed + number) * 2
            each = torch.empty_strided(each.shape, each.stride(), dtype=each.dtype).copy_(wide)
        found.append(each)
    return found


@pytest.mark.sweep(4)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ALL)
def test_a_regions_kernel_gives_what_its_function_gives(name, chip):
    function, examples = ALL[name]
    values = of_random(examples, seed=31)
    module = graph_of(function, *values)
    given = names_of(module)
    take_regions(module.graph, Settings(device="emulator", target=chip))
    module.recompile()
    targets = [node.target for node in module.graph.nodes]
    assert targets.count(region_operator) == 1
    fused = Counter(PATTERNS[name][2] if name in PATTERNS else ())
    left = names_of(module)
    assert all(left[each] <= given[each] - fused[each] for each in fused), left
    made = module(*values)
    wanted = function(*wide(values)) if is_plain(name) else function(*values)
    pairs = zip(*(each if isinstance(each, tuple | list) else (each,) for each in (made, wanted)),
                strict=True)  # fmt: skip
    for got, expected in pairs:
        size = float(expected.double().square().mean().sqrt())
        torch.testing.assert_close(got.double(), expected.double(), rtol=2e-2, atol=2e-2 * size)


def names_of(module):
    targets = [node.target for node in module.graph.nodes]
    return Counter(each.overloadpacket.__name__ for each in targets if isinstance(each, OpOverload))


def is_plain(name):
    """Whether torch computes the function in float64, too."""
    return not name.startswith(("scaled", "groups", "tilewright's own"))


def wide(values):
    return [each.double() if each.is_floating_point() else each for each in values]
