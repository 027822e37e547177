"""cta_group::2 with operand A in tensor memory: each CTA holds its rows, for M=128 in both halves
of the lanes (PTX ISA §9.7.16.10.5, data-path layouts A and B)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

A_OFFSET, IMAGE = 8192, 16384
FILL = """
  and.b32 %r22, %r0, {row_mask}; shl.b32 %r22, %r22, 5; add.u32 %r22, %r22, %r2;
  ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%r22+8192];
  ld.shared.v4.b32 {{%v4, %v5, %v6, %v7}}, [%r22+8208];
  shr.u32 %r20, %r0, 5; shl.b32 %r20, %r20, 21; add.u32 %r20, %r20, %r12;
  {store}
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
"""
STORE = (
    "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r20+256], {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};"
)
MMA = """
  tcgen05.fence::after_thread_sync;
  tcgen05.mma.cta_group::2.kind::f16 [%r12], [%r12+256], %rd5, %r14, %p4;
"""


def pair_images(clusters, m: int, n: int, seed: int):
    """(bytes of both CTAs, A, B, descriptor of B): k is 16."""
    rng = np.random.default_rng(seed)
    a, b = ((rng.integers(-8, 9, (rows, 16)) / 2).astype(ml_dtypes.bfloat16) for rows in (m, n))
    images = np.zeros((2, IMAGE), np.uint8)
    for rank in range(2):
        mine = b[rank * n // 2 : (rank + 1) * n // 2]
        descriptor, _ = clusters.place(images[rank], mine, "32B", False, clusters.TILE)
        rows = a[rank * m // 2 : (rank + 1) * m // 2]
        images[rank, A_OFFSET : A_OFFSET + rows.nbytes] = rows.view(np.uint8).reshape(-1)
    return images, a, b, descriptor


def run_pair(clusters, m: int, n: int, seed: int, store: str = STORE):
    images, a, b, bdesc = pair_images(clusters, m, n, seed)
    columns = n if m == 256 else n // 2
    fill = FILL.format(row_mask=127 if m == 256 else 63, store=store)
    body = clusters.CTA_NUMBER + clusters.barriers(1, 1) + clusters.PAIR.format(
        columns=512, size=IMAGE, sync=fill + clusters.CLUSTER_SYNC, issuer=0, adesc=0, bdesc=bdesc,
        idesc=0x490 | n >> 3 << 17 | m >> 4 << 24, mmas=MMA, wait_data=clusters.wait(0),
        wait_done=clusters.wait(8), row_bytes=columns * 4,
    )  # fmt: skip
    body += clusters.dump(columns) + clusters.PAIR_END.format(columns=512)
    out = np.full((2, 128, columns), np.nan, np.float32)
    clusters.run(body, out, images, block=128, cluster=2, seed=seed, shared=65536)
    return out, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize("m, n", [(256, 64), (128, 64), (128, 96)])
@pytest.mark.parametrize("seed", range(2))
def test_each_cta_multiplies_the_rows_that_its_lanes_hold(clusters, m, n, seed):
    out, wanted = run_pair(clusters, m, n, seed)
    if m == 256:
        assert np.array_equal(out.reshape(256, n), wanted)
        return
    for rank in range(2):
        rows = wanted[64 * rank : 64 * rank + 64]
        assert np.array_equal(out[rank, :64], rows[:, : n // 2])
        assert np.array_equal(out[rank, 64:], rows[:, n // 2 :])


def test_a_copy_that_is_missing_in_half_of_the_lanes_is_an_unwritten_operand(clusters):
    half = f"setp.lt.u32 %p5, %r0, 64;\n@!%p5 bra NOT;\n{STORE}\nNOT:"
    with pytest.raises(Exception, match="operand A: tensor memory lane 64 column") as caught:
        run_pair(clusters, 128, 64, 0, half)
    assert caught.value.category == "uninitialised-read"
