"""Warps that allocate tensor memory of two sizes do so in an order (PTX ISA §9.7.16.7.1)."""

import pytest

from tilewright import emulate
from tilewright.runtime.emulator import Trap

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry sizes() {{
  .shared .align 4 .b32 places[2];
  .reg .b32 %r<4>; .reg .pred %p;
  mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 32;
  @%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [places], {first};
  {between}
  @!%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [places+4], 64;
  bar.sync 0;
  ld.shared.b32 %r1, [places]; ld.shared.b32 %r2, [places+4];
  @%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {first};
  @%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;
  ret;
}}
"""


def run(seed, first, between):
    text = KERNEL.format(first=first, between=between)
    emulate(text, "sizes", grid=(1, 1, 1), block=(64, 1, 1), params=[], seed=seed)


@pytest.mark.parametrize("seed", range(4))
def test_sizes_that_nothing_orders_are_refused_whichever_comes_first(seed):
    with pytest.raises(Trap) as caught:
        run(seed, 128, "")
    assert caught.value.category == "tmem"
    assert "tcgen05.alloc" in caught.value.message


@pytest.mark.parametrize(("first", "between"), [(128, "bar.sync 1;"), (64, "")])
def test_sizes_in_an_order_and_equal_ones_are_taken(first, between):
    run(0, first, between)
    run(1, first, between)
