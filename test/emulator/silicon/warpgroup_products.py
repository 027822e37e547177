"""wgmma.mma_async and .sp (PTX ISA §9.7.15): descriptors, major orders, swizzles and metadata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from silicon_case import BITS, Case, drawn, generator, kernel, metadata, moves, registers

THREADS, IMAGE_BYTES = 128, 32768
A_AT, B_AT = 0, 14336  # in shared memory
CODES, SINGLE = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE, 0x6), (0x4, 0xE)  # §9.7.15.6
SWIZZLES = {"none": (0, 16), "128B": (1, 128), "64B": (2, 64), "32B": (3, 32)}  # bits 62-63, bytes
DENSE = ("f32.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32", "f32.e4m3.e5m2", "s32.s8.u8")
SPARSE = (
    # types, selectors
    ("f32.f16.f16", 2), ("f16.f16.f16", 2), ("f32.bf16.bf16", 2), ("f32.tf32.tf32", 2),
    ("f32.e4m3.e4m3", 1), ("s32.s8.s8", 1),
)  # fmt: skip
SPARSE_SWIZZLES = (("none", "none"), ("32B", "64B"), ("128B", "128B"), ("registers", "64B"))
DRAWS = 2  # of descriptors and values, for each form
FRAGMENT, METADATA, DESCRIPTORS = 200, 204, 205  # registers; A's fragment has four

_FILL = """shl.b32 %at, %t, 2;
FILL: cvt.u64.u32 %step, %at; add.u64 %p2, %p0, %step; ld.global.b32 %r255, [%p2];
add.u32 %to, %base, %at; st.shared.b32 [%to], %r255;
add.u32 %at, %at, 512; setp.lt.u32 %q, %at, 32768; @%q bra FILL;
ld.param.u64 %p2, [out]; fence.proxy.async.shared::cta; bar.sync 0;
cvt.u64.u32 %step, %base; shr.u64 %step, %step, 4;
"""
_DONE = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"


@dataclass(frozen=True)
class Form:
    """Types D.A.B, the swizzles of A (or "registers") and B, 1 for MN-major ones, and N."""

    types: str
    swizzles: tuple[str, str]
    majors: tuple[int, int]
    n: int
    selector: int | None = None
    signs: tuple[int, int] = (1, 1)
    adds: bool = True
    saturates: bool = False

    @property
    def depths(self) -> tuple[int, int]:
        """Elements along K of a row of A and of B."""
        k = 256 // BITS[self.types.split(".")[1]]
        return k, k if self.selector is None else 2 * k

    @property
    def results(self) -> int:
        return self.n * BITS[self.types.partition(".")[0]] // 64

    @property
    def title(self) -> str:
        chosen = "" if self.selector is None else f", {self.selector}"
        a, b = zip(self.swizzles, self.majors, strict=True)
        more = "" if self.signs == (1, 1) and self.adds else f" {self.signs} {self.adds}"
        return f"{self.opcode}{chosen} A {a[0]} {a[1]} B {b[0]} {b[1]}{more}"

    @property
    def opcode(self) -> str:
        sparse = "" if self.selector is None else ".sp"
        shape = f"m64n{self.n}k{self.depths[1]}"
        saturates = ".satfinite" if self.saturates else ""
        return f"wgmma.mma_async{sparse}.sync.aligned.{shape}.{self.types}{saturates}"

    @property
    def instruction(self) -> str:
        """With D, the accumulator too, in registers 0 on."""
        in_registers = self.swizzles[0] == "registers"
        a = registers(FRAGMENT, 4) if in_registers else "%d0"
        chosen = "" if self.selector is None else f", %r{METADATA}, {self.selector}"
        signs = f", {self.signs[0]}, {self.signs[1]}" if not self.types.startswith("s32") else ""
        flags = f", {'' if self.adds else '!'}%on{signs}"
        if BITS[self.types.split(".")[1]] == 16:
            flags += "".join(f", {major}" for major in self.majors[in_registers:])
        return f"{self.opcode} {registers(0, self.results)}, {a}, %d1{chosen}{flags};\n"


def warpgroup_products() -> Iterator[Case]:
    """Every swizzle and major order of A and of B, with random strides and starts; then sparse."""
    for form in (*_dense(), *_sparse(), *_flagged()):
        text = _kernel(form)
        for draw in range(DRAWS):
            title = f"{form.title} #{draw}"
            yield Case(title, text, *_inputs(form, generator(title)), form.results)


def _dense() -> Iterator[Form]:
    for types, swizzle in itertools.product(DENSE, SWIZZLES):
        yield Form(types, (swizzle, swizzle), (0, 0), 64)
    for a, b in itertools.product(SWIZZLES, SWIZZLES):
        for majors in ((0, 1), (1, 0), (1, 1)):
            yield Form("f32.f16.f16", (a, b), majors, 128)


def _sparse() -> Iterator[Form]:
    for types, count in SPARSE:
        for selector, swizzles in itertools.product(range(count), SPARSE_SWIZZLES):
            yield Form(types, swizzles, (0, 0), 32, selector)


def _flagged() -> Iterator[Form]:
    """Negated operands, sums that start anew, saturation, A in registers, every few N."""
    for signs, adds in itertools.product(((1, -1), (-1, 1), (-1, -1)), (True, False)):
        yield Form("f32.f16.f16", ("128B", "64B"), (0, 1), 64, signs=signs, adds=adds)
        yield Form("f16.f16.f16", ("registers", "64B"), (0, 0), 32, signs=signs, adds=adds)
    for saturates, adds in itertools.product((False, True), (False, True)):
        for types in ("s32.s8.s8", "s32.u8.s8", "s32.u8.u8"):
            yield Form(types, ("128B", "none"), (0, 0), 32, adds=adds, saturates=saturates)
    for types in ("f32.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32", "f32.e5m2.e4m3", "f16.e4m3.e4m3",
                  "s32.s8.s8"):  # fmt: skip
        for n in (8, 24, 48, 96, 160, 208, 256):
            yield Form(types, ("registers" if n % 32 else "32B", "64B"), (0, 0), n)


def _kernel(form: Form) -> str:
    count = form.results
    body = _FILL + moves("ld", 0, count, 0) + moves("ld", count, 9, FRAGMENT)
    for number in range(2):
        low = DESCRIPTORS + 2 * number
        body += f"mov.b64 %d{number}, {{%r{low}, %r{low + 1}}};\n"
        body += f"add.u64 %d{number}, %d{number}, %step;\n"
    body += f"wgmma.fence.sync.aligned;\n{form.instruction}{_DONE}"
    return kernel(body, count + 9, count, first=0)


def _inputs(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shared memory, and each thread's accumulator, fragment of A, metadata and descriptors."""
    d, a, b = form.types.split(".")
    codes = SINGLE if a == "tf32" else CODES
    sums = drawn(rng, "u8" if form.saturates else d, form.results, THREADS)  # u8: any bits
    words = [sums, drawn(rng, a, 4, THREADS)]
    words.append(metadata(rng, codes, THREADS))
    for which, start in enumerate((A_AT, B_AT)):
        span = form.depths[which] * BITS[(a, b)[which]] // 8
        most = 16384 // (form.n if which else 64)  # bytes from 8 rows to the next
        word = _descriptor(rng, form.swizzles[which], form.majors[which], span, 8 * most)
        word += start >> 4
        words.append(np.tile(np.array([word], np.uint64).view(np.uint32), (THREADS, 1)))
    parts = [drawn(rng, a, B_AT // 4, 1), drawn(rng, b, (IMAGE_BYTES - B_AT) // 4, 1)]
    image = np.concatenate([part.view(np.uint8).reshape(-1) for part in parts])
    return image, np.concatenate(words, axis=1)


def _descriptor(
    rng: np.random.Generator, swizzle: str, major: int, span: int, most_stride: int
) -> int:
    """A legal one with random strides; K-major rows of `span` bytes may start inside an atom."""
    code, width = SWIZZLES.get(swizzle, SWIZZLES["none"])
    unit, start = 8 * width, 0
    if major:
        most = max(1, min(8, 7168 // unit // (8 if width == 16 else 2)))
        leading, stride = (int(each) * unit for each in rng.integers(1, most + 1, 2))
    else:
        leading = 128 * int(rng.integers(1, 17))
        stride = unit * int(rng.integers(1, min(1024, most_stride) // unit + 1))
        start = 32 * int(rng.integers(0, max(0, width - span) // 32 + 1))
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | code << 62
