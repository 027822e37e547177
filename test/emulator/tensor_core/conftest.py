"""Small tcgen05 kernels: one CTA of 128 threads, operands copied to shared memory byte by byte."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch
from tilewright.runtime.emulator.machine import swizzle

SHARED_BYTES = 65536
TILE = 0x800
"""Shared offset of `tile`: the first multiple of 1024 behind the static variables at 0x400."""

HEADER = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 image, .param .u32 image_bytes, .param .u64 out,
                  .param .u64 adesc, .param .u64 bdesc, .param .u32 idesc)
{
  .reg .b32 %r<64>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .b32 %v<16>;
  .shared .align 8 .b8 bar[8];
  .shared .align 4 .b32 taddr;
  ld.param.u64 %rd0, [image];
  ld.param.u32 %r10, [image_bytes];
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [adesc];
  ld.param.u64 %rd3, [bdesc];
  ld.param.u32 %r11, [idesc];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], COLUMNS;
  @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  shl.b32 %r3, %r0, 4;
FILL:
  setp.ge.u32 %p2, %r3, %r10;
  @%p2 bra FILLED;
  cvt.u64.u32 %rd8, %r3;
  add.s64 %rd8, %rd0, %rd8;
  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd8];
  add.u32 %r8, %r2, %r3;
  st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};
  add.u32 %r3, %r3, 2048;
  bra FILL;
FILLED:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  ld.shared.u32 %r12, [taddr];
"""
FOOTER = """
  bar.sync 0;
  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r12, COLUMNS;
  ret;
}
"""
WAIT = """
W:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 0;
  @!%p7 bra W;
  tcgen05.fence::after_thread_sync;
"""
COMMIT = "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];\n"
DONE = COMMIT + WAIT
FALSE, TRUE = "setp.ne.u32 %p3, 0, 0;\n", "setp.eq.u32 %p3, 0, 0;\n"
LANE_BASE = "shr.u32 %r13, %r0, 5;\n and.b32 %r13, %r13, 3;\n shl.b32 %r13, %r13, 21;\n"


def kernel(body: str, columns: int = 512) -> str:
    return (HEADER + body + FOOTER).replace("COLUMNS", str(columns))


def mma(kind: str, a: str = "%rd2", extra: str = "") -> str:
    return f"@%p0 tcgen05.mma.cta_group::1.kind::{kind} [%r12], {a}, %rd3, %r11, {extra}%p3;\n"


def dump(shape: str, registers: int, groups: int, step: int, vectors: bool = False) -> str:
    """Load `groups` fragments `step` columns apart; out[group, register, thread] as u32.

    With `vectors` it is out[group, thread, register], stored four registers at once, which the
    emulator does in less time.
    """
    names, width = [f"%v{i}" for i in range(registers)], 4 if vectors else 1
    lines = [LANE_BASE, "add.u32 %r14, %r12, %r13;\n"]
    each = 4 * registers if vectors else 4
    lines += [f"mul.wide.u32 %rd9, %r0, {each};\n", "add.s64 %rd9, %rd1, %rd9;\n"]
    for group in range(groups):
        loaded = f"{{{', '.join(names)}}}"
        lines.append(f"tcgen05.ld.sync.aligned.{shape}.b32 {loaded}, [%r14+{group * step}];\n")
        lines.append("tcgen05.wait::ld.sync.aligned;\n")
        for register in range(0, registers, width):
            if vectors:
                offset = 4 * (128 * group * registers + register)
                four = ", ".join(names[register : register + 4])
                lines.append(f"st.global.v4.u32 [%rd9+{offset}], {{{four}}};\n")
            else:
                offset = 512 * (group * registers + register)
                lines.append(f"st.global.u32 [%rd9+{offset}], {names[register]};\n")
    return "".join(lines)


TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "tf32": np.float32}
SWIZZLE_CODE = {"none": 0, "128B_ATOM_32B": 1, "128B": 2, "64B": 4, "32B": 6}


def operand_offset(mode, transposed, size, leading, stride, r, k):
    """Byte offset of element (r, k) in the canonical layouts, before the XOR; also of arrays."""
    if not transposed:
        kb = k * size
        if mode is swizzle.NONE:
            return r % 8 * 16 + r // 8 * stride + kb % 16 + kb // 16 * leading
        return r % 8 * mode.span + r // 8 * stride + kb
    rb = r * size
    if mode is swizzle.NONE:
        return rb % 16 + rb // 16 * stride + k % 8 * 16 + k // 8 * leading
    group = 4 if mode is swizzle.B128_ATOM_32B else 8
    return rb % mode.span + rb // mode.span * leading + k % group * mode.span + k // group * stride


