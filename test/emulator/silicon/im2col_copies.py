"""Tensor copies in im2col mode (PTX ISA §5.5.4): columns of pixels, loaded, stored and reduced.

Sizes, corners of bounding boxes, steps, offsets and starts are drawn; columns run into the next
row, the next image and past the last one. Stores whose bounding box reaches outside are left out: a
GPU stops at them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from silicon_case import Case, Im2col, generator, kernel
from tensor_copies import (
    _END,
    _FILL,
    _READ,
    _START,
    IMAGE_BYTES,
    OUT_WORDS,
    SWIZZLES,
    THREADS,
    TILE,
)

LOAD_TYPES = {"uint8": 1, "bfloat16": 2, "float16": 2, "float32": 4, "tfloat32": 4, "int32": 4}
REDUCTIONS = (("add", "uint32", 4), ("max", "float16", 2), ("xor", "uint32", 4))
DRAWS = 3


def im2col_copies() -> Iterator[Case]:
    """Loads of each rank and type, then stores and reductions."""
    for rank in (3, 4, 5):
        for number, (type_, size) in enumerate(LOAD_TYPES.items()):
            for draw in range(DRAWS):
                swizzle = list(SWIZZLES)[(number + rank + draw) % 4]
                yield _load(type_, rank, swizzle, size, draw)
        stores = [
            _store("", "bfloat16", rank, list(SWIZZLES)[(rank + draw) % 4], 2, draw)
            for draw in range(4)
        ]
        stores += [_store(name, type_, rank, "none", size, 0) for name, type_, size in REDUCTIONS]
        yield from filter(_is_inside, stores)


def _is_inside(case: Case) -> bool:
    """Whether the bounding box lies within the tensor."""
    assert isinstance(case.tensor_map, Im2col)
    return min(case.tensor_map.lower) >= 0 and max(case.tensor_map.upper) <= 0


def _shape(rng: np.random.Generator, rank: int, swizzle: str, size: int):
    """dims, strides, corners, channels, pixels, element strides, coordinates and offsets."""
    span = SWIZZLES[swizzle] or int(rng.choice([16, 32, 48, 96]))
    inner = 16 * int(rng.integers(1, span // 16 + 1))
    channels = inner // size
    dims = [int(rng.integers(1, 3 * channels))]
    dims += [int(rng.integers(2, 9)) for _ in range(rank - 2)]
    dims.append(int(rng.integers(1, 4)))
    strides, row = [], -(-dims[0] * size // 16) * 16
    for axis in range(1, rank):
        row += 16 * int(rng.integers(0, 2))
        strides.append(row)
        row *= dims[axis]
    lower = [int(rng.integers(-2, 2)) for _ in range(rank - 2)]
    upper = [int(rng.integers(-2, 2)) for _ in range(rank - 2)]
    for axis in range(rank - 2):  # a box of one pixel at least
        if dims[axis + 1] - 1 + upper[axis] < lower[axis]:
            lower[axis], upper[axis] = 0, 0
    steps = [1, *(int(each) for each in rng.choice([1, 1, 2, 3], rank - 2)), 1]
    most = TILE // max(span, inner)
    pixels = int(rng.integers(1, min(most, 64) + 1))
    at = [16 // size * int(rng.integers(-1, dims[0] * size // 16 + 1))]
    for axis in range(rank - 2):
        places = range(lower[axis], dims[axis + 1] + upper[axis], steps[axis + 1])
        at.append(int(rng.choice(list(places))))
    at.append(int(rng.integers(0, dims[-1])))
    offsets = [int(rng.integers(0, 4)) for _ in range(rank - 2)]
    return dims, strides, lower, upper, channels, pixels, steps, at, offsets


def _load(type_: str, rank: int, swizzle: str, size: int, draw: int) -> Case:
    title = f"im2col load {rank}-D {type_} {swizzle} #{draw}"
    rng = generator(title)
    dims, strides, lower, upper, channels, pixels, steps, at, offsets = _shape(
        rng, rank, swizzle, size
    )
    floating = "float" in type_
    fill = "nan" if floating and (rank + draw) % 2 else "zero"
    image = rng.integers(0, 256, IMAGE_BYTES, np.uint8)
    if floating and size == 4:  # no NaN, whose payload a conversion may change
        image.view(np.uint32)[:] &= np.uint32(0xBFFFFFFF)
        image.view(np.uint32)[::5] &= np.uint32(0x807FFFFF)
    corners = lower, upper, channels, pixels
    tensor = Im2col("image", type_, dims, strides, *corners, steps, swizzle, fill)
    coordinates, places = ", ".join(map(str, at)), ", ".join(f"%o{i}" for i in range(rank - 2))
    moved = "".join(f"mov.u16 %o{i}, {offset};\n" for i, offset in enumerate(offsets))
    body = f"""{_START}.reg .b16 %o<4>;
{moved}@!%on bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {channels * size * pixels};
cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], \
[%map, {{{coordinates}}}], [bar], {{{places}}};
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;
{_READ}"""
    words = np.zeros((THREADS, 1), np.uint32)
    return Case(title, kernel(body, 1, 0, tensor_map=True), image, words, TILE // 4 // THREADS,
                tensor_map=tensor)  # fmt: skip


def _store(operation: str, type_: str, rank: int, swizzle: str, size: int, draw: int) -> Case:
    title = f"im2col {operation or 'store'} {rank}-D {type_} {swizzle} #{draw}"
    rng = generator(title)
    dims, strides, lower, upper, channels, pixels, steps, at, _ = _shape(rng, rank, swizzle, size)
    at[0] = max(0, at[0])
    dims[0] = -(-dims[0] * size // 16) * 16 // size  # a ragged row's end is where GPUs differ
    if strides[0] < dims[0] * size:
        strides = [each + 16 for each in strides]
    image = rng.integers(0, 256, TILE, np.uint8)
    if "float" in type_:
        image.view(np.uint16)[:] &= np.uint16(0xBFFF)
    corners = lower, upper, channels, pixels
    tensor = Im2col("out", type_, dims, strides, *corners, steps, swizzle, "zero")
    coordinates = ", ".join(map(str, at))
    kind = f"cp.async.bulk.tensor.{rank}d.global.shared::cta"
    if operation:
        kind = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}"
    body = f"{_FILL}{kind}.im2col_no_offs.bulk_group [%map, {{{coordinates}}}], [tile];\n{_END}"
    words = np.zeros((THREADS, 1), np.uint32)
    return Case(title, kernel(body, 1, 0, tensor_map=True), image, words, 2 * OUT_WORDS,
                tensor_map=tensor)  # fmt: skip
