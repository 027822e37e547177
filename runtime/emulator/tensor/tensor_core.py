"""The matrix engine: operands gathered through the canonical layouts, products, data-path maps.

Operand layouts give the byte offset of element (r, k), r being the M or N index, before the
swizzle is applied to the absolute address (PTX ISA, tcgen05 "Canonical layouts"). All of them keep
8-byte groups together, so an operand is one gather of 64-bit words.

Numerics: operand values are held exactly in float32 and their products are exact there (tf32
operands drop their 13 low bits), sums of 8-bit integer products too; other sums are formed in
float32 in numpy's order. PTX leaves the order and the internal precision of the accumulation open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import Trap
from ..machine import swizzle
from ..machine.swizzle import PATTERN_BYTES, Swizzle
from .descriptor import SATURATING, InstructionDescriptor, SharedDescriptor, check_major
from .element_formats import decode, decode_contained, decode_padded, is_small

ONE_THREAD_PRODUCTS = 1 << 18
"""Multiplications of a matrix product up to which OpenBLAS uses one thread."""
WORD = 8
"""Bytes of the unit in which operands are gathered."""


@dataclass(frozen=True)
class Layout:
    """Geometry of one operand in shared memory, independent of where it starts.

    ``rows`` x ``k`` elements of ``bits`` bits; ``transposed`` means rows are contiguous (MN-major);
    ``leading`` and ``stride`` in bytes; ``phase`` is the start address modulo the swizzle pattern.
    """

    rows: int
    k: int
    bits: int
    transposed: bool
    leading: int
    stride: int
    base_offset: int
    swizzle: Swizzle
    phase: int


def operand_layout(
    descriptor: SharedDescriptor, rows: int, k: int, bits: int, transposed: bool, name: str
) -> Layout:
    """Layout of operand ``name`` ("A" or "B"); ``Trap`` for an illegal combination."""
    check_major(descriptor.swizzle, bits, transposed, name)
    phase = descriptor.start % PATTERN_BYTES
    return Layout(rows, k, bits, transposed, descriptor.leading, descriptor.stride,
                  descriptor.base_offset, descriptor.swizzle, phase)  # fmt: skip


def check_row(layout: Layout, what: str) -> None:
    """Trap if the contiguous bytes of an operand leave the swizzled row in which they start."""
    span, at = layout.swizzle.span, layout.phase % layout.swizzle.span
    size = (layout.rows if layout.transposed else layout.k) * layout.bits // 8
    reach = min(size, span) if layout.transposed else size
    if layout.swizzle is swizzle.NONE or at + reach <= span:
        return
    axis = "M or N" if layout.transposed else "K"
    raise Trap(
        "descriptor",
        f"{what} starts at byte {at} of a row of {span} (swizzle {layout.swizzle.name}) and reads"
        f" {reach} bytes along {axis}, beyond the row's end; the next ones lie in another row",
    )


def logical_offsets(layout: Layout, r: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Byte offset from the start address of elements (r, k), before the swizzle."""
    if layout.transposed:
        return _mn_major(layout, r * (layout.bits // 8), k)
    return _k_major(layout, r, k * layout.bits // 8)


def _k_major(layout: Layout, r: np.ndarray, k_bytes: np.ndarray) -> np.ndarray:
    if layout.swizzle is swizzle.NONE:
        chunk = k_bytes % 16 + k_bytes // 16 * layout.leading
        return r % 8 * 16 + r // 8 * layout.stride + chunk
    return r % 8 * layout.swizzle.span + r // 8 * layout.stride + k_bytes


def _mn_major(layout: Layout, r_bytes: np.ndarray, k: np.ndarray) -> np.ndarray:
    if layout.swizzle is swizzle.NONE:
        row = r_bytes % 16 + r_bytes // 16 * layout.stride
        return row + k % 8 * 16 + k // 8 * layout.leading
    span = layout.swizzle.span
    group = 4 if layout.swizzle is swizzle.B128_ATOM_32B else 8
    row = r_bytes % span + r_bytes // span * layout.leading
    return row + k % group * span + k // group * layout.stride


@dataclass(frozen=True)
class GatherPlan:
    """Word indices of an operand relative to its start word, and the span they cover.

    ``words`` is ``int64[outer, words per contiguous run]``: outer is r for K-major operands and k
    for transposed ones. ``low`` and ``high`` bound the bytes read, relative to the start address;
    ``overlaps`` if a word is read for several elements.
    """

    words: np.ndarray
    low: int
    high: int
    overlaps: bool


@lru_cache(maxsize=4096)
def gather_plan(layout: Layout) -> GatherPlan:
    """Index array of a layout; valid for every start address with the same ``phase``."""
    step = WORD * 8 // layout.bits
    if layout.transposed:
        outer, inner = np.arange(layout.k)[:, None], np.arange(0, layout.rows, step)[None, :]
        offsets = logical_offsets(layout, inner, outer)
    else:
        outer, inner = np.arange(layout.rows)[:, None], np.arange(0, layout.k, step)[None, :]
        offsets = logical_offsets(layout, outer, inner)
    absolute = layout.swizzle.apply(offsets + layout.phase, layout.base_offset)
    relative = absolute - layout.phase
    words = relative // WORD
    low, high = int(words.min()) * WORD, (int(words.max()) + 1) * WORD
    return GatherPlan(words, low, high, len(np.unique(words)) < words.size)


def operand_matrix(words: np.ndarray, layout: Layout, type_name: str) -> np.ndarray:
    """``float32[rows, k]`` of gathered ``uint64`` words (in the order of ``gather_plan``)."""
    return decode_words(words, type_name, layout.transposed)


def decode_words(words: np.ndarray, type_name: str, transposed: bool) -> np.ndarray:
    """``float32[rows, k]`` of words that run along K or, ``transposed``, along the rows."""
    decoder = decode_padded if is_small(type_name) else to_float32
    matrix = decoder(np.ascontiguousarray(words), type_name)
    return matrix.T if transposed else matrix


def to_float32(raw: np.ndarray, type_name: str) -> np.ndarray:
    """Values of little-endian packed elements (PTX type names) as float32, small ones in bytes."""
    return decode_contained(raw, type_name) if is_small(type_name) else decode(raw, type_name)


def multiply(descriptor: InstructionDescriptor, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``float32[m, n]`` = A[m, k] . B[n, k]^T with the descriptor's negations.

    The product goes in blocks that BLAS keeps on one thread: waking more costs milliseconds a call
    on a busy machine.
    """
    product = np.empty((len(a), len(b)), np.float32)
    edge = math.isqrt(ONE_THREAD_PRODUCTS // max(a.shape[1], 1))
    height, width = _edge(len(a), edge), _edge(len(b), edge)
    left = a.reshape(-1, 1, height, a.shape[1])
    right = np.ascontiguousarray(b.reshape(-1, width, b.shape[1]).transpose(0, 2, 1))
    blocks = product.reshape(len(left), height, len(right), width).transpose(0, 2, 1, 3)
    with np.errstate(all="ignore"):
        np.matmul(left, right, out=blocks)
    return 0 - product if descriptor.negate_a != descriptor.negate_b else product


def _edge(extent: int, most: int) -> int:
    """The longest of the equal pieces, up to ``most`` long, that an extent divides into."""
    pieces = -(-extent // most)
    while extent % pieces:
        pieces += 1
    return extent // pieces


@dataclass(frozen=True)
class Block:
    """A block of D or A and its place: rows and columns of the matrix, CTA of the pair, lanes,
    first column relative to the accumulator's address."""

    rows: slice
    columns: slice
    cta: int
    lanes: slice
    first_column: int


def _block(row: int, rows: int, columns: slice, cta: int, lane: int, first: int = 0) -> Block:
    return Block(slice(row, row + rows), columns, cta, slice(lane, lane + rows), first)


@lru_cache(maxsize=256)
def data_path(layout: str, n: int) -> tuple[Block, ...]:
    """Blocks of a tcgen05.mma data-path layout "A".."G" for an accumulator of ``n`` columns.

    A: M=256 pair; B: M=128 pair dense; C: M=128 pair sparse; D: M=128; E: M=64 .ws; F: M=64;
    G: M=32 .ws. Lanes 16-31 of each quarter stay free in C and F.
    """
    whole = slice(0, n)
    halves = [(slice(0, n // 2), 0), (slice(n // 2, n), 1)]
    if layout == "A":
        return tuple(_block(128 * c, 128, whole, c, 0) for c in (0, 1))
    if layout == "B":
        return tuple(_block(64 * c, 64, cols, c, 64 * h) for c in (0, 1) for cols, h in halves)
    if layout == "C":
        places = [(c, q) for c in (0, 1) for q in range(4)]
        return tuple(_block(64 * c + 16 * q, 16, whole, c, 32 * q) for c, q in places)
    if layout == "D":
        return (_block(0, 128, whole, 0, 0),)
    if layout == "E":
        return tuple(_block(0, 64, cols, 0, 64 * h) for cols, h in halves)
    if layout == "F":
        return tuple(_block(16 * q, 16, whole, 0, 32 * q) for q in range(4))
    quarters = [slice(q * n // 4, (q + 1) * n // 4) for q in range(4)]
    return tuple(_block(0, 32, quarters[q], 0, 32 * q) for q in range(4))


def dense_layout(m: int, cta_group: int, stationary: bool = False) -> str:
    """Data-path layout of a dense operation; ``stationary``: with ``.ws``."""
    if stationary:
        return {32: "G", 64: "E", 128: "D"}[m]
    if cta_group == 1:
        return "D" if m == 128 else "F"
    return "A" if m == 256 else "B"


def accumulate(
    words: np.ndarray, product: np.ndarray, type_name: str, add: bool, scale: int = 0
) -> None:
    """Change the 32-bit ``words`` of a D block by the float32 ``product``.

    ``add`` keeps the old values, times 2^-``scale``. An f16 element uses the low half of its word;
    the high half is kept.
    """
    if type_name.startswith("s32"):
        saturates = type_name.endswith(SATURATING)
        words[...] = _accumulate_integers(words, product, saturates, add)
        return
    with np.errstate(all="ignore"):
        if type_name == "f32":
            _add_to(words.view(np.float32), product, add, scale)
            return
        total = (words & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float32)
        _add_to(total, product, add, scale)
        low = total.astype(np.float16).view(np.uint16).astype(np.uint32)
    words[...] = (words & np.uint32(0xFFFF0000)) | low


def _add_to(values: np.ndarray, product: np.ndarray, add: bool, scale: int) -> None:
    if not add:
        values[...] = product
        return
    if scale:
        values *= np.float32(2.0**-scale)
    values += product


def _accumulate_integers(
    words: np.ndarray, product: np.ndarray, saturates: bool, add: bool
) -> np.ndarray:
    total = product.astype(np.int64) + (words.view(np.int32) if add else 0)
    if saturates:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.uint32)
