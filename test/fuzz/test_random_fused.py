"""Random products of every kind, with functions of their sums and the schedules of large products,
are right to the last bit or refused in one line."""

import pytest
from fuzz_fused import describe, judge


@pytest.mark.sweep(12)
@pytest.mark.parametrize("seed", range(96))
def test_a_fused_product_is_right_or_refused(seed):
    outcome = judge(seed)
    assert not outcome.is_fault, f"{outcome.kind}: {outcome.detail}\n{describe(seed)}"
