"""mma.sync on single bits and m8n8k4 of f16, with the formulas of PTX ISA §9.7.14.5."""

from __future__ import annotations

import numpy as np
import pytest

LOAD = "mad.wide.u32 %rd20, %lane, {size}, {pointer};\n"


def loads(pointer: str, first: int, count: int) -> str:
    lines = [LOAD.format(size=4 * count, pointer=pointer)]
    lines += [f"ld.global.b32 %r{first + i}, [%rd20+{4 * i}];\n" for i in range(count)]
    return "".join(lines)


def stores(pointer: str, first: int, count: int) -> str:
    text = loads(pointer, first, count)
    for i in range(count):
        text = text.replace(
            f"ld.global.b32 %r{first + i}, [%rd20+{4 * i}]",
            f"st.global.b32 [%rd20+{4 * i}], %r{first + i}",
        )
    return text


def names(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def run_mma(run, opcode: str, a, b, c, registers: int, dtype) -> np.ndarray:
    """D's registers, dtype[32, …], from those of A, B and C (uint32[32, registers])."""
    counts = [x.view(np.uint32).reshape(32, -1).shape[1] for x in (a, b, c)]
    text = "".join(loads(f"%rd{i}", 20 * i + 20, n) for i, n in enumerate(counts))
    a_names, b_names, c_names = (names(20 * i + 20, n) for i, n in enumerate(counts))
    text += f"{opcode} {names(80, registers)}, {a_names}, {b_names}, {c_names};\n"
    out = np.full((32, registers), 0xA5A5A5A5, np.uint32)
    run(text + stores("%rd3", 80, registers), a, b, c, out)
    return out.view(dtype).reshape(32, -1)


BITS = [("m8n8k128", 8, 128), ("m16n8k128", 16, 128), ("m16n8k256", 16, 256)]


def a_place(m: int, lane: int, i: int) -> tuple[int, int]:
    """Row and column of bit i: words alternate between the halves of the rows."""
    word, bit = divmod(i, 32)
    if m == 8:
        return lane // 4, 32 * (lane % 4) + bit
    return lane // 4 + 8 * (word % 2), 32 * (lane % 4) + bit + 128 * (word // 2)


@pytest.mark.parametrize("operation", ["xor", "and"])
@pytest.mark.parametrize("shape, m, k", BITS)
def test_single_bits_are_combined_and_counted(run, shape, m, k, operation):
    rng = np.random.default_rng(m + k)
    a, b = rng.integers(0, 2, (m, k)), rng.integers(0, 2, (k, 8))
    c = rng.integers(-1000, 1000, (m, 8)).astype(np.int32)
    a_bits = np.array([[a[a_place(m, t, i)] for i in range(m * k // 32)] for t in range(32)])
    b_rows = [[128 * (i // 32) + 32 * (t % 4) + i % 32 for i in range(k // 4)] for t in range(32)]
    b_bits = np.array([b[rows, t // 4] for t, rows in enumerate(b_rows)])
    place = [[(t // 4 + 8 * (i // 2), 2 * (t % 4) + i % 2) for i in range(m // 4)]
             for t in range(32)]  # fmt: skip
    packed = [np.packbits(x.astype(np.uint8), axis=1, bitorder="little").view(np.uint32)
              for x in (a_bits, b_bits)]  # fmt: skip
    c_fragment = np.array([[c[at] for at in row] for row in place], np.int32)
    opcode = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
    got = run_mma(run, opcode, *packed, c_fragment, m // 4, np.int32)
    both = a[:, :, None] ^ b[None] if operation == "xor" else a[:, :, None] & b[None]
    wanted = both.sum(axis=1) + c
    assert got.tolist() == [[wanted[at] for at in row] for row in place]


def quad_a(layout: str, t: int, i: int) -> tuple[int, int]:
    low = t < 16
    return (t % 4 + (0 if low else 4), i) if layout == "row" else (i + (0 if low else 4), t % 4)


def quad_b(layout: str, t: int, i: int) -> tuple[int, int]:
    low = t < 16
    return (i, t % 4 + (0 if low else 4)) if layout == "col" else (t % 4, i + (0 if low else 4))


def quad_c(type_: str, t: int, i: int) -> tuple[int, int]:
    high = 0 if t < 16 else 4
    if type_ == "f16":
        return t % 4 + high, i
    return (t & 1) + (i & 2) + high, (i & 4) + (t & 2) + (i & 1)


@pytest.mark.parametrize("layouts", ["row.col", "col.row", "row.row", "col.col"])
@pytest.mark.parametrize("types", [("f32", "f32"), ("f16", "f16"), ("f32", "f16")])
def test_four_quad_pairs_multiply_their_own_matrices(run, layouts, types):
    (d, c_type), rng = types, np.random.default_rng(5)
    a, b = rng.integers(-8, 9, (4, 8, 4)) / 4, rng.integers(-8, 9, (4, 4, 8)) / 4
    c = rng.integers(-8, 9, (4, 8, 8)) / 4
    first, second = layouts.split(".")
    kinds = {"f16": np.float16, "f32": np.float32}

    def fragment(matrix, place, count, dtype):
        rows = [[matrix[(t // 4 % 4, *place(t, i))] for i in range(count)] for t in range(32)]
        return np.array(rows, dtype)

    got = run_mma(
        run,
        f"mma.sync.aligned.m8n8k4.{layouts}.{d}.f16.f16.{c_type}",
        fragment(a, lambda t, i: quad_a(first, t, i), 4, np.float16),
        fragment(b, lambda t, i: quad_b(second, t, i), 4, np.float16),
        fragment(c, lambda t, i: quad_c(c_type, t, i), 8, kinds[c_type]),
        4 if d == "f16" else 8,
        kinds[d],
    )
    wanted = fragment(a @ b + c, lambda t, i: quad_c(d, t, i), 8, kinds[d])
    assert np.array_equal(got, wanted)
