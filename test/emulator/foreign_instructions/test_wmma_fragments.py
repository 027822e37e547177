"""wmma through memory against numpy: no test looks into a fragment (PTX ISA §9.7.14.4)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64,
         "s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32}  # fmt: skip
SIZES = {"s4": 4, "u4": 4, "b1": 1}
REGISTERS = {
    ("m16n16k16", "f16"): (8, 8), ("m8n32k16", "f16"): (8, 8), ("m32n8k16", "f16"): (8, 8),
    ("m16n16k16", "bf16"): (4, 4), ("m8n32k16", "bf16"): (2, 8), ("m32n8k16", "bf16"): (8, 2),
    ("m16n16k16", "s8"): (2, 2), ("m8n32k16", "u8"): (1, 4), ("m32n8k16", "s8"): (4, 1),
    ("m16n16k8", "tf32"): (4, 4), ("m8n8k4", "f64"): (1, 1), ("m8n8k32", "s4"): (1, 1),
    ("m8n8k32", "u4"): (1, 1), ("m8n8k128", "b1"): (1, 1),
}  # fmt: skip
"""Registers of A and B as the ISA's tables of fragments state them."""


def accumulators(shape: str, type_: str) -> int:
    if shape.startswith("m8n8"):
        return 2
    return 4 if type_ == "f16" else 8


def extents(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    return (int(m), *map(int, rest.split("k")))


def random_matrix(rng, shape, name: str) -> np.ndarray:
    ranges = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2),
              "s32": (-1000, 1000)}  # fmt: skip
    if name in ranges:
        return rng.integers(*ranges[name], shape)
    return rng.integers(-8, 9, shape) / 4


def stored(matrix: np.ndarray, name: str, by_rows: bool, stride: int) -> np.ndarray:
    """The bytes of a matrix with this leading dimension, 0x5A between the rows."""
    lines = matrix if by_rows else matrix.T
    if name in SIZES:
        bits = SIZES[name]
        flags = (lines[:, :, None] >> np.arange(bits)) & 1
        data = np.packbits(flags.reshape(len(lines), -1), axis=1, bitorder="little")
    else:
        data = np.ascontiguousarray(lines.astype(NUMPY[name])).view(np.uint8)
    pitch = stride * SIZES[name] // 8 if name in SIZES else stride * np.dtype(NUMPY[name]).itemsize
    image = np.full((len(lines), pitch), 0x5A, np.uint8)
    image[:, : data.shape[1]] = data
    return image.reshape(-1)


