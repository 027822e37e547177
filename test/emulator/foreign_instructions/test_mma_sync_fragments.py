"""mma.sync with the fragment tables of PTX ISA §9.7.14.5, element by element."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
    "f32": np.float32, "s32": np.int32,
}  # fmt: skip
RANGES = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16)}


def per_register(name: str) -> int:
    return {"f64": 1, "s4": 8, "u4": 8}.get(name) or 4 // np.dtype(NUMPY[name]).itemsize


def a_place(m: int, name: str, lane: int, i: int) -> tuple[int, int]:
    """Row and column of element a_i: the alternation of the tables, by element number"""
    group, thread, each = lane // 4, lane % 4, per_register(name)
    word, inside = divmod(i, each)
    if m == 8:
        return group, 4 * each * word + each * thread + inside
    row = group + (8 if word in (1, 3, 5, 7) else 0)
    return row, 4 * each * (word // 2) + each * thread + inside


def b_place(name: str, lane: int, i: int) -> tuple[int, int]:
    word, inside = divmod(i, per_register(name))
    return 4 * per_register(name) * word + per_register(name) * (lane % 4) + inside, lane // 4


def c_place(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + (8 if i >= 2 else 0), 2 * (lane % 4) + (i & 1)


PRINTED = {
    "m16n8k16 f16": ("f16", 8, 4, lambda g, q, i: (
        g if i < 2 or 4 <= i < 6 else g + 8, q * 2 + (i & 1) + (8 if i >= 4 else 0)
    ), lambda g, q, i: (q * 2 + (i & 1) + (8 if i >= 2 else 0), g)),
    "m16n8k8 tf32": ("tf32", 4, 2, lambda g, q, i: (
        g if i in (0, 2) else g + 8, q if i < 2 else q + 4
    ), lambda g, q, i: (q if i == 0 else q + 4, g)),
    "m16n8k32 s8": ("s8", 16, 8, lambda g, q, i: (
        g if i < 4 or 8 <= i < 12 else g + 8, q * 4 + (i & 3) + (16 if i >= 8 else 0)
    ), lambda g, q, i: (q * 4 + (i & 3) + (16 if i >= 4 else 0), g)),
    "m16n8k64 s4": ("s4", 32, 16, lambda g, q, i: (
        g if i < 8 or 16 <= i < 24 else g + 8, q * 8 + (i & 7) + (32 if i >= 16 else 0)
    ), lambda g, q, i: (q * 8 + (i & 7) + (32 if i >= 8 else 0), g)),
}  # fmt: skip
"""Type, elements of A and B a lane has, and their places as the ISA's figures state them."""


@pytest.mark.parametrize("shape", list(PRINTED))
def test_the_places_used_here_are_those_printed_in_the_figures(shape):
    name, a_count, b_count, a_printed, b_printed = PRINTED[shape]
    for lane in range(32):
        g, q = divmod(lane, 4)
        for i in range(a_count):
            assert a_place(16, name, lane, i) == a_printed(g, q, i)
        for i in range(b_count):
            assert b_place(name, lane, i) == b_printed(g, q, i)


def random_matrix(rng, shape, name: str) -> np.ndarray:
    if name in RANGES:
        return rng.integers(*RANGES[name], shape).astype(np.int64)
    return (rng.integers(-8, 9, shape) / 4).astype(NUMPY[name])


def fragments(matrix: np.ndarray, name: str, count: int, place) -> np.ndarray:
    """uint8[32, bytes]: the registers of each lane; `place(lane, i)` as the tables give it"""
    if name in ("s4", "u4"):
        codes = np.array([[matrix[place(t, i)] & 15 for i in range(count)] for t in range(32)])
        return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    rows = np.array([[matrix[place(t, i)] for i in range(count)] for t in range(32)], NUMPY[name])
    return rows.view(np.uint8).reshape(32, -1)


