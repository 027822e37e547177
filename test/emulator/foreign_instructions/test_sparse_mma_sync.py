"""mma.sp against products of the matrices that A and its metadata stand for (PTX ISA §9.7.14.6)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
ORDERED = {0x4: (0, 1), 0x8: (0, 2), 0xC: (0, 3), 0x9: (1, 2), 0xD: (1, 3), 0xE: (2, 3)}
REVERSED = {0x1: (1, 0), 0x2: (2, 0), 0x6: (2, 1), 0x3: (3, 0), 0x7: (3, 1), 0xB: (3, 2)}
SINGLES = {0x4: (0,), 0xE: (1,)}


def registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def moves(way: str, pointer: str, first: int, count: int) -> str:
    text = f"mad.wide.u32 %rd20, %lane, {4 * count}, {pointer};\n"
    for i in range(count):
        place, register = f"[%rd20+{4 * i}]", f"%r{first + i}"
        operands = f"{register}, {place}" if way == "ld" else f"{place}, {register}"
        text += f"{way}.global.b32 {operands};\n"
    return text


def execute(run, opcode: str, fragments: list[np.ndarray], selector: int, count: int) -> np.ndarray:
    """D's registers, uint32[32, count]; the fragments are those of A, B, C and the metadata."""
    text, names = "", []
    for number, fragment in enumerate(fragments):
        first, width = 20 + 20 * number, fragment.shape[1]
        text += moves("ld", f"%rd{number}", first, width)
        names.append(registers(first, width) if number < 3 else f"%r{first}")
    text += f"{opcode} {registers(120, count)}, {', '.join(names)}, {selector};\n"
    out = np.full((32, count), 0xA5A5A5A5, np.uint32)
    run(text + moves("st", "%rd4", 120, count), *fragments, out)
    return out


