"""A whole hand-written matmul: tensor copies, mbarriers, tcgen05.mma and loads, several CTAs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap, launch

BODY = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 out, .param .align 64 .b8 amap[128],
                  .param .align 64 .b8 bmap[128], .param .u32 steps, .param .u32 pitch)
{
  .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .b32 %v<8>;
  .shared .align 8 .b8 bar[16];
  .shared .align 4 .b32 taddr;
  ld.param.u64 %rd0, [out];
  mov.b64 %rd1, amap; cvta.param.u64 %rd1, %rd1;
  mov.b64 %rd2, bmap; cvta.param.u64 %rd2, %rd2;
  ld.param.u32 %r20, [steps];
  ld.param.u32 %r21, [pitch];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  add.u32 %r3, %r2, 16384;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
  @%p0 mbarrier.init.shared::cta.b64 [%r1+8], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 64;
  bar.sync 0;
  ld.shared.u32 %r12, [taddr];
  mov.u32 %r4, %ctaid.x; shl.b32 %r4, %r4, 7;
  mov.u32 %r5, %ctaid.y; shl.b32 %r5, %r5, 6;
  mov.u32 %r6, 0;
  mov.u32 %r7, 0;
  mov.u32 %r11, 0x08100490;
  mov.b64 %rd3, 0x4000404000010080;
  mov.b64 %rd4, 0x4000404000010480;
LOOP:
  shl.b32 %r8, %r6, 6;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 24576;
  @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {%r8, %r4}], [%r1];
  @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
    [%r3], [%rd2, {%r8, %r5}], [%r1];
W0:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], %r7;
  @!%p7 bra W0;
  tcgen05.fence::after_thread_sync;
  setp.ne.u32 %p3, %r6, 0;
  mov.u64 %rd5, %rd3;
  mov.u64 %rd6, %rd4;
  mov.u32 %r9, 0;
KSTEP:
  @%p0 tcgen05.mma.cta_group::1.kind::f16 [%r12], %rd5, %rd6, %r11, %p3;
  add.s64 %rd5, %rd5, 2;
  add.s64 %rd6, %rd6, 2;
  setp.eq.u32 %p3, 0, 0;
  add.u32 %r9, %r9, 1;
  setp.lt.u32 %p5, %r9, 4;
  @%p5 bra KSTEP;
  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1+8];
W1:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1+8], %r7;
  @!%p7 bra W1;
  tcgen05.fence::after_thread_sync;
  bar.sync 0;
  xor.b32 %r7, %r7, 1;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p4, %r6, %r20;
  @%p4 bra LOOP;
  shr.u32 %r13, %r0, 5;
  shl.b32 %r13, %r13, 21;
  add.u32 %r14, %r12, %r13;
  add.u32 %r15, %r4, %r0;
  mul.wide.u32 %rd8, %r15, %r21;
  add.s64 %rd8, %rd0, %rd8;
  mul.wide.u32 %rd9, %r5, 4;
  add.s64 %rd8, %rd8, %rd9;
"""
END = """
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r12, 64;
  ret;
}
"""


def kernel() -> str:
    names = ", ".join(f"%v{i}" for i in range(8))
    text = BODY
    for first in range(0, 64, 8):
        text += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{names}}}, [%r14+{first}];\n"
        text += "tcgen05.wait::ld.sync.aligned;\n"
        for half in (0, 4):
            four = ", ".join(f"%v{half + i}" for i in range(4))
            text += f"st.global.v4.b32 [%rd8+{4 * (first + half)}], {{{four}}};\n"
    return text + END


def multiply(
    text: str, m: int, n: int, k: int, seed: int, check: str = "full", told: set | None = None
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = (rng.integers(-8, 9, (m, k)) / 2).astype(ml_dtypes.bfloat16)
    b = (rng.integers(-8, 9, (n, k)) / 2).astype(ml_dtypes.bfloat16)
    out = np.full((m, n), np.nan, np.float32)
    maps = [
        TensorMap(a, "bf16", (k, m), (2 * k,), (64, 128), swizzle="128B"),
        TensorMap(b, "bf16", (k, n), (2 * k,), (64, 64), swizzle="128B"),
    ]
    report = launch(text, "k", grid=(m // 128, n // 64), block=128, shared_bytes=25600,
                    params=[out, *maps, -(-k // 64), 4 * n], seed=seed, check=check)  # fmt: skip
    if told is not None:
        told.update(warning.category for warning in report.warnings)
    return out, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.array(1, k=(64, 136, 320), seed=range(3))
def test_every_tile_is_the_product_of_its_rows_and_columns(k, seed):
    out, expected = multiply(kernel(), 256, 192, k, seed)
    np.testing.assert_array_equal(out, expected)


def test_warps_that_only_wait_are_caught_when_they_lag_two_phases():
    """Without a CTA barrier in the loop, three warps may sleep through two phases."""
    text = kernel().replace("  bar.sync 0;\n  xor.b32", "  xor.b32")
    for seed in range(8):
        with pytest.raises(Trap, match="a waiter that is late asks for a phase that lies two back"):
            multiply(text, 128, 64, 512, seed)


def test_where_libraries_are_run_warps_keep_up_and_are_told_of():
    """TileLang's and ThunderKittens' idle producer warps wait so"""
    text = kernel().replace("  bar.sync 0;\n  xor.b32", "  xor.b32")
    for seed in range(12):
        told = set[str]()
        out, expected = multiply(text, 128, 64, 512, seed, "shipped", told)
        assert "late-wait" in told
        np.testing.assert_array_equal(out, expected)
