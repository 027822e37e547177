"""ld.global.nc: the memory consistency model does not apply to it (PTX ISA §8.1)."""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{{ .reg .b32 %r<6>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  ld.param.u64 %rd0, [data]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
  @%p0 st.global.b32 [%rd0], 1;
  bar.sync 0;
  {load}
  ret; }}
"""


def run(load: str) -> None:
    data = np.zeros(64, np.int32)
    launch(TEXT.format(load=load), "k", grid=1, block=64, params=[data])


@pytest.mark.parametrize(
    "load", ["ld.global.nc.b32 %r1, [%rd0];", "ld.global.nc.v4.b32 {%r1, %r2, %r3, %r4}, [%rd0];",
             "ld.global.nc.L1::no_allocate.b32 %r1, [%rd0];"])  # fmt: skip
def test_what_the_kernel_has_written_is_not_loaded_so(load):
    with pytest.raises(Trap, match=r"by ld\.global\.nc meets the write by warp 0") as caught:
        run(load)
    assert caught.value.category == "race"


@pytest.mark.parametrize("load", ["ld.global.b32 %r1, [%rd0];", "ld.global.nc.b32 %r1, [%rd0+4];"])
def test_other_loads_and_other_bytes_are(load):
    run(load)
