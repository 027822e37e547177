"""wmma: loads of A, B and C, a product and a store of D, of every shape, type and layout.

PTX leaves open which lane holds what (§9.7.14.4), so only the four together have a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from silicon_case import BITS, FLOATS, Case, generator

SHAPES = ("m16n16k16", "m8n32k16", "m32n8k16")
FORMS = (
    *((("f16", "f16", c, d), shape)
      for shape in SHAPES for c in ("f16", "f32") for d in ("f16", "f32")),
    *((("bf16", "bf16", "f32", "f32"), shape) for shape in SHAPES),
    (("tf32", "tf32", "f32", "f32"), "m16n16k8"),
    *(((type_, type_, "s32", "s32"), shape) for shape in SHAPES for type_ in ("s8", "u8")),
    (("s4", "s4", "s32", "s32"), "m8n8k32"), (("u4", "u4", "s32", "s32"), "m8n8k32"),
    (("b1", "b1", "s32", "s32"), "m8n8k128"), (("f64", "f64", "f64", "f64"), "m8n8k4"),
)  # fmt: skip
"""Types of A, B, C and D, and shapes."""
_OPERAND_REGISTERS = {
    "f16": dict.fromkeys(SHAPES, (8, 8)), "tf32": {"m16n16k8": (4, 4)},
    "bf16": dict(zip(SHAPES, ((4, 4), (2, 8), (8, 2)), strict=True)),
    "s8": dict(zip(SHAPES, ((2, 2), (1, 4), (4, 1)), strict=True)),
}  # fmt: skip
_SUM_REGISTERS = {"f16": 4, "f32": 8, "s32": 8, "f64": 2}
_GAP = 32
"""Bytes behind each row, so that strides count."""
_HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 words, .param .u64 out) {
.shared .align 16 .b8 tile[16384];
.reg .b32 %r<64>, %t; .reg .b64 %d<64>, %g<8>;
ld.param.u64 %g0, [image]; ld.param.u64 %g2, [out]; mov.u32 %t, %tid.x;
"""
_TO_SHARED = "shl.b32 %r60, %t, 2; mov.u32 %r61, tile; add.u32 %r62, %r61, %r60;" + (
    " cvt.u64.u32 %g4, %r60; add.u64 %g4, %g4, %g0;\n"
)


class Product(NamedTuple):
    """types: of A, B, C and D; layouts: of A, B and C with D."""

    types: tuple[str, str, str, str]
    shape: str
    layouts: tuple[str, str, str]
    saturates: str
    space: str
    combines: str

    @property
    def opcode(self) -> str:
        a, b, c, d = self.types
        types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
        layouts = ".".join(self.layouts[:2])
        end = f"{layouts}.{self.shape}.{types}{self.saturates}"
        return f"wmma.mma.{self.combines}sync.aligned.{end}"

    @property
    def extents(self) -> tuple[int, int, int]:
        m, rest = self.shape[1:].split("n")
        return int(m), *map(int, rest.split("k"))


def wmma_products() -> Iterator[Case]:
    """Layouts in each combination from global memory, the first also from others."""
    for types, shape in FORMS:
        a, _, _, d = types
        pairs = [("row", "col")] if BITS[a] < 8 else itertools.product(("row", "col"), repeat=2)
        layouts = [(*pair, c) for pair in pairs for c in ("row", "col")]
        may_saturate = d == "s32" and a != "b1"
        for each in layouts:
            for saturates in ("", ".satfinite") if may_saturate else ("",):
                spaces = ("global", "shared", "") if each == layouts[0] else ("global",)
                for space in spaces:
                    combines = "and.popc." if a == "b1" else ""
                    yield _case(Product(types, shape, each, saturates, space, combines))


def _case(product: Product) -> Case:
    a, b, c, d = product.types
    m, n, k = product.extents
    name = f"{product.opcode} C {product.layouts[2]} {product.space or 'generic'}"
    rng = generator(name)
    sizes = ((a, m, k), (b, k, n), (c, m, n))
    matrices = [
        _matrix(rng, type_, *((rows, columns) if layout == "row" else (columns, rows)))
        for (type_, rows, columns), layout in zip(sizes, product.layouts, strict=True)
    ]
    strides = [
        each.shape[1] * 8 // BITS[type_]
        for each, type_ in zip(matrices, product.types[:3], strict=True)
    ]
    flat = [np.pad(each.ravel(), (0, -each.size % 256)) for each in matrices]
    places = [0, len(flat[0]), len(flat[0]) + len(flat[1])]
    text = _text(product, places, strides, sum(map(len, flat)))
    words = np.zeros((32, 1), np.uint32)
    return Case(name, text, np.concatenate(flat), words, m * n * BITS[d] // 1024)


def _matrix(rng: np.random.Generator, type_: str, outer: int, inner: int) -> np.ndarray:
    """uint8[outer, bytes of a row with its gap]."""
    if type_ in FLOATS:
        values = rng.integers(-4, 5, (outer, inner)).astype(np.float32).astype(FLOATS[type_])
        rows = values.view(np.uint8).reshape(outer, -1)
    elif type_ == "s32":
        values = rng.integers(-1000, 1000, (outer, inner)).astype(np.int32)
        rows = values.view(np.uint8).reshape(outer, -1)
    else:
        rows = rng.integers(0, 256, (outer, inner * BITS[type_] // 8)).astype(np.uint8)
    return np.pad(rows, ((0, 0), (0, _GAP)))


def _text(product: Product, places: list[int], strides: list[int], size: int) -> str:
    a, b, c, d = product.types
    shape, (row, column, of_sums) = product.shape, product.layouts
    space = f".{product.space}" if product.space else ""
    counts = _counts(product)
    base = "%r61" if product.space == "shared" else "%g0"
    text = _HEAD + (_copied(size) if product.space == "shared" else "")
    loads = zip("abc", (row, column, of_sums), (a, b, c), counts, places, strides, strict=False)
    for at, (name, layout, type_, count, place, stride) in enumerate(loads):
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.{shape}{space}.{type_}"
        text += f"{opcode} {_list(type_, 10 * at, count)}, [{base}+{place}], {stride};\n"
    of_four = enumerate(zip((a, b, c, d), counts, strict=True))
    lists = [_list(type_, 10 * at, count) for at, (type_, count) in of_four]
    text += f"{product.opcode} {', '.join((lists[3], *lists[:3]))};\n"
    stride = product.extents[1 if of_sums == "row" else 0]
    store = f"wmma.store.d.sync.aligned.{of_sums}.{shape}.global.{d}"
    return text + f"{store} [%g2], {lists[3]}, {stride};\nret;\n}}\n"


def _copied(size: int) -> str:
    copies = (
        f"ld.global.b32 %r63, [%g4+{at}]; st.shared.b32 [%r62+{at}], %r63;\n"
        for at in range(0, size, 128)
    )
    return _TO_SHARED + "".join(copies) + "bar.warp.sync -1;\n"


def _counts(product: Product) -> tuple[int, int, int, int]:
    """Registers of A, B, C and D."""
    a, _, c, d = product.types
    operands = _OPERAND_REGISTERS.get("s8" if a == "u8" else a, {}).get(product.shape, (1, 1))
    if product.shape.startswith("m8n8k") and a != "f64":
        return *operands, 2, 2
    return *operands, _SUM_REGISTERS[c], _SUM_REGISTERS[d]


def _list(type_: str, first: int, count: int) -> str:
    kind = "d" if type_ == "f64" else "r"
    return "{" + ", ".join(f"%{kind}{first + i}" for i in range(count)) + "}"
