"""mma.sync and mma.sp (PTX ISA §9.7.14.5.14, §9.7.14.6.3): fragments and metadata in registers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from silicon_case import BITS, RESULT, Case, drawn, generator, kernel, metadata, moves, registers

ORDERED = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)
ANY_ORDER = (*ORDERED, 0x1, 0x2, 0x6, 0x3, 0x7, 0xB)
SINGLE = (0x4, 0xE)  # of tf32, one of two
DENSE = (
    ("m16n8k8", "f32.f16.f16.f32"), ("m16n8k16", "f16.f16.f16.f16"),
    ("m16n8k16", "f32.bf16.bf16.f32"), ("m16n8k4", "f32.tf32.tf32.f32"),
    ("m16n8k8", "f32.tf32.tf32.f32"), ("m16n8k32", "f32.e4m3.e5m2.f32"),
    ("m8n8k16", "s32.s8.u8.s32"), ("m16n8k32", "s32.u8.s8.s32"), ("m8n8k32", "s32.s4.u4.s32"),
    ("m16n8k64", "s32.u4.s4.s32"), ("m8n8k4", "f64.f64.f64.f64"),
    ("m16n8k16", "f64.f64.f64.f64"),
)  # fmt: skip
SPARSE = (
    # shape, types, selectors
    ("m16n8k16", "f32.f16.f16.f32", 4), ("m16n8k32", "f16.f16.f16.f16", 2),
    ("m16n8k16", "f32.bf16.bf16.f32", 4), ("m16n8k32", "f32.bf16.bf16.f32", 2),
    ("m16n8k8", "f32.tf32.tf32.f32", 4), ("m16n8k16", "f32.tf32.tf32.f32", 2),
    ("m16n8k64", "f32.e4m3.e5m2.f32", 1), ("m16n8k64", "s32.u8.s8.s32", 1),
)  # fmt: skip
SINGLE_PRODUCTS = (
    ("m16n8k16", "f32.f16.f16.f32"), ("m16n8k32", "f32.e4m3.e4m3.f32"),
    ("m16n8k32", "f32.e5m2.e5m2.f32"), ("m16n8k8", "f16.f16.f16.f16"),
)  # fmt: skip
MORE = (
    ("m8n8k128", "s32.b1.b1.s32.and.popc"), ("m16n8k128", "s32.b1.b1.s32.and.popc"),
    ("m16n8k256", "s32.b1.b1.s32.and.popc"), ("m16n8k8", "f32.bf16.bf16.f32"),
    ("m16n8k16", "s32.s8.s8.s32"), ("m16n8k32", "s32.u8.u8.s32"), ("m16n8k32", "s32.s4.s4.s32"),
    ("m16n8k4", "f64.f64.f64.f64"), ("m16n8k8", "f64.f64.f64.f64"), ("m16n8k8", "f16.f16.f16.f16"),
    ("m16n8k16", "f32.e4m3.e4m3.f32"), ("m16n8k32", "f16.e4m3.e4m3.f16"),
)  # fmt: skip
SATURATING = (
    ("m16n8k32", "s32.s8.u8.s32"), ("m8n8k16", "s32.u8.u8.s32"), ("m16n8k64", "s32.s4.u4.s32"),
)  # fmt: skip
EVERY = (
    (("f16",), ("m16n8k8", "m16n8k16"), ("f16", "f32")),
    (("bf16",), ("m16n8k8", "m16n8k16"), ("f32",)),
    (("e4m3", "e5m2"), ("m16n8k16", "m16n8k32"), ("f16", "f32")),
    (("s8", "u8"), ("m8n8k16", "m16n8k16", "m16n8k32"), ("s32",)),
    (("s4", "u4"), ("m8n8k32", "m16n8k32", "m16n8k64"), ("s32",)),
)
"""Types of A and of B, shapes and types of sums; tf32, single bits and f64 stand above."""
SLOTS = 20  # registers between the operands


def warp_products() -> Iterator[Case]:
    """Dense ones, then sparse ones with every selector."""
    for shape, types in DENSE:
        yield _case(f"mma.sync.aligned.{shape}.row.col.{types}", shape, types)
    for shape, types in MORE:
        operands = ".".join(types.split(".")[:4])  # ahead of what joins single bits
        yield _case(f"mma.sync.aligned.{shape}.row.col.{types}", shape, operands)
    for shape, types in SATURATING:
        for flag in ("", "satfinite."):
            opcode = f"mma.sync.aligned.{shape}.row.col.{flag}{types}"
            yield _case(opcode, shape, types, any_sums=True)
    for shape, types in SINGLE_PRODUCTS:
        yield _single(f"mma.sync.aligned.{shape}.row.col.{types}", shape, types)
    for shape, types, count in SPARSE:
        for flag, codes in (("sp", ANY_ORDER), ("sp::ordered_metadata", ORDERED)):
            for selector in range(count):
                opcode = f"mma.{flag}.sync.aligned.{shape}.row.col.{types}"
                legal = SINGLE if "tf32" in types else codes
                yield _case(opcode, shape, types, selector, legal)


def other_products() -> Iterator[Case]:
    """Dense ones of every form that stands in no list above, and those of m8n8k4 of f16."""
    known = {case.name for case in warp_products()}
    for types, shapes, sums in EVERY:
        for a, b, shape, d in itertools.product(types, types, shapes, sums):
            flags = ("", "satfinite.") if d == "s32" else ("",)
            for flag in flags:
                opcode = f"mma.sync.aligned.{shape}.row.col.{flag}{d}.{a}.{b}.{d}"
                case = _case(opcode, shape, f"{d}.{a}.{b}.{d}", any_sums=bool(flag))
                if case.name not in known:
                    yield case
    for a, b in itertools.product(("row", "col"), repeat=2):
        for d, c in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
            yield _quads(f"mma.sync.aligned.m8n8k4.{a}.{b}.{d}.f16.f16.{c}", d, c)


def _quads(opcode: str, d: str, c: str) -> Case:
    """One of 8 rows and columns for each of four groups of eight lanes."""
    rng, counts = generator(opcode), {"f16": 4, "f32": 8}
    sizes = (("f16", 2), ("f16", 2), (c, counts[c]))
    parts = [drawn(rng, type_, count, 32) for type_, count in sizes]
    body, operands = _operands([part.shape[1] for part in parts], wide=False)
    body += f"{opcode} {registers(RESULT, counts[d])}, {operands};\n"
    words = np.concatenate(parts, axis=1)
    text = kernel(body, words.shape[1], counts[d])
    return Case(opcode, text, np.zeros(4, np.uint8), words, counts[d])


def _case(
    opcode: str,
    shape: str,
    types: str,
    selector: int = 0,
    codes: tuple[int, ...] = (),
    any_sums: bool = False,
) -> Case:
    """One instruction; of A, whose rows are half as long, too where `codes` are given."""
    title = f"{opcode}, {selector}" if codes else opcode + " (any sums)" * any_sums
    rng, (d, a, b, c) = generator(title), types.split(".")
    m, k = int(shape[1 : shape.index("n")]), int(shape.partition("k")[2])
    sizes = (m * k * BITS[a] // (2 if codes else 1), 8 * k * BITS[b], m * 8 * BITS[c])
    parts = [
        drawn(rng, type_, size // 1024, 32) for type_, size in zip((a, b, c), sizes, strict=True)
    ]
    if any_sums:
        parts[2] = drawn(rng, "u8", parts[2].shape[1], 32)
    parts += [metadata(rng, codes, 32)] if codes else []
    results, wide = m * 8 * BITS[d] // 1024, d == "f64"
    body, operands = _operands([part.shape[1] for part in parts], wide)
    tail = f", {selector}" if codes else ""
    body += f"{opcode} {registers(RESULT, results, wide)}, {operands}{tail};\n"
    words = np.concatenate(parts, axis=1)
    text = kernel(body, words.shape[1], results, wide=wide)
    return Case(title, text, np.zeros(4, np.uint8), words, results)


def _single(opcode: str, shape: str, types: str) -> Case:
    """A column of A and of B that hold any bits, so that each sum has one product."""
    title = f"{opcode} (single products)"
    rng, (d, a, b, c) = generator(title), types.split(".")
    m, k = int(shape[1 : shape.index("n")]), int(shape.partition("k")[2])
    sizes = (m * k * BITS[a] // 1024, 8 * k * BITS[b] // 1024, m * 8 * BITS[c] // 1024)
    parts = [np.zeros((32, size), np.uint32) for size in sizes]
    lanes = np.arange(32) % 4 == 1  # they hold the same columns of A, and rows of B
    for part, bits in ((parts[0], BITS[a]), (parts[1], BITS[b])):
        mask = np.uint32((1 << bits) - 1)
        part[lanes, 0] = rng.integers(0, 1 << 32, 8, np.uint32) & mask
        if part.shape[1] > 1 and m == 16 and part is parts[0]:
            part[lanes, 1] = rng.integers(0, 1 << 32, 8, np.uint32) & mask
    results = m * 8 * BITS[d] // 1024
    body, operands = _operands([part.shape[1] for part in parts], wide=False)
    body += f"{opcode} {registers(RESULT, results)}, {operands};\n"
    words = np.concatenate(parts, axis=1)
    text = kernel(body, words.shape[1], results)
    nan = d if d == "f32" else "f16x2"
    return Case(title, text, np.zeros(4, np.uint8), words, results, nan)


def _operands(counts: list[int], wide: bool) -> tuple[str, str]:
    """Loads of A, B, C and metadata, of as many words, and their names."""
    body, names, word = "", [], 0
    for number, count in enumerate(counts):
        body += moves("ld", word, count, SLOTS * number, wide)
        vector = registers(SLOTS * number, count, wide)
        names.append(vector if number < 3 else vector.strip("{}"))
        word += count
    return body, ", ".join(names)
