"""Engines across the CTAs of a cluster: multicast copies, pair MMA, remote arrivals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap, launch

TILE = 0x800
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 out, .param .align 64 .b8 amap[128], .param .align 64 .b8 bmap[128])
{
  .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %v<16>;
  .shared .align 8 .b8 bar[16];
  .shared .align 4 .b32 taddr;
  ld.param.u64 %rd0, [out];
  mov.b64 %rd1, amap; cvta.param.u64 %rd1, %rd1;
  mov.b64 %rd2, bmap; cvta.param.u64 %rd2, %rd2;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, %cluster_ctarank;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
  setp.eq.and.u32 %p2, %r3, 0, %p0;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], COUNT;
  @%p0 mbarrier.init.shared::cta.b64 [%r1+8], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
"""
WAIT = """
W{offset}:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [%r1+{offset}], 0;
  @!%p7 bra W{offset};
"""
FOOTER = """
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}
"""
COPY_OUT = """
  shl.b32 %r4, %r0, 2;
  mad.lo.u32 %r5, %r3, {size}, %r4;
  cvt.u64.u32 %rd8, %r5;
  add.s64 %rd8, %rd0, %rd8;
  add.u32 %r6, %r2, %r4;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd8], %r7;
"""


def run(body: str, out, amap, bmap, *, count=1, block=32, cluster=2, seed=0):
    text = HEADER.replace("COUNT", str(count)) + body + FOOTER
    return launch(text, "k", grid=cluster, block=block, cluster=cluster, shared_bytes=65536,
                  params=[out, amap, bmap], seed=seed)  # fmt: skip


def small_map():
    source = np.random.default_rng(2).integers(1, 1 << 15, (8, 64)).astype(np.uint16)
    return source, TensorMap(source, "bf16", (64, 8), (128,), (64, 1))


MULTICAST = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    ".multicast::cluster [%r2], [%rd1, {%r10, %r11}], [%r1], %h0;\n"
)


@pytest.mark.parametrize("seed", range(3))
def test_a_multicast_load_fills_every_selected_cta_and_signals_each_barrier(seed):
    source, tensor_map = small_map()
    out = np.zeros((2, 64), np.uint16)
    body = (
        """
      @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
      mov.u32 %r10, 0; mov.u32 %r11, 5; mov.u16 %h0, 3;
    """
        + "@%p2 "
        + MULTICAST
        + WAIT.format(offset=0)
        + COPY_OUT.format(size=128)
    )
    run(body, out, tensor_map, tensor_map, seed=seed)
    assert np.array_equal(out, source[[5, 5]])


def test_a_pair_multicast_signals_the_barrier_of_the_named_parity_for_both_ctas():
    source, tensor_map = small_map()
    out = np.zeros((2, 64), np.uint16)
    body = (
        """
      and.b32 %r9, %r1, 0xFEFFFFFF;
      @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
      mov.u32 %r10, 0; mov.u32 %r11, 6; mov.u16 %h0, 3;
    """
        + "@%p2 "
        + MULTICAST.replace(".multicast", ".cta_group::2.multicast").replace("[%r1]", "[%r9]")
        + "setp.ne.u32 %p4, %r3, 0;\n@%p4 bra BOTH;\n"
        + WAIT.format(offset=0)
        + """
    BOTH:
      barrier.cluster.arrive;
      barrier.cluster.wait;
    """
        + COPY_OUT.format(size=128)
    )
    run(body, out, tensor_map, tensor_map)
    assert np.array_equal(out, source[[6, 6]])


def test_a_multicast_to_a_missing_rank_traps():
    _, tensor_map = small_map()
    body = "mov.u32 %r10, 0; mov.u32 %r11, 5; mov.u16 %h0, 5;\n@%p2 " + MULTICAST
    with pytest.raises(Trap) as caught:
        run(body, np.zeros(256, np.uint8), tensor_map, tensor_map)
    assert caught.value.message == "a cluster of 2 CTAs has no rank 2"


def test_a_remote_arrival_completes_the_peers_phase():
    _, tensor_map = small_map()
    out = np.zeros(64, np.uint32)
    body = """
      xor.b32 %r8, %r3, 1;
      mapa.shared::cluster.u32 %r9, %r1, %r8;
      @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];
      @%p0 mbarrier.arrive.release.cluster.shared::cta.b64 _, [%r1];
    """ + WAIT.format(offset=0)
    run(body, out, tensor_map, tensor_map, count=2)


def test_a_wait_on_a_peers_barrier_traps():
    _, tensor_map = small_map()
    body = """
      mov.u32 %r8, 1;
      mapa.shared::cluster.u32 %r9, %r1, %r8;
      @%p2 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], 0;
    """
    with pytest.raises(Trap) as caught:
        run(body, np.zeros(64, np.uint32), tensor_map, tensor_map)
    assert caught.value.category == "address-space"


