"""A report names the instructions of synchronisation that a launch has not reached."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 rounds, .param .u64 out) {
  .reg .b64 %d<3>; .reg .b32 %r<4>; .reg .pred %p<3>; .shared .align 8 .b64 full;
  ld.param.u64 %d0, [rounds]; ld.param.u64 %d1, [out];
  mov.u32 %r0, %ctaid.x; mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2;
  ld.global.u32 %r1, [%d0]; mov.u32 %r2, %tid.x; setp.ne.u32 %p0, %r2, 0;
  setp.lt.u32 %p1, %r1, 1;
  @%p1 bra DONE;
  @%p0 bra MEET;
  mbarrier.init.shared::cta.b64 [full], 32;
MEET:
  bar.sync 0;
  setp.lt.u32 %p1, %r1, 2;
  @%p1 bra DONE;
  fence.acq_rel.gpu;
  membar.gl;
  add.u32 %r3, %r3, 1;
DONE:
  ret; }
"""


def test_what_acquires_or_releases_orders_too():
    text = KERNEL.replace("membar.gl", "atom.global.add.acq_rel.gpu.u32 %r3, [%d1], 1")
    found = launch(text, "k", grid=1, block=32, params=[np.zeros(1, np.uint32)] * 2)
    assert "atom.global.add.acq_rel.gpu.u32 %r3, [%d1], 1" in (found.unreached or {}).values()


def report(rounds: list[int], workers: int = 1):
    params = [np.array(rounds, np.uint32), np.zeros(4, np.uint32)]
    return launch(
        KERNEL, "k", grid=len(rounds), block=32, params=params, workers=workers, check="fast"
    )


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("rounds", "left"),
    [
        ([0, 0], ["mbarrier.init.shared::cta.b64 [full], 32", "bar.sync 0", "fence.acq_rel.gpu",
                  "membar.gl"]),
        ([0, 1], ["fence.acq_rel.gpu", "membar.gl"]),
        ([2, 0], []),
    ],
)  # fmt: skip
def test_what_no_warp_of_any_cta_has_executed_is_named(rounds, left, workers):
    found = report(rounds, workers)
    assert found.workers == workers
    assert list((found.unreached or {}).values()) == left
    assert [each["text"] for each in found.as_dict()["unreached"]] == left
    shown = [line for line in str(found).splitlines() if "not reached" in line]
    assert shown == [
        f"  not reached: ptx:{line}: `{text}`" for line, text in (found.unreached or {}).items()
    ]
    for line, text in (found.unreached or {}).items():
        assert text in KERNEL.splitlines()[line - 1]