def names(prefix: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


def loads(pointer: str, prefix: str, first: int, count: int, size: int) -> str:
    text = f"mad.wide.u32 %rd20, %lane, {count * size}, {pointer};\n"
    for i in range(count):
        text += f"ld.global.b{8 * size} %{prefix}{first + i}, [%rd20+{i * size}];\n"
    return text


def body(opcode: str, counts: tuple[int, int, int], size: int) -> str:
    """Registers 20.. hold A, 60.. (f64: 21, 24..) B and C; D overwrites C's copy"""
    prefix, starts = ("r", (20, 60, 80, 100)) if size == 4 else ("q", (0, 10, 20, 30))
    text = ".reg .b64 %q<40>;\n"
    for pointer, first, count in zip(("%rd0", "%rd1", "%rd2"), starts, counts, strict=False):
        text += loads(pointer, prefix, first, count, size)
    a, b, c = (names(prefix, s, n) for s, n in zip(starts, counts, strict=False))
    d = names(prefix, starts[3], counts[2])
    text += f"{opcode} {d}, {a}, {b}, {c};\nmad.wide.u32 %rd20, %lane, {counts[2] * size}, %rd3;\n"
    for i in range(counts[2]):
        text += f"st.global.b{8 * size} [%rd20+{i * size}], %{prefix}{starts[3] + i};\n"
    return text


CASES = [
    *[("m16n8k8", d, "f16", "f16") for d in ("f16", "f32")],
    *[("m16n8k16", d, "f16", "f16") for d in ("f16", "f32")],
    ("m16n8k8", "f32", "bf16", "bf16"), ("m16n8k16", "f32", "bf16", "bf16"),
    ("m16n8k4", "f32", "tf32", "tf32"), ("m16n8k8", "f32", "tf32", "tf32"),
    ("m16n8k16", "f32", "e4m3", "e5m2"), ("m16n8k32", "f32", "e5m2", "e4m3"),
    ("m16n8k32", "f16", "e4m3", "e4m3"), ("m8n8k16", "s32", "s8", "u8"),
    ("m16n8k16", "s32", "u8", "s8"), ("m16n8k32", "s32", "s8", "s8"),
    ("m16n8k32", "s32", "u8", "u8"), ("m8n8k32", "s32", "s4", "u4"),
    ("m16n8k32", "s32", "u4", "s4"), ("m16n8k64", "s32", "s4", "s4"),
    ("m8n8k4", "f64", "f64", "f64"), ("m16n8k4", "f64", "f64", "f64"),
    ("m16n8k8", "f64", "f64", "f64"), ("m16n8k16", "f64", "f64", "f64"),
]  # fmt: skip


def operands(shape: str, d: str, a: str, b: str, seed: int = 0) -> list[np.ndarray]:
    m, k = int(shape[1 : shape.index("n")]), int(shape.rpartition("k")[2])
    rng = np.random.default_rng([m, k, seed])
    c_type = "f32" if d == "s32" else d
    c = random_matrix(rng, (m, 8), c_type) * (4 if d == "s32" else 1)
    return [random_matrix(rng, (m, k), a), random_matrix(rng, (k, 8), b), c.astype(NUMPY[d])]


def multiply(run, opcode: str, types: tuple[str, str, str], matrices, out_bytes) -> np.ndarray:
    (d, a, b), (left, right, c) = types, matrices
    (m, k), size = left.shape, 8 if a == "f64" else 4
    packed = [
        fragments(left, a, m * k // 32, lambda t, i: a_place(m, a, t, i)),
        fragments(right, b, k // 4, lambda t, i: b_place(b, t, i)),
        fragments(c, d, m // 4, c_place),
    ]
    counts = tuple(p.shape[1] // size for p in packed)
    out = out_bytes(packed[2].shape, np.uint8)
    run(body(opcode, counts, size), *packed, out)
    return out.view(NUMPY[d])


@pytest.mark.parametrize(("shape", "d", "a", "b"), CASES, ids=[".".join(c) for c in CASES])
def test_every_element_of_the_product_lies_where_the_tables_say(run, poisoned, shape, d, a, b):
    matrices = operands(shape, d, a, b)
    opcode = f"mma.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{d}"
    got = multiply(run, opcode, (d, a, b), matrices, poisoned)
    left, right, c = (x.astype(np.float64) for x in matrices)
    wanted = (left @ right + c).astype(NUMPY[d])
    for lane in range(32):
        for i in range(got.shape[1]):
            assert got[lane, i] == wanted[c_place(lane, i)], (lane, i)


@pytest.mark.parametrize(("flag", "wanted"), [("", -(1 << 31) + 32 * 127 * 127 - 6),
                                              (".satfinite", (1 << 31) - 1)])  # fmt: skip
def test_integer_sums_wrap_around_unless_they_saturate(run, poisoned, flag, wanted):
    a, b = np.full((16, 32), 127), np.full((32, 8), 127)
    c = np.full((16, 8), (1 << 31) - 6, np.int64).astype(np.int32)
    opcode = f"mma.sync.aligned.m16n8k32.row.col{flag}.s32.s8.s8.s32"
    got = multiply(run, opcode, ("s32", "s8", "s8"), (a, b, c), poisoned)
    assert (got == wanted).all()


def test_tf32_operands_lose_their_low_thirteen_bits(run, poisoned):
    a, b = np.full((16, 4), 1 + 2.0**-11, np.float32), np.eye(4, 8, dtype=np.float32)
    opcode = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"
    c = np.zeros((16, 8), np.float32)
    got = multiply(run, opcode, ("f32", "tf32", "tf32"), (a, b, c), poisoned)
    assert set(got.ravel().tolist()) == {0.0, 1.0}


FOUR = "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4};"


@pytest.mark.parametrize(("text", "category", "part"), [
    (f"mma.sync.aligned.m16n8k16.row.row.f32.bf16.bf16.f32 {FOUR}", "unmodelled", ".row"),
    (f"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 {FOUR}", "unmodelled", ".f16.bf16"),
    (f"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {FOUR}", "unmodelled", "types"),
    (f"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {FOUR}", "unmodelled", "m8n8k4"),
    (f"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32 {FOUR}", "unmodelled", "single bits"),
    (f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.xor.popc {FOUR}", "unmodelled",
     "single bits"),
    (f"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {FOUR}", "unmodelled", "a vector of 4"),
    (f"setp.lt.u32 %p1, %lane, 7; @%p1 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {FOUR}",
     "convergence", "7-31"),
])  # fmt: skip
def test_forms_that_are_not_modelled_stop_with_the_section(trapped, text, category, part):
    trap = trapped(text)
    assert (trap.category, part in str(trap)) == (category, True), str(trap)
    assert category != "unmodelled" or "9.7.14.5.14" in str(trap)