PAIR = """
  @%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [taddr], 128;
  @%p1 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  bar.sync 0;
  ld.shared.u32 %r12, [taddr];
  mul.lo.u32 %r13, %r3, ROWS_A;
  mul.lo.u32 %r14, %r3, ROWS_B;
  mov.u32 %r10, 0;
  add.u32 %r15, %r2, 16384;
  and.b32 %r16, %r1, 0xFEFFFFFF;
  @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], BYTES;
  @%p0 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {%r10, %r13}], [%r16];
  @%p0 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r15], [%rd2, {%r10, %r14}], [%r16];
  @!%p2 bra ISSUED;
W0:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [%r1], 0;
  @!%p7 bra W0;
  tcgen05.fence::after_thread_sync;
  mov.u64 %rd4, ADESC;
  mov.u64 %rd5, BDESC;
  mov.u32 %r17, IDESC;
  setp.ne.u32 %p3, 0, 0;
  mov.u16 %h1, 3;
  tcgen05.mma.cta_group::2.kind::f16 [%r12], %rd4, %rd5, %r17, %p3;
  add.s64 %rd4, %rd4, 2; add.s64 %rd5, %rd5, 2;
  setp.eq.u32 %p3, 0, 0;
  tcgen05.mma.cta_group::2.kind::f16 [%r12], %rd4, %rd5, %r17, %p3;
  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [%r18], %h1;
ISSUED:
W8:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [%r1+8], 0;
  @!%p7 bra W8;
  tcgen05.fence::after_thread_sync;
  shr.u32 %r20, %r0, 5; shl.b32 %r20, %r20, 21; add.u32 %r20, %r20, %r12;
  shl.b32 %r21, %r3, 7; add.u32 %r21, %r21, %r0;
  mul.wide.u32 %rd9, %r21, 256; add.s64 %rd9, %rd0, %rd9;
"""
PAIR_END = """
  tcgen05.fence::before_thread_sync;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r12, 128;
"""


def dump(columns: int) -> str:
    text = ""
    for first in range(0, columns, 8):
        names = ", ".join(f"%v{i}" for i in range(8))
        text += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{names}}}, [%r20+{first}];\n"
        text += "tcgen05.wait::ld.sync.aligned;\n"
        for i in (0, 4):
            four = f"{{%v{i}, %v{i + 1}, %v{i + 2}, %v{i + 3}}}"
            text += f"st.global.v4.u32 [%rd9+{4 * (first + i)}], {four};\n"
    return text


def smem_descriptor(offset: int) -> int:
    return (TILE + offset) >> 4 | 1 << 16 | 512 >> 4 << 32 | 1 << 46 | 4 << 61


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("m", [256, 128])
def test_a_pair_multiplies_with_both_halves_of_both_operands(m, seed):
    n, k = 64, 32
    rng = np.random.default_rng(m)
    a = (rng.integers(-8, 9, (m, k)) / 2).astype(ml_dtypes.bfloat16)
    b = (rng.integers(-8, 9, (n, k)) / 2).astype(ml_dtypes.bfloat16)
    amap = TensorMap(a, "bf16", (k, m), (2 * k,), (k, m // 2), swizzle="64B")
    bmap = TensorMap(b, "bf16", (k, n), (2 * k,), (k, n // 2), swizzle="64B")
    idesc = 0x490 | n >> 3 << 17 | m >> 4 << 24
    body = PAIR.replace("ROWS_A", str(m // 2)).replace("ROWS_B", str(n // 2))
    body = body.replace("BYTES", str((m + n) * k * 2)).replace("IDESC", str(idesc))
    body = body.replace("ADESC", str(smem_descriptor(0)))
    body = body.replace("BDESC", str(smem_descriptor(16384)))
    body = "add.u32 %r18, %r1, 8;\n" + body
    columns = n if m == 256 else n // 2
    out = np.full((256, 64), np.nan, np.float32)
    run(body + dump(columns) + PAIR_END, out, amap, bmap, block=128, seed=seed)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    got = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            if m == 256:
                got[i, j] = out[i, j]
            else:
                lane = i % 64 + 64 * (j // (n // 2))
                got[i, j] = out[128 * (i // 64) + lane, j % (n // 2)]
    np.testing.assert_array_equal(got, expected)


def test_pair_instructions_need_a_cluster_of_even_size():
    _, tensor_map = small_map()
    body = "@%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [taddr], 128;\n"
    with pytest.raises(Trap) as caught:
        run(body, np.zeros(16, np.uint8), tensor_map, tensor_map, cluster=1)
    assert caught.value.message == ("cta_group::2 needs a cluster of an even number of CTAs, got 1")
