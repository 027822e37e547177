"""Arrays for a spec's product whose every sum is exact, and the product itself in float64.

    exact = ExactProduct(spec, seed)
    launch(bundle, exact.arrays)        # by the names of a kernel that was made of a spec
    exact.wrong()                       # "" where every bit is right, and nothing else was written

Elements are small integers, scales powers of two, so that every order of sums gives the same bits.
Nothing of the compiler, its manifests or its judge is read here: what an array is follows from the
fields of the spec, as docs/block-scales.md, docs/weights.md and docs/grouped.md tell.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import torch
from held_tensors import bit_rounded

from tilewright import scales

TORCH = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "s32": torch.int32,
    "s8": torch.int8,
    "u8": torch.uint8,
    "tf32": torch.float32,
    "3xtf32": torch.float32,
    "bf16x9": torch.float32,
}
SIX = {0: 0, 1: 8, 2: 16}, {0: 0, 1: 12, 2: 16}
"""Codes of e2m3 and e3m2: exponents of two and three bits (OCP Microscaling Formats 1.0, §5.3)."""
FOUR = {0: 0, 1: 2, 2: 4}
PACKED = {
    "mxfp6": (6, SIX[0]),
    "mxfp6_e3m2": (6, SIX[1]),
    **dict.fromkeys(("mxfp4", "nvfp4", "mxfp4_1x16"), (4, FOUR)),
}
BLOCK = {"nvfp4": 16, "mxfp4_1x16": 16, "mxfp8_1x128": 128, "mxfp8_128x128": 128}
LINEAR_ALONE = ("mxfp8_1x128", "mxfp8_128x128", "mxfp4_1x16")
BYTE_FLOATS = {"mxfp8_e5m2": torch.float8_e5m2}
POISON = 0x7B


class ExactProduct:
    """The arrays of a spec of known sizes, outputs poisoned, and what they should become."""

    def __init__(self, spec: Any, seed: int):
        self.spec, self.draw = spec, random.Random(f"exact {seed}")
        self.made = np.random.default_rng(seed)
        self.arrays: dict[str, torch.Tensor] = {}
        with np.errstate(invalid="ignore"):  # infinities times zeros, where there are such
            sums, self.rows_written = self._sums()
        self.wanted = {"c": spec.c_dtype} | {f"c{n}": e for n, e in enumerate(spec.further, 1)}
        self.results = dict(zip(self.wanted, self._results(sums), strict=True))
        self.quantised = self._quantised() if spec.quantized else {}
        for name, dtype in self.wanted.items():
            gaps = (spec.ldc, spec.stride_c) if name == "c" else (0, 0)
            self.arrays[name] = _poisoned(self.results[name].shape, dtype, gaps)

    def _results(self, sums: list[np.ndarray]) -> list[np.ndarray]:
        """What each output holds, in float64, of the sums of one product or of two."""
        return [math.prod(sums[1:], start=sums[0])] * len(self.wanted)

    def _quantised(self) -> dict[str, torch.Tensor]:
        """The bytes of a C in blocks and of their scales, which are no longer among `wanted`."""
        form, rounding = self.wanted.pop("c"), self.spec.scale_rounding
        made = scales.quantize(torch.from_numpy(self.results["c"]).float(), form, rounding)
        found = {"c": made.data, "c_scales": scales.to_blocked(made.scales)}
        for name, each in found.items():
            self.arrays[name] = torch.empty_like(each)
            self.arrays[name].view(torch.uint8).fill_(POISON)
        return found

    # operands

    def _integers(self, *shape: int, most: int = 2) -> np.ndarray:
        return self.made.integers(-most, most + 1, shape).astype(np.float64)

    def _sums(self) -> tuple[list[np.ndarray], int | None]:
        """The sums of each product, and how many rows of them a group has, if there are any."""
        spec = self.spec
        if spec.group_size or spec.b_dtype in ("s4", "u4"):
            return [self._operand("a", spec.m) @ self._weights().T], None
        if spec.groups and spec.group_axis == "k":
            return [self._groups_of_k()], None
        if spec.groups:
            return self._groups_of_rows()
        a = self._operand("a", spec.m)
        bs = [self._operand("b", spec.n)]
        bs += [self._operand("b", spec.n, "b2")] if spec.products == 2 else []
        # which begin with a zero that has no sign
        return [a @ np.swapaxes(b, -1, -2) + 0.0 for b in bs], None

    def _operand(self, side: str, rows: int, name: str = "") -> np.ndarray:
        """The values of an operand, times its scales; the array of each is made."""
        spec = self.spec
        stack = (spec.batch,) if spec.batch and getattr(spec, f"{side}_stacked") else ()
        if side == "b" and spec.groups and spec.group_axis == "m":
            stack = (spec.groups,)
        values = self._integers(*stack, rows, spec.k)
        values = self._sprinkled(values, getattr(spec, f"{side}_dtype"))
        dtype, transposed = getattr(spec, f"{side}_dtype"), getattr(spec, f"{side}_major") != "k"
        if dtype in ("u8", "u4"):
            values = np.abs(values)
        gaps = getattr(spec, f"ld{side}"), getattr(spec, f"stride_{side}")
        self.arrays[name or side] = _stored(values, dtype, transposed, gaps)
        if spec.a_scales:
            return values * self._scales_of_128(side, values.shape)
        if dtype not in TORCH and dtype not in ("s4", "u4"):
            return values * self._block_scales(side, values.shape, dtype)
        return values

    def _sprinkled(self, values: np.ndarray, dtype: str) -> np.ndarray:
        """The values, some of them others where a kind of products has such."""
        return values

    def _block_scales(self, side: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """A power of two for each block of a row, by its code; scales of no row are NaN."""
        *stack, rows, k = shape
        block = BLOCK.get(dtype, 32)
        of_rows = 128 if dtype == "mxfp8_128x128" else 1
        powers = self.made.integers(-1, 2, (*stack, -(-rows // of_rows), k // block))
        codes = (powers + 7 << 3) if dtype == "nvfp4" else powers + 127
        codes = codes.astype(np.uint8)
        nan = 0x7F if dtype == "nvfp4" else 0xFF
        if self.spec.scale_layout == "linear" or dtype in LINEAR_ALONE:
            placed = codes
        else:
            places = self._places(rows) if side == "a" and self.spec.groups else np.arange(rows)
            count = self._rows_of_atoms(rows) if side == "a" and self.spec.groups else rows
            placed = _in_atoms(codes, places, count, nan)
        kind = torch.float8_e4m3fn if dtype == "nvfp4" else torch.float8_e8m0fnu
        self.arrays[f"{side}_scales"] = torch.from_numpy(placed.copy()).view(kind)
        wide = np.repeat(np.repeat(2.0**powers, block, -1), of_rows, -2)
        return wide[..., :rows, :]

    def _scales_of_128(self, side: str, shape: tuple[int, ...]) -> np.ndarray:
        """f32 for 128 of K: [blocks, rows] of single rows, else [blocks of rows, blocks of K]."""
        *stack, rows, k = shape
        form, blocks = getattr(self.spec, f"{side}_scales"), -(-k // 128)
        by_row = form == "1x128"
        powers = 2.0 ** self.made.integers(
            -1, 2, (*stack, rows if by_row else -(-rows // 128), blocks)
        )
        spread = powers if by_row else np.repeat(powers, 128, -2)[..., :rows, :]
        own = np.swapaxes(powers, -1, -2) if by_row else powers
        told = self.spec.arrays()[f"{side}_scales"][1]
        placed = np.full(told, np.nan, np.float32)
        placed[tuple(slice(each) for each in own.shape)] = own
        self.arrays[f"{side}_scales"] = torch.from_numpy(placed)
        return np.repeat(spread, 128, -1)[..., :k]

    def _weights(self) -> np.ndarray:
        spec = self.spec
        n, k, dtype = spec.n, spec.k, spec.b_dtype
        values = self._integers(n, k)
        if dtype == "u4":
            values = self.made.integers(0, 16, (n, k)).astype(np.float64)
        if dtype in ("s4", "u4"):
            codes = values.astype(np.int64) & 15
            packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
            self.arrays["b"] = torch.from_numpy(packed)
        else:
            self.arrays["b"] = torch.from_numpy(values).to(TORCH[dtype])
        if not spec.group_size:
            return values
        shape = n, k // spec.group_size
        scales = 2.0 ** self.made.integers(-1, 2, shape)
        self.arrays["scales"] = torch.from_numpy(scales).to(TORCH[spec.scale_dtype])
        if spec.zero_points:
            zeros = self.made.integers(0, 16, shape)
            self.arrays["zeros"] = torch.from_numpy(zeros.astype(np.uint8))
            values = values - np.repeat(zeros, spec.group_size, 1)
        return values * np.repeat(scales, spec.group_size, 1)

    # groups

    def _ends(self, extent: int) -> list[int]:
        ends = sorted(self.draw.randint(0, extent) for _ in range(self.spec.groups))
        if self.draw.random() < 0.5:
            ends[-1] = extent
        if self.draw.random() < 0.3:
            ends = [self.draw.choice((0, extent))] * len(ends)
        self.arrays["offsets"] = torch.tensor(ends, dtype=torch.int32)
        return ends

    def _groups_of_rows(self) -> tuple[list[np.ndarray], int]:
        spec = self.spec
        self.ends = self._ends(spec.m)
        a = self._operand("a", spec.gathered or spec.m)
        if spec.gathered:
            numbers = self.made.integers(0, spec.gathered, spec.m)
            self.arrays["rows"] = torch.from_numpy(numbers.astype(np.int32))
            a = a[numbers]
        bs = [self._operand("b", spec.n)]
        bs += [self._operand("b", spec.n, "b2")] if spec.products == 2 else []
        sums = [np.zeros((spec.m, spec.n)) for _ in bs]
        for group, (first, end) in enumerate(zip([0, *self.ends], self.ends, strict=False)):
            for each, b in zip(sums, bs, strict=True):
                each[first:end] = a[first:end] @ b[group].T
        return sums, self.ends[-1]

    def _groups_of_k(self) -> np.ndarray:
        spec = self.spec
        ends = self._ends(spec.k)
        a, b = self._operand("a", spec.m), self._operand("b", spec.n)
        if spec.ordered:
            order = self.draw.sample(range(spec.groups), spec.groups)
            self.arrays["order"] = torch.tensor(order, dtype=torch.int32)
        pairs = zip([0, *ends], ends, strict=False)
        return np.stack([a[:, first:end] @ b[:, first:end].T for first, end in pairs])

    def _places(self, rows: int) -> np.ndarray:
        """Rows of atoms, of which each group has whole ones."""
        places, base = np.full(rows, -1), 0
        for first, end in zip([0, *self.ends], self.ends, strict=False):
            places[first:end] = base + np.arange(end - first)
            base += -(-(end - first) // 128) * 128
        return places

    def _rows_of_atoms(self, rows: int) -> int:
        return 128 * max(1, (rows + self.spec.groups * 127) // 128)

    # results

    def wrong(self) -> str:
        """What is not as it should be; "" where all is."""
        for name, wanted in self.quantised.items():
            found, bytes_ = (each.view(torch.uint8) for each in (self.arrays[name], wanted))
            if not torch.equal(found, bytes_):
                return f"{name}: {int((found != bytes_).sum())} of {found.numel()} bytes"
        for name, dtype in self.wanted.items():
            found = self.arrays[name]
            told = _difference(found, self.results[name], dtype, self.rows_written)
            told = told or _written_gap(found)
            if told:
                return f"{name}: {told}"
        return ""


def _poisoned(shape: tuple[int, ...], dtype: str, gaps: tuple[int, int]) -> torch.Tensor:
    strides, count = _strides(shape, False, gaps)
    memory = torch.empty(count, dtype=TORCH[dtype])
    memory.view(torch.uint8).fill_(POISON)
    return memory.as_strided(shape, strides)


def _strides(
    shape: tuple[int, ...], transposed: bool, gaps: tuple[int, int]
) -> tuple[list[int], int]:
    *stack, rows, columns = shape
    contiguous, others = (rows, columns) if transposed else (columns, rows)
    pitch = gaps[0] or contiguous
    step = gaps[1] or others * pitch
    last = [1, pitch] if transposed else [pitch, 1]
    return [step] * len(stack) + last, max(1, (math.prod(stack) - 1) * step + others * pitch)


def _stored(
    values: np.ndarray, dtype: str, transposed: bool, gaps: tuple[int, int]
) -> torch.Tensor:
    """The values as an array of a type, with gaps of NaN or of large numbers."""
    if dtype in PACKED:
        bits, codes = PACKED[dtype]
        lookup = np.vectorize(codes.get)(np.abs(values)).astype(np.uint8)
        lookup |= (values < 0).astype(np.uint8) << (bits - 1)
        flags = (lookup[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
        flat = flags.reshape(*values.shape[:-1], -1)
        packed = torch.from_numpy(np.packbits(flat, axis=-1, bitorder="little"))
        return packed.view(torch.float4_e2m1fn_x2) if bits == 4 else packed
    kind = TORCH.get(dtype) or BYTE_FLOATS.get(dtype, torch.float8_e4m3fn)
    strides, count = _strides(values.shape, transposed, gaps)
    memory = torch.empty(count, dtype=kind)
    memory.view(torch.uint8).fill_(0x7F)
    array = memory.as_strided(values.shape, strides)
    array.copy_(torch.from_numpy(values))
    return array


def _in_atoms(codes: np.ndarray, places: np.ndarray, count: int, nan: int) -> np.ndarray:
    """Scales in atoms of 128 rows and four blocks, [row % 32, row / 32, block] (cuBLAS, block
    scaling factors layout)."""
    *stack, _, blocks = codes.shape
    shape = (*stack, -(-count // 128), -(-blocks // 4), 32, 4, 4)
    placed = np.full(shape, nan, np.uint8)
    for row, place in enumerate(places):
        if place < 0:
            continue
        for block in range(blocks):
            at = place // 128, block // 4, place % 32, place % 128 // 32, block % 4
            placed[(..., *at)] = codes[..., row, block]
    return placed


def _difference(found: torch.Tensor, sums: np.ndarray, dtype: str, rows_written: int | None) -> str:
    wanted = bit_rounded(torch.from_numpy(sums), TORCH[dtype]).double()
    wide = found.double()
    if rows_written is not None:
        wide, wanted = wide[:rows_written], wanted[:rows_written]
    wrong = ((wide != wanted) & ~(wide.isnan() & wanted.isnan())).nonzero()
    if not len(wrong):
        return ""
    at = tuple(wrong[0].tolist())
    return f"{len(wrong)} of {wanted.numel()}, {list(at)} is {wide[at]} for {wanted[at]}"


def _written_gap(array: torch.Tensor) -> str:
    """What has been written between the rows or matrices of an output."""
    base = torch.empty(0, dtype=array.dtype).set_(array.untyped_storage())
    kept = base.clone()
    kept.as_strided(array.shape, array.stride()).view(
        torch.int8
        if array.element_size() == 1
        else {2: torch.int16, 4: torch.int32, 8: torch.int64}[array.element_size()]
    ).fill_(0)
    gaps = torch.ones(base.numel(), dtype=torch.bool)
    gaps.as_strided(array.shape, array.stride()).fill_(False)
    bytes_ = kept.view(torch.uint8).reshape(base.numel(), -1)[gaps]
    return "" if bool((bytes_ == POISON).all()) else "a gap between rows was written"
