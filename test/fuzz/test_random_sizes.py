"""Random kernels for any K, M or number of matrices, by passes of every kind, are right to the last
bit for every size that a launch says, or refused in one line."""

import pytest
from fuzz_sizes import describe, judge


@pytest.mark.sweep(16)
@pytest.mark.parametrize("seed", range(96))
def test_a_kernel_of_any_size_is_right_or_refused(seed):
    outcome = judge(seed)
    assert not outcome.is_fault, f"{outcome.kind}: {outcome.detail}\n{describe(seed)}"