def strides(mode, transposed, rows, k, size) -> tuple[int, int]:
    if mode is swizzle.NONE:
        return (rows * 16, 128) if not transposed else (rows * size * 8, 128)
    if not transposed:
        return 16, 8 * mode.span
    group = 4 if mode is swizzle.B128_ATOM_32B else 8
    return -(-k // group) * group * mode.span, group * mode.span


def place_operand(image: bytearray, matrix, mode, transposed, base: int) -> int:
    """Write each element of a matrix to its own place from `base` on; returns its descriptor."""
    rows, k = matrix.shape
    size = matrix.dtype.itemsize
    leading, stride = strides(mode, transposed, rows, k, size)
    r, c = np.indices(matrix.shape)
    logical = TILE + base + operand_offset(mode, transposed, size, leading, stride, r, c)
    at = mode.apply(logical) - TILE
    elements = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, k, size)
    np.frombuffer(image, np.uint8)[at[..., None] + np.arange(size)] = elements
    return descriptor(base, leading, stride, mode)


def descriptor(base: int, leading: int, stride: int, mode) -> int:
    word = (TILE + base) >> 4 | leading >> 4 << 16 | stride >> 4 << 32
    return word | 1 << 46 | SWIZZLE_CODE[mode.name] << 61


def instruction_word(a: str, b: str, d: str, m: int, n: int, **bits) -> int:
    codes = {"f16": 0, "bf16": 1, "tf32": 2}
    word = (1 if d == "f32" else 0) << 4 | codes[a] << 7 | codes[b] << 10
    word |= bits.get("negate_a", 0) << 13 | bits.get("negate_b", 0) << 14
    word |= bits.get("transpose_a", 0) << 15 | bits.get("transpose_b", 0) << 16
    return word | n >> 3 << 17 | m >> 4 << 24


def random_matrix(rng, rows, k, name):
    """Small integers and halves: every product and every partial sum is exact in float32."""
    return (rng.integers(-8, 9, (rows, k)) / 2).astype(np.float32).astype(TYPES[name])


def product(a, b) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64).T


def run(body: str, image: bytes, out: np.ndarray, adesc=0, bdesc=0, idesc=0, *, threads=128,
        columns=512, seed=0, check="full"):  # fmt: skip
    padded = np.frombuffer(bytes(image) + bytes(-len(image) % 2048), np.uint8)
    return launch(kernel(body, columns), "k", grid=1, block=threads, shared_bytes=SHARED_BYTES,
                  params=[padded, len(padded), out, adesc, bdesc, idesc], seed=seed,
                  check=check)  # fmt: skip


def read_d(out: np.ndarray, m: int, n: int) -> np.ndarray:
    """D as float32[m, n] from `dump_d`: 32x32b.x8 (M=128), or 16x64b.x4 (M=64)."""
    words = out.reshape(-1, 128, 8 if m == 128 else 4)
    group, thread, r = np.indices(words.shape)
    w, t = thread // 32, thread % 32
    if m == 128:
        row, column = thread, 8 * group + r
    else:
        row, column = 16 * w + t % 2 * 8 + t // 4, 8 * group + 2 * r + t // 2 % 2
    d = np.empty((m, n), np.uint32)
    d[row, column] = words
    return d


def dump_d(m: int, n: int) -> tuple[str, np.ndarray]:
    if m == 128:
        return dump("32x32b.x8", 8, n // 8, 8, vectors=True), np.zeros(n // 8 * 8 * 128, np.uint32)
    return dump("16x64b.x4", 4, n // 8, 8, vectors=True), np.zeros(n // 8 * 4 * 128, np.uint32)


def accumulating_case(seed=0):
    rng = np.random.default_rng(seed)
    a, b = random_matrix(rng, 128, 64, "bf16"), random_matrix(rng, 32, 64, "bf16")
    image = bytearray(24576)
    adesc = place_operand(image, a, swizzle.B128, False, 0)
    bdesc = place_operand(image, b, swizzle.B128, False, 16384)
    return a, b, image, adesc, bdesc, instruction_word("bf16", "bf16", "f32", 128, 32)


def store_fragment(values: str, columns: int) -> str:
    """Each thread stores `columns` words at its own lane, columns 256 onward."""
    names = ", ".join(f"%v{i}" for i in range(columns))
    return (
        LANE_BASE
        + "add.u32 %r15, %r12, %r13;\n"
        + values
        + f"tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%r15+256], {{{names}}};\n"
        + "tcgen05.wait::st.sync.aligned;\n tcgen05.fence::before_thread_sync;\n bar.sync 0;\n"
        + "tcgen05.fence::after_thread_sync;\n"
    )


def refused(body: str, image=b"", words=(0, 0, 0), seed=0, **options) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, image, np.zeros(32768, np.uint32), *words, seed=seed, **options)
    return caught.value


@pytest.fixture
def tc() -> SimpleNamespace:
    """The constants and functions of this file, by name."""
    return SimpleNamespace(**globals())
