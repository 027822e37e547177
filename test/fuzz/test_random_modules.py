"""Random torch modules with views around their products are right to the last bit or refused."""

import pytest
from fuzz_modules import describe, judge


@pytest.mark.sweep(32)
@pytest.mark.parametrize("seed", range(64))
def test_a_module_with_views_is_right_or_refused(seed):
    outcome = judge(seed)
    assert not outcome.is_fault, f"{outcome.kind}: {outcome.detail}\n{describe(seed)}"
