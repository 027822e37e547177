"""Kernels of several CTAs in clusters: header, footer, and a pair MMA with a dump of D."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

TILE = 0x800
"""Shared offset of `tile`: the first multiple of 1024 behind the static variables."""
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .b32 %r<64>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %v<16>;
  .reg .b128 %q<2>;
  .shared .align 8 .b8 bar[32];
  .shared .align 16 .b8 resp[16];
  .shared .align 4 .b32 taddr;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, %cluster_ctarank;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
  setp.eq.and.u32 %p2, %r3, 0, %p0;
"""
"""p0: first thread of the CTA; p1: first warp; p2: first thread of the cluster; r3: own rank."""
CTA_NUMBER = """
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.x;
  mad.lo.u32 %r4, %r5, %r6, %r4;
"""
CLUSTER_SYNC = "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
FOOTER = "  ret;\n}\n"


def barriers(*counts: int) -> str:
    """Initialise bar[0], bar[8], … with these counts, visible to the cluster."""
    lines = [
        f"  @%p0 mbarrier.init.shared::cta.b64 [%r1+{8 * i}], {count};\n"
        for i, count in enumerate(counts)
    ]
    return "".join(lines) + "  @%p0 fence.mbarrier_init.release.cluster;\n" + CLUSTER_SYNC


def wait(offset: int = 0, parity: int | str = 0, label: str = "W") -> str:
    """All threads wait for a phase of bar[offset]."""
    return f"""
{label}{offset}:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [%r1+{offset}], {parity};
  @!%p7 bra {label}{offset};
"""


def run(body: str, out, data=None, *, block=32, grid=None, cluster=2, seed=0, shared=65536, **more):
    """Launch header + body + `ret`; the grid is one cluster unless given."""
    data = np.zeros(16, np.uint8) if data is None else data
    return launch(HEADER + body + FOOTER, "k", grid=grid or cluster, block=block, cluster=cluster,
                  shared_bytes=shared, params=[out, data], seed=seed, **more)  # fmt: skip


def trap_of(body: str, **options) -> Trap:
    """The Trap a kernel ends with."""
    with pytest.raises(Trap) as caught:
        run(body, options.pop("out", np.zeros(4096, np.uint32)), **options)
    return caught.value


# -- a pair MMA ------------------------------------------------------------------------------

SPAN = {"none": 16, "32B": 32, "64B": 64, "128B": 128}
CODE = {"none": 0, "128B": 2, "64B": 4, "32B": 6}
IMAGE_BYTES = 131072
ROWS = {"none": 1, "32B": 2, "64B": 4, "128B": 8}


def place(
    image: np.ndarray, matrix: np.ndarray, mode: str, mn_major: bool, base: int
) -> tuple[int, int]:
    """Writes a 16-bit operand at shared offset `base` into what the tile is filled with.

    Returns the descriptor and the end. The offsets of the elements are those of PTX ISA
    §9.7.16.3.3 (canonical layouts).
    """
    rows, k = matrix.shape
    span = SPAN[mode]
    if mn_major:
        lead, stride = (128, rows * 16) if mode == "none" else (k * span, 8 * span)
    else:
        lead, stride = (rows * 16, 128) if mode == "none" else (16, 8 * span)
    r, c = np.meshgrid(np.arange(rows), np.arange(k), indexing="ij")
    if mode == "none":
        inner, outer = (r, c) if mn_major else (c, r)
        at = inner * 2 % 16 + outer % 8 * 16
        at = (
            at
            + (r // 8) * (lead if mn_major else stride)
            + (c // 8) * (stride if mn_major else lead)
        )
        lead, stride = (stride, lead) if mn_major else (lead, stride)
    elif mn_major:
        at = r * 2 % span + r * 2 // span * lead + c % 8 * span + c // 8 * stride
    else:
        at = r % 8 * span + r // 8 * stride + c * 2
    address = base + at
    address ^= (address >> 7 & ROWS[mode] - 1) << 4
    word = base >> 4 | lead >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | CODE[mode] << 61
    places = (address - TILE)[..., None] + np.arange(2)
    image[places] = np.ascontiguousarray(matrix).view(np.uint8).reshape(places.shape)
    return word, int(at.max()) + 2


PAIR = """
  @%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [taddr], {columns};
  @%p1 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {size};
  mul.lo.u32 %r7, %r4, {size};
  cvt.u64.u32 %rd2, %r7;
  add.s64 %rd2, %rd1, %rd2;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r2], [%rd2], {size}, [%r1];
{wait_data}
  bar.sync 0;
  ld.shared.u32 %r12, [taddr];
{sync}
  and.b32 %r13, %r3, 1;
  setp.eq.and.u32 %p3, %r13, {issuer}, %p0;
  @!%p3 bra ISSUED;
  mov.u32 %r14, {idesc};
  mov.u64 %rd4, {adesc};
  mov.u64 %rd5, {bdesc};
  setp.ne.u32 %p4, 0, 0;
{mmas}
  and.b32 %r15, %r3, 0xFFFFFFFE;
  mov.u32 %r16, 3;
  shl.b32 %r16, %r16, %r15;
  cvt.u16.u32 %h0, %r16;
  add.u32 %r17, %r1, 8;
  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [%r17], %h0;
ISSUED:
{wait_done}
  tcgen05.fence::after_thread_sync;
  shr.u32 %r20, %r0, 5; shl.b32 %r20, %r20, 21; add.u32 %r20, %r20, %r12;
  shl.b32 %r21, %r4, 7; add.u32 %r21, %r21, %r0;
  mul.wide.u32 %rd9, %r21, {row_bytes}; add.s64 %rd9, %rd0, %rd9;
"""
PAIR_END = """
  tcgen05.fence::before_thread_sync;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r12, {columns};
"""


def dump(columns: int) -> str:
    """Every thread stores its lane's first `columns` words at %rd9."""
    text = ""
    for first in range(0, columns, 8):
        names = ", ".join(f"%v{i}" for i in range(8))
        text += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{names}}}, [%r20+{first}];\n"
        text += "tcgen05.wait::ld.sync.aligned;\n"
        for i in (0, 4):
            four = f"{{%v{i}, %v{i + 1}, %v{i + 2}, %v{i + 3}}}"
            text += f"st.global.v4.u32 [%rd9+{4 * (first + i)}], {four};\n"
    return text