def a_fragment(a: np.ndarray, size: int) -> np.ndarray:
    """Register w of A: row g + 8·(w % 2), k = 4E·(w / 2) + E·q, E elements of ``size`` bytes."""
    each = 4 // size
    words = a.shape[1] // (4 * each) * 2
    rows = [
        [
            a[t // 4 + 8 * (w % 2), 4 * each * (w // 2) + each * (t % 4) :][:each]
            for w in range(words)
        ]
        for t in range(32)
    ]
    return np.array(rows).reshape(32, -1).view(np.uint32)


def b_fragment(b: np.ndarray, size: int) -> np.ndarray:
    each = 4 // size
    words = b.shape[1] // (4 * each)
    rows = [
        [b[t // 4, 4 * each * w + each * (t % 4) :][:each] for w in range(words)] for t in range(32)
    ]
    return np.array(rows).reshape(32, -1).view(np.uint32)


def c_places() -> list[list[tuple[int, int]]]:
    return [[(t // 4 + 8 * (i // 2), 2 * (t % 4) + i % 2) for i in range(4)] for t in range(32)]


def put(words: np.ndarray, lane: int, nibble: int, code: int) -> None:
    shift = 4 * nibble
    words[lane, 0] = int(words[lane, 0]) & ~(0xF << shift) | int(code) << shift


def metadata(codes: np.ndarray, size: int, selector: int) -> np.ndarray:
    """Codes [16, chunks] in the registers of a warp; the other ones hold what is not legal."""
    words, chunks = np.zeros((32, 1), np.uint32), codes.shape[1]
    for row in range(16):
        for chunk in range(chunks):
            quad, half = 4 * (row % 8), row // 8
            if size == 1:
                put(words, quad + 2 * (chunk // 8) + half, chunk % 8, codes[row, chunk])
                continue
            lane = quad + selector * (chunks // 4) + chunk // 4
            put(words, lane, 4 * half + chunk % 4, codes[row, chunk])
    return words


def expanded(a: np.ndarray, codes: np.ndarray, places: dict) -> np.ndarray:
    count, wide = (1, 2) if places is SINGLES else (2, 4)
    dense = np.zeros((16, codes.shape[1] * wide))
    for row in range(16):
        for chunk in range(codes.shape[1]):
            for number, place in enumerate(places[int(codes[row, chunk])]):
                dense[row, chunk * wide + place] = a[row, chunk * count + number]
    return dense


def operand(rng, shape: tuple[int, int], name: str) -> np.ndarray:
    if name in ("s8", "u8"):
        return rng.integers(*((-128, 128) if name == "s8" else (0, 256)), shape).astype(NUMPY[name])
    return (rng.integers(-8, 9, shape) / 4).astype(np.float32).astype(NUMPY[name])


FORMS = [
    (16, "f32.f16.f16.f32", 4), (16, "f16.f16.f16.f16", 4), (32, "f32.f16.f16.f32", 2),
    (16, "f32.bf16.bf16.f32", 4), (32, "f32.bf16.bf16.f32", 2), (32, "f16.f16.f16.f16", 2),
    (8, "f32.tf32.tf32.f32", 4), (16, "f32.tf32.tf32.f32", 2), (64, "f32.e4m3.e5m2.f32", 1),
    (64, "s32.s8.u8.s32", 1), (64, "s32.u8.s8.s32", 1),
]  # fmt: skip


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("k", "types", "selector"), [(k, types, s) for k, types, n in FORMS for s in range(n)]
)
def test_a_sparse_product_meets_the_elements_that_the_metadata_names(
    run, k, types, selector, ordered
):
    rng = np.random.default_rng(k + selector)
    d, a_name, b_name, _ = types.split(".")
    a, b = operand(rng, (16, k // 2), a_name), operand(rng, (8, k), b_name)
    c = rng.integers(-100, 100, (16, 8))
    places = SINGLES if a_name == "tf32" else ORDERED if ordered else ORDERED | REVERSED
    codes = rng.choice(list(places), (16, k // (2 if places is SINGLES else 4)))
    dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[d]
    c_words = np.array([[c[at] for at in row] for row in c_places()], dtype).view(np.uint32)
    fragments = [a_fragment(a, a.itemsize), b_fragment(b, b.itemsize), c_words.reshape(32, -1),
                 metadata(codes, a.itemsize, selector)]  # fmt: skip
    sp = "sp::ordered_metadata" if ordered else "sp"
    opcode = f"mma.{sp}.sync.aligned.m16n8k{k}.row.col.{types}"
    out = execute(run, opcode, fragments, selector, fragments[2].shape[1])
    wanted = expanded(a, codes, places) @ b.astype(np.float64).T + c
    got = out.view(dtype).tolist()
    assert got == [[dtype(wanted[at]) for at in row] for row in c_places()]


FOUR = "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}"
REFUSED = [
    (f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {FOUR}, %r5, 2;", "operand",
     "the sparsity selector must be 0..1, got 2"),
    (f"mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {FOUR}, %r5, 1;", "operand",
     "the sparsity selector must be 0..0, got 1"),
    (f"mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {FOUR}, %r5, 0;", "unmodelled",
     "sparse shape .m16n8k32 with types .s32.s8.s8.s32"),
    (f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {FOUR}, %r5, 0;", "operand",
     "sparsity metadata of row 0, chunk 0 must be one of 0b0001, 0b0010"),
    (f"mov.b32 %r5, 0x66666666; mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col"
     f".f32.f16.f16.f32 {FOUR}, %r5, 0;", "operand", "got 0b0110"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "category", "part"), REFUSED)
def test_other_forms_and_metadata_are_refused(trapped, text, category, part):
    trap = trapped("mov.b32 %r5, 0;" + "".join(f"mov.b32 %r{i}, 0;" for i in range(1, 5)) + text)
    assert (trap.category, part in str(trap)) == (category, True), str(trap)
    assert category != "unmodelled" or "9.7.14.6" in str(trap)