def names(prefix: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


def case(shape, ab, acc, layouts=("row", "col"), cd="row", space="global", op="", tail=""):
    return (shape, ab, acc, layouts, cd, space, op, tail)


CASES = [
    case("m16n16k16", "f16", "f32"),
    case("m16n16k16", "f16", "f16", ("col", "row"), "col"),
    case("m8n32k16", "f16", "f32", ("row", "row"), "col"),
    case("m32n8k16", "f16", "f32", ("col", "col")),
    case("m16n16k16", "bf16", "f32", ("row", "row")),
    case("m8n32k16", "bf16", "f32", ("col", "col"), "col"),
    case("m32n8k16", "bf16", "f32"),
    case("m16n16k8", "tf32", "f32", ("col", "row")),
    case("m16n16k16", "s8", "s32"),
    case("m8n32k16", "u8", "s32", ("col", "row"), "col"),
    case("m32n8k16", "s8", "s32", ("row", "row"), tail=".satfinite"),
    case("m8n8k4", "f64", "f64", ("row", "col"), tail=""),
    case("m8n8k32", "s4", "s32"),
    case("m8n8k32", "u4", "s32", tail=".satfinite"),
    case("m8n8k128", "b1", "s32", op=".xor.popc"),
    case("m8n8k128", "b1", "s32", op=".and.popc"),
]


def body(shape, ab, acc, layouts, cd, op, tail, strides) -> str:
    counts = REGISTERS[shape, ab]
    n, wide = accumulators(shape, acc), ab == "f64"
    prefix = "q" if wide else "r"
    types = f"{acc}.{acc}" if ab == "f16" else f"{acc}.{ab}.{ab}.{acc}"
    a, b, c, d = (
        names(prefix, first, count)
        for first, count in ((0, counts[0]), (10, counts[1]), (20, n), (30, n))
    )
    load, two = f"sync.aligned.{cd}.{shape}.global.{acc}", ".".join(layouts)
    return f""".reg .b64 %q<40>;
    wmma.load.a.sync.aligned.{layouts[0]}.{shape}.global.{ab} {a}, [%rd0], {strides[0]};
    wmma.load.b.sync.aligned.{shape}.{layouts[1]}.{ab} {b}, [%rd1], {strides[1]};
    wmma.load.c.{load} {c}, [%rd2], {strides[2]};
    wmma.mma{op}.sync.aligned.{two}.{shape}.{types}{tail} {d}, {a}, {b}, {c};
    wmma.store.d.{load} [%rd3], {d}, {strides[2]};"""


@pytest.mark.parametrize("shape, ab, acc, layouts, cd, space, op, tail", CASES)
def test_products_through_fragments(run, shape, ab, acc, layouts, cd, space, op, tail):
    m, n, k = extents(shape)
    rng = np.random.default_rng(len(shape) + len(ab) + k)
    a, b = random_matrix(rng, (m, k), ab), random_matrix(rng, (k, n), ab)
    c = random_matrix(rng, (m, n), acc)
    lines = (k if layouts[0] == "row" else m, n if layouts[1] == "row" else k,
             n if cd == "row" else m)  # fmt: skip
    pads = [128 // SIZES.get(t, 8 * np.dtype(NUMPY.get(t, np.uint8)).itemsize) for t in (ab, acc)]
    strides = (lines[0] + pads[0], lines[1] + pads[0], lines[2] + pads[1])
    images = (
        stored(a, ab, layouts[0] == "row", strides[0]),
        stored(b, ab, layouts[1] == "row", strides[1]),
        stored(c, acc, cd == "row", strides[2]),
    )
    out = np.full_like(images[2], 0x5A)
    run(body(shape, ab, acc, layouts, cd, op, tail, strides), *images, out)
    if op == ".xor.popc":
        product = (a[:, :, None] ^ b[None]).sum(axis=1)
    else:
        product = a @ b
    wanted = stored(product + c, acc, cd == "row", strides[2])
    assert out.tobytes() == wanted.tobytes()


def test_s32_sums_are_clamped_with_satfinite_only(run):
    a = np.full(256, 127, np.int8)
    c = np.full(256, 2**31 - 5, np.int32)
    for tail, wanted in ((".satfinite", 2**31 - 1), ("", 2**31 - 5 + 16 * 127 * 127 - 2**32)):
        out = np.zeros(256, np.int32)
        text = body("m16n16k16", "s8", "s32", ("row", "col"), "row", "", tail, (16, 16, 16))
        run(text, a, a, c, out)
        assert (out == wanted).all()


def test_a_fragment_is_scaled_element_by_element_through_shared_memory(run):
    c = np.random.default_rng(9).normal(size=(16, 16)).astype(np.float32)
    out = np.zeros_like(c)
    regs = names("r", 0, 8)
    scale = " ".join(f"mul.f32 %r{i}, %r{i}, 0f40000000;" for i in range(8))
    run(f"""wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {regs}, [%rd0]; {scale}
        wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%tile], {regs}, 20; bar.sync 0;
        wmma.load.c.sync.aligned.row.m16n16k16.shared::cta.f32 {regs}, [%tile], 20;
        wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {regs};""", c, out)  # fmt: skip
    assert (out == 2 * c.T).all()


LOAD = "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7},"


@pytest.mark.parametrize(
    "text, category, message",
    [
        (f"add.u64 %rd0, %rd0, 16; {LOAD} [%rd0];", "misaligned", "multiple of the fragment's 32"),
        (f"{LOAD} [%rd0], 12;", "operand", "must be at least 16 elements"),
        (f"{LOAD} [%rd0], 17;", "operand", "and a multiple of 16 bytes, got 17"),
        (f"{LOAD} [%rd0], %lane;", "convergence", "differ between lanes"),
        (f"{LOAD} [%rd0], 512;", "out-of-bounds", "past the end"),
    ],
)
def test_bad_matrix_storage_is_refused(trapped, text, category, message):
    trap = trapped(text, np.zeros(512, np.float16))
    assert trap.category == category and message in str(trap)
