"""Small kernels of one warp that copy tiles: shared memory filled before and dumped after."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap, launch

SHARED_BYTES = 32768
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128], .param .u64 other)
{
  .reg .b32 %r<24>; .reg .b64 %rd<16>; .reg .pred %p<8>;
  .shared .align 8 .b8 bar[8];
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd2, [other];
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
"""
WAIT = """
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 0;
  @!%p7 bra WAIT;
"""
COPY_IN = """
  mov.u32 %r4, 0;
IN:
  shl.b32 %r6, %r0, 2;
  add.u32 %r6, %r6, %r4;
  cvt.u64.u32 %rd8, %r6;
  add.s64 %rd8, %rd2, %rd8;
  ld.global.u32 %r7, [%rd8];
  add.u32 %r8, %r2, %r6;
  st.shared.u32 [%r8], %r7;
  add.u32 %r4, %r4, 128;
  setp.lt.u32 %p3, %r4, {size};
  @%p3 bra IN;
"""
COPY_OUT = """
  mov.u32 %r4, 0;
OUT:
  shl.b32 %r6, %r0, 2;
  add.u32 %r6, %r6, %r4;
  add.u32 %r8, %r2, %r6;
  ld.shared.u32 %r7, [%r8];
  cvt.u64.u32 %rd8, %r6;
  add.s64 %rd8, %rd0, %rd8;
  st.global.u32 [%rd8], %r7;
  add.u32 %r4, %r4, 128;
  setp.lt.u32 %p3, %r4, {size};
  @%p3 bra OUT;
"""
FOOTER = "  ret;\n}\n"
NOTHING = np.zeros(16, np.uint8)


def run(body: str, out: np.ndarray, tensor_map: TensorMap, other: np.ndarray = NOTHING, seed=0,
        check="full"):  # fmt: skip
    return launch(HEADER + body + FOOTER, "k", grid=1, block=32, shared_bytes=SHARED_BYTES,
                  params=[out, tensor_map, other], seed=seed, check=check)  # fmt: skip


def load_body(rank: int, coordinates, size: int, *, fill: bool, space="shared::cluster") -> str:
    names = ", ".join(f"%r{10 + axis}" for axis in range(rank))
    moves = "".join(f"  mov.s32 %r{10 + axis}, {c};\n" for axis, c in enumerate(coordinates))
    copy = f"""
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {{tx}};
  @%p0 cp.async.bulk.tensor.{rank}d.{space}.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {{{{{names}}}}}], [%r1];
"""
    filled = COPY_IN.format(size=size) + "fence.proxy.async.shared::cta; bar.sync 0;"
    return filled * fill + moves + copy + WAIT + COPY_OUT.format(size=size)


def with_bytes(body: str, tensor_map: TensorMap) -> str:
    return body.replace("{{", "{").replace("}}", "}").replace("{tx}", str(tensor_map.box_bytes))


def small_map(**options) -> tuple[np.ndarray, TensorMap]:
    source = np.random.default_rng(4).integers(1, 1 << 15, (32, 64)).astype(np.uint16)
    return source, TensorMap(source, "bf16", (64, 32), (128,), (64, 16), **options)


def refused(body: str, tensor_map: TensorMap, out=None, other=NOTHING, seed=0) -> Trap:
    out = np.zeros(4096, np.uint8) if out is None else out
    with pytest.raises(Trap) as caught:
        run(with_bytes(body, tensor_map), out, tensor_map, other, seed)
    return caught.value


STORE = """
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.s32 %r10, {x};
  mov.s32 %r11, {y};
  @%p0 {opcode} [%rd1, {{%r10, %r11}}], [%r2];
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group{read} 0;
"""
TENSOR_STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"


def store_body(x=0, y=0, opcode=TENSOR_STORE, read="", size=2048) -> str:
    return COPY_IN.format(size=size) + STORE.format(x=x, y=y, opcode=opcode, read=read)


@pytest.fixture
def copies() -> SimpleNamespace:
    """The constants and functions of this file, by name."""
    return SimpleNamespace(**globals())
