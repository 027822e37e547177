"""A pair frees its tensor memory behind both CTAs' allocation, or is told of it (cutlass#3435)."""

import pytest

from tilewright import emulate

MEET = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry pair() .explicitcluster .reqnctapercluster 2, 1, 1 {{
  .shared .align 4 .b32 place;
  .reg .b32 %at;
  {first}
  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 64;
  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  ld.shared.b32 %at, [place];
  {between}
  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %at, 64;
  {last}
  ret;
}}
"""


def warned(seed, **where):
    meetings = {"first": MEET, "between": MEET, "last": MEET, **where}
    text = KERNEL.format(**meetings)
    report = emulate(text, "pair", grid=(2, 1, 1), block=(32, 1, 1), params=[], seed=seed)
    return [warning for warning in report.warnings if "early-dealloc" in str(warning)]


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_that_meets_between_is_not_told_of(seed):
    assert not warned(seed)


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_that_frees_at_once_is_told_of(seed):
    (found,) = warned(seed, between="")
    assert "behind the tcgen05.alloc of the other CTA" in str(found)
