"""wgmma.mma_async.sp against products of the matrices that A and its metadata stand for (PTX ISA
§9.7.15.6)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

TILE, N = 0x400, 32
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "e4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
PAIRS = {0x4: (0, 1), 0x8: (0, 2), 0xC: (0, 3), 0x9: (1, 2), 0xD: (1, 3), 0x6: (2, 1), 0xE: (2, 3)}
SINGLES = {0x4: (0,), 0xE: (1,)}
FILL = """mov.u32 %r150, %tid.x; shl.b32 %r150, %r150, 4;
F: cvt.u64.u32 %rd20, %r150; add.u64 %rd20, %rd20, %rd0; add.u32 %r151, %r150, %tile;
ld.global.v4.b32 {%r152, %r153, %r154, %r155}, [%rd20];
st.shared.v4.b32 [%r151], {%r152, %r153, %r154, %r155};
add.u32 %r150, %r150, 2048; setp.lt.u32 %p7, %r150, 32768; @%p7 bra F;
fence.proxy.async.shared::cta; bar.sync 0;
mad.wide.u32 %rd21, %lane, 4, %rd2; ld.global.b32 %r149, [%rd21];
mad.wide.u32 %rd21, %lane, 16, %rd3; ld.global.v4.b32 {%r100, %r101, %r102, %r103}, [%rd21];
setp.ne.u32 %p0, 0, 0; setp.eq.u32 %p1, 0, 0;
"""
DONE = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
FENCE = "wgmma.fence.sync.aligned;\n"


def place(image: np.ndarray, matrix: np.ndarray, base: int) -> int:
    """Write a matrix [rows, k] K-major without a swizzle; returns its descriptor."""
    rows, k = matrix.shape
    r, column = np.indices((rows, k))
    byte = column * matrix.itemsize
    at = base + r % 8 * 16 + r // 8 * 128 + byte % 16 + byte // 16 * rows * 16
    elements = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, k, -1)
    image[at[..., None] + np.arange(matrix.itemsize)] = elements
    return (TILE + base) >> 4 | rows << 16 | 128 >> 4 << 32


def operand(rng, shape: tuple[int, int], name: str) -> np.ndarray:
    low, high = (-128, 128) if name == "s8" else (-8, 9)
    return rng.integers(low, high, shape).astype(np.float32).astype(NUMPY[name])


def expanded(a: np.ndarray, codes: np.ndarray, places: dict) -> np.ndarray:
    count, wide = (1, 2) if places is SINGLES else (2, 4)
    dense = np.zeros((len(a), codes.shape[1] * wide))
    for row in range(len(a)):
        for chunk in range(codes.shape[1]):
            for number, place_ in enumerate(places[int(codes[row, chunk])]):
                dense[row, chunk * wide + place_] = a[row, chunk * count + number]
    return dense


def metadata(codes: np.ndarray, size: int, selector: int) -> np.ndarray:
    """The register of each thread; threads that do not count hold what is not legal."""
    words, chunks = np.zeros(128, np.uint64), codes.shape[1]
    for row in range(64):
        warp, half, quad = row // 16, row // 8 % 2, row % 8
        for chunk in range(chunks):
            first = 32 * warp + 4 * quad
            if size == 1:
                thread, nibble = first + 2 * (chunk // 8) + half, chunk % 8
            else:
                thread, nibble = first + 2 * selector + chunk // 4, 4 * half + chunk % 4
            words[thread] |= np.uint64(int(codes[row, chunk]) << 4 * nibble)
    return words.astype(np.uint32)


def fragments(a: np.ndarray) -> np.ndarray:
    """Operand A in registers: four words of each thread."""
    each = 4 // a.itemsize
    rows = np.zeros((128, 4 * each), a.dtype)
    for thread in range(128):
        for w in range(4):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (w % 2)
            first = 4 * each * (w // 2) + each * (thread % 4)
            rows[thread, each * w : each * w + each] = a[row, first : first + each]
    return rows.view(np.uint32)


def registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def step(a: str, types: str, k: int, selector: int, flags: str) -> str:
    count = N // 4 if types.startswith("f16") else N // 2
    return (
        FENCE
        + f"wgmma.mma_async.sp.sync.aligned.m64n{N}k{k}.{types} {registers(0, count)}, {a}, %rd11, "
        f"%r149, {selector}, %p0{flags};\n"
    )


def stored(count: int) -> str:
    """Each thread stores its registers, two at once."""
    text = f"mad.wide.u32 %rd21, %lane, {4 * count}, %rd1;\n"
    pairs = (f"st.global.v2.b32 [%rd21+{4 * i}], {registers(i, 2)};\n" for i in range(0, count, 2))
    return text + "".join(pairs)


def result(out: np.ndarray) -> np.ndarray:
    thread, i = np.indices((128, N // 2))
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
    matrix = np.zeros((64, N), out.dtype)
    matrix[row, 8 * (i // 4) + 2 * (thread % 4) + i % 2] = out[:, : N // 2]
    return matrix


FORMS = [
    ("f32.f16.f16", 32, 0, "1, 1, 0, 0"), ("f32.bf16.bf16", 32, 1, "1, 1, 0, 0"),
    ("f16.f16.f16", 32, 1, "1, 1, 0, 0"), ("f32.tf32.tf32", 16, 0, "1, 1"),
    ("f32.tf32.tf32", 16, 1, "1, 1"), ("f32.e4m3.e4m3", 64, 0, "1, 1"), ("s32.s8.s8", 64, 0, ""),
]  # fmt: skip


@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize(("types", "k", "selector", "flags"), FORMS)
def test_each_warp_takes_the_metadata_of_its_rows_from_its_registers(
    run, poisoned, types, k, selector, flags, in_registers
):
    rng = np.random.default_rng(k + selector)
    d, name, _ = types.split(".")
    places = SINGLES if name == "tf32" else PAIRS
    a, b = operand(rng, (64, k // 2), name), operand(rng, (N, k), name)
    codes = rng.choice(list(places), (64, k // (2 if places is SINGLES else 4)))
    image = np.full(32768, 0x55, np.uint8)
    descriptors = place(image, a, 0), place(image, b, 16384)
    body = FILL + "".join(f"mov.u64 %rd{10 + i}, {x};\n" for i, x in enumerate(descriptors))
    dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[d]
    count = N // 4 if d == "f16" else N // 2
    body += "".join(f"mov.b32 %r{i}, 0;\n" for i in range(count))
    if in_registers and name in ("f16", "bf16"):
        flags = flags.removesuffix(", 0")
    source = registers(100, 4) if in_registers else "%rd10"
    body += step(source, types, k, selector, f", {flags}" if flags else "")
    out = poisoned((128, count), np.uint32)
    run(body + DONE + stored(count), image, out, metadata(codes, a.itemsize, selector),
        fragments(a), threads=128, target="sm_90a")  # fmt: skip
    wanted = expanded(a, codes, places) @ b.astype(np.float64).T
    assert np.array_equal(result(out.view(dtype)), wanted.astype(dtype))


REFUSED = [
    (step("%rd10", "f32.f16.f16", 32, 2, ", 1, 1, 0, 0"), "operand", "must be 0..1, got 2"),
    (step("%rd10", "s32.s8.s8", 64, 1, ""), "operand", "must be 0..0, got 1"),
    (step("%rd10", "f32.f16.f16", 16, 0, ", 1, 1, 0, 0"), "unmodelled", "section 9.7.15.6.4"),
    (step("%rd10", "f32.f16.f16", 32, 0, ", 1, 1, 0, 0") + DONE, "operand", "metadata of row 0"),
]


@pytest.mark.parametrize(("text", "category", "part"), REFUSED)
def test_other_forms_and_metadata_are_refused(trapped, poisoned, text, category, part):
    image = np.zeros(32768, np.uint8)
    body = FILL + f"mov.u64 %rd10, {place(image, np.zeros((64, 16), np.float16), 0)};\n"
    body += f"mov.u64 %rd11, {place(image, np.zeros((N, 32), np.float16), 16384)};\n"
    body += "".join(f"mov.b32 %r{i}, 0;\n" for i in range(N // 2))
    trap = trapped(body + text, image, poisoned((128, 16), np.uint32), np.zeros(128, np.uint32),
                   np.zeros((128, 4), np.uint32), threads=128, target="sm_90a")  # fmt: skip
    assert (trap.category, part in str(trap)) == (category, True), str(trap)