def steps(count: int, mode: str, mn: tuple[bool, bool], rows: tuple[int, int]) -> str:
    """`count` MMAs of K = 16, the descriptors advanced by the layouts' K step."""
    text = ""
    advance = []
    for transposed, extent in zip(mn, rows, strict=True):
        if mode == "none":
            size = extent * 32
        else:
            size = 16 * SPAN[mode] if transposed else 32
        advance.append(size >> 4)
    for step in range(count):
        text += "  tcgen05.mma.cta_group::2.kind::f16 [%r12], %rd4, %rd5, %r14, %p4;\n"
        text += f"  add.s64 %rd4, %rd4, {advance[0]}; add.s64 %rd5, %rd5, {advance[1]};\n"
        if step == 0:
            text += "  setp.eq.u32 %p4, 0, 0;\n"
    return text


def pair_case(m, n, k, mode="128B", mn=(False, False), *, cluster=(2, 1), grid=None, issuer=0,
              seed=0):  # fmt: skip
    """(D as dumped float32[CTAs, 128, columns], [(A, B) of each pair], report).

    Every pair multiplies its own matrices; a pair is CTAs of cluster ranks 2q and 2q+1.
    """
    grid = grid or cluster
    columns = n if m == 256 else n // 2
    allocated = max(32, 1 << (columns - 1).bit_length())
    rng = np.random.default_rng([m, n, k, seed])
    ctas = grid[0] * grid[1]
    kinds = ml_dtypes.bfloat16
    images, pairs, words = [None] * ctas, {}, None
    for number in range(ctas):
        x, y = number % grid[0], number // grid[0]
        rank = x % cluster[0] + cluster[0] * (y % cluster[1])
        key = (x // cluster[0], y // cluster[1], rank // 2)
        if key not in pairs:
            draw = [(rng.integers(-8, 9, (rows, k)) / 2).astype(kinds) for rows in (m, n)]
            pairs[key] = draw
        a, b = pairs[key]
        half = rank % 2
        mine = a[half * m // 2 : (half + 1) * m // 2], b[half * n // 2 : (half + 1) * n // 2]
        image = np.zeros(IMAGE_BYTES, np.uint8)
        adesc, end = place(image, mine[0], mode, mn[0], TILE)
        second = -(-end // 1024) * 1024
        bdesc, last = place(image, mine[1], mode, mn[1], TILE + second)
        image = image[: second + -(-last // 1024) * 1024]
        images[number], words = image, (adesc, bdesc)
    data = np.stack(images)
    idesc = 0x490 | mn[0] << 15 | mn[1] << 16 | n >> 3 << 17 | m >> 4 << 24
    body = CTA_NUMBER + barriers(1, 1) + PAIR.format(
        columns=allocated, size=data.shape[1], sync=CLUSTER_SYNC, issuer=issuer, idesc=idesc,
        adesc=words[0], bdesc=words[1], mmas=steps(k // 16, mode, mn, (m // 2, n // 2)),
        wait_data=wait(0), wait_done=wait(8), row_bytes=columns * 4,
    )  # fmt: skip
    body += dump(columns) + PAIR_END.format(columns=allocated)
    out = np.full((ctas, 128, columns), np.nan, np.float32)
    report = run(body, out, data, block=128, grid=grid, cluster=cluster, seed=seed, shared=131072)
    return out, pairs, report


@pytest.fixture
def clusters() -> SimpleNamespace:
    """The constants and functions of this file, by name."""
    return SimpleNamespace(**globals())
