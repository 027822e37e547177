"""A proxy fence behind the issue of a bulk store covers nothing, however late the store reads."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>; .shared .align 128 .b8 tile[256];
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile; shl.b32 %r2, %r0, 2;
  add.u32 %r2, %r1, %r2; setp.eq.u32 %p0, %r0, 0;
  st.shared.u32 [%r2], 7; {before} {meet}
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 256;
  @%p0 cp.async.bulk.commit_group;
  {behind} @%p0 cp.async.bulk.wait_group 0; ret; }}
"""
FENCE = "fence.proxy.async.shared::cta;"


def run(seed: int, **places: str) -> np.ndarray:
    out = np.zeros(64, np.uint32)
    text = TEXT.format(**{"before": "", "meet": "bar.sync 0;", "behind": ""} | places)
    launch(text, "k", grid=1, block=64, params=[out], seed=seed)
    return out


def test_a_fence_behind_the_issue_is_too_late_in_every_order():
    for seed in range(8):
        with pytest.raises(Trap) as caught:
            run(seed, behind=FENCE)
        assert caught.value.category == "proxy-fence"


def test_one_ahead_of_the_barrier_is_in_time():
    for seed in range(8):
        assert (run(seed, before=FENCE, behind=FENCE) == 7).all()
