"""Kernels of one CTA around single instructions, whose registers all hold something random.

An input word is random in every lane, so that the result says which lanes and bits counted. Values
of floating types are small integers, whose sums are exact in any order, unless a case says so.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass

import ml_dtypes
import numpy as np

FLOATS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "f64": np.float64,
}  # fmt: skip
BITS = {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16,
        "tf32": 32, "f32": 32, "s32": 32, "f64": 64}  # fmt: skip
_INFINITY = {
    "f16": (np.uint16, 0x7C00), "bf16": (np.uint16, 0x7F80), "f32": (np.uint32, 0x7F800000),
    "tf32": (np.uint32, 0x7F800000), "f64": (np.uint64, 0x7FF0000000000000),
}  # fmt: skip
RESULT = 100  # the first register of what is stored, unless told

_HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 words, .param .u64 outMAP) {
.shared .align 1024 .b8 tile[32768];
.reg .b32 %r<256>; .reg .b32 %t, %at, %to, %base; .reg .b64 %p<4>, %d<2>, %step, %w<128>;
.reg .pred %q, %on;
ld.param.u64 %p0, [image]; ld.param.u64 %p1, [words]; ld.param.u64 %p2, [out];
mov.u32 %t, %tid.x; mov.u32 %base, tile; setp.eq.u32 %on, 0, 0;
"""
_MAP = ", .param .align 64 .b8 map[128]"
_MAP_ADDRESS = ".reg .b64 %map; mov.b64 %map, map; cvta.param.u64 %map, %map;\n"


@dataclass(frozen=True)
class Map:
    """A tensor map over `image` or `out`, with the arguments of cuTensorMapEncodeTiled."""

    over: str
    dtype: str
    dims: list[int]
    strides: list[int]
    box: list[int]
    element_strides: list[int]
    swizzle: str
    oob_fill: str


@dataclass(frozen=True)
class Im2col:
    """A map in im2col mode over `image` or `out`, with the arguments of cuTensorMapEncodeIm2col."""

    over: str
    dtype: str
    dims: list[int]
    strides: list[int]
    lower: list[int]
    upper: list[int]
    channels: int
    pixels: int
    element_strides: list[int]
    swizzle: str
    oob_fill: str


@dataclass(frozen=True)
class Case:
    """One launch of one CTA: entry k(image, words, out) of `ptx`.

    words: uint32[threads, inputs]. Shape of the output: uint32[threads, results]. `nan_type` is the
    floating type of a result whose NaN PTX leaves open, None for others. With a `tensor_map` it is
    the fourth parameter.
    """

    name: str
    ptx: str
    image: np.ndarray
    words: np.ndarray
    results: int
    nan_type: str | None = None
    tensor_map: Map | Im2col | None = None
    ctas: int = 1
    fp8_sums: str = "f32"

    @property
    def threads(self) -> int:
        return len(self.words)

    def inputs_digest(self) -> str:
        """Of what goes in, 16 hexadecimal digits."""
        return digest(self.image, self.words)

    def digest_of(self, out: np.ndarray) -> str:
        """Of an output, NaN without sign and payload where PTX leaves them open."""
        if self.nan_type is None:
            return digest(out)
        dtype, infinity = _INFINITY[self.nan_type.removesuffix("x2")]
        elements, most = out.view(dtype), dtype(2 ** (8 * dtype().itemsize - 1) - 1)
        return digest(np.where(elements & most > dtype(infinity), most, elements))


def digest(*arrays: np.ndarray) -> str:
    """Of the bytes of arrays; 16 hexadecimal digits."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def kernel(
    body: str,
    inputs: int,
    results: int,
    first: int = RESULT,
    wide: bool = False,
    tensor_map: bool = False,
) -> str:
    """PTX of `body`, which finds its thread's input words at %p3, and a map's address in %map;
    stores registers from `first`."""
    head = _HEAD.replace("outMAP", "out" + (_MAP if tensor_map else ""))
    head += _MAP_ADDRESS if tensor_map else ""
    place = f"mad.wide.u32 %p3, %t, {4 * results}, %p2;\n"
    start = f"mad.wide.u32 %p3, %t, {4 * inputs}, %p1;\n"
    return f"{head}{start}{body}{place}{moves('st', 0, results, first, wide)}ret;\n}}\n"


def moves(way: str, word: int, count: int, register: int, wide: bool = False) -> str:
    """Loads or stores of `count` words from `word` on; `wide` registers hold two."""
    size = 8 if wide else 4
    lines = []
    for i in range(4 * count // size):
        pair = name(register + i, wide), f"[%p3+{4 * word + size * i}]"
        operands = ", ".join(pair if way == "ld" else reversed(pair))
        lines.append(f"{way}.global.b{8 * size} {operands};\n")
    return "".join(lines)


def name(register: int, wide: bool = False) -> str:
    return f"%{'w' if wide else 'r'}{register}"


def registers(first: int, words: int, wide: bool = False) -> str:
    """A vector operand of as many words."""
    names = (name(first + i, wide) for i in range(words // (2 if wide else 1)))
    return "{" + ", ".join(names) + "}"


def generator(text: str) -> np.random.Generator:
    """Random numbers that belong to a name."""
    return np.random.default_rng(zlib.crc32(text.encode()))


def drawn(rng: np.random.Generator, type_: str, words: int, threads: int) -> np.ndarray:
    """uint32[threads, words] of small values of a type; single bits and integers are arbitrary."""
    if type_ == "s32":
        return rng.integers(-1000, 1000, (threads, words)).astype(np.int32).view(np.uint32)
    if type_ in FLOATS:
        values = rng.integers(-4, 5, (threads, words * 32 // BITS[type_]))
        return values.astype(np.float32).astype(FLOATS[type_]).view(np.uint32)
    return rng.integers(0, 1 << 32, (threads, words), np.uint32)


def metadata(rng: np.random.Generator, codes: tuple[int, ...], threads: int) -> np.ndarray:
    """uint32[threads, 1]: eight of `codes` in each."""
    nibbles = rng.choice(codes, (threads, 8)).astype(np.uint32)
    return (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(1, dtype=np.uint32)[:, None]
