"""Random calls of the public functions give what float64 gives, or are refused in one line."""

import pytest
import torch
from fuzz_calls import judge
from held_tensors import Held, difference
from random_calls import random_call

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.mark.sweep(39)
@pytest.mark.parametrize("seed", range(192))
def test_a_random_call_is_right_or_refused(seed):
    outcome = judge(seed, large=False)
    assert not outcome.is_fault, f"{outcome.kind}: {outcome.detail}\n{random_call(seed).text}"


def test_what_is_not_the_call_s_is_found_changed():
    held = Held(3)
    given = held.tensor(torch.ones(4, 6), (1, 0))
    out = held.output(5, 7, dtype=torch.bfloat16)
    out.fill_(2)
    assert given.eq(1).all() and held.changed() == ""
    memory = torch.empty(0, dtype=out.dtype).set_(out.untyped_storage())
    memory[out.storage_offset() - 1] = 0
    assert "2 bytes beside the output changed" in held.changed()
    memory[out.storage_offset() - 1] = held._kept[1][1][out.storage_offset() - 1]
    given[1, 2] = 3
    assert "of an input changed" in held.changed()


def test_a_result_is_compared_to_the_last_bit():
    wanted = torch.tensor([[1.0, 257.0, 1e9]], dtype=torch.float64)
    assert difference(wanted.bfloat16(), wanted) == ""
    assert difference(torch.tensor([[1.0, 256.0, 448.0]]).to(torch.float8_e4m3fn), wanted) == ""
    assert "1 of 3 elements, [0, 1] is 258.0 for 256.0" in difference(
        torch.tensor([[1.0, 258.0, 1e9]]).bfloat16(), wanted
    )
    nan = torch.tensor([[torch.nan, 257.0, 1e9]], dtype=torch.float64)
    assert difference(nan.bfloat16(), nan) == ""
    assert "[0, 0] is 1.0 for nan" in difference(wanted.bfloat16(), nan)
    assert "[0, 0] is nan for 1.0" in difference(nan.bfloat16(), wanted)
    assert difference(torch.ones(3, 1), wanted) == "shape [3, 1] for [1, 3]"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.int8])
def test_values_are_sprinkled_with_special_ones_that_their_type_has(dtype):
    held = Held(5)
    values = [held.sprinkled(held.integers(4, 6, dtype=dtype)).double() for _ in range(20)]
    assert all(each.shape == (4, 6) for each in values)
    assert any(each.isnan().any() for each in values) == dtype.is_floating_point
    assert any(each.isinf().any() for each in values) == (dtype == torch.bfloat16)
