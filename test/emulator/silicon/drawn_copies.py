"""Further draws of tensor copies: element strides up to 8, rows that overlap or have stride 0,
boxes wholly outside, coordinates at the ends of their range; stores with element strides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from silicon_case import Case, Map, generator, kernel
from tensor_copies import (
    _END,
    _FILL,
    _READ,
    _START,
    BYTES,
    IMAGE_BYTES,
    LOAD_TYPES,
    OUT_WORDS,
    REDUCTIONS,
    SWIZZLES,
    THREADS,
    TILE,
    _rows,
)

LOADS, STORES, STRIDED = 80, 30, 36


def drawn_copies() -> Iterator[Case]:
    """Loads, then stores and reductions, then stores with element strides."""
    types = list(LOAD_TYPES.items())
    for draw in range(LOADS):
        rng = generator(f"draw {draw}")
        type_, size = types[int(rng.integers(len(types)))]
        form = int(rng.integers(1, 6)), str(rng.choice(list(SWIZZLES)))
        yield _load(f"drawn load #{draw}", type_, size, *form)
    for draw in range(STORES):
        rng = generator(f"store {draw}")
        operation, type_ = "", "bfloat16"
        if draw % 2 == 0:
            operation, type_ = REDUCTIONS[int(rng.integers(len(REDUCTIONS)))]
        form = int(rng.integers(1, 6)), str(rng.choice(list(SWIZZLES)))
        yield _store(f"drawn store #{draw} {operation}", operation, type_, *form, strided=False)
    for draw in range(STRIDED):
        rng = generator(f"strided store {draw}")
        form = int(rng.integers(2, 5)), str(rng.choice(list(SWIZZLES)))
        yield _store(f"strided store #{draw}", "", "bfloat16", *form, strided=True)


def _shape(rng: np.random.Generator, rank: int, swizzle: str, size: int, strided: bool = True):
    """dims, strides, box, element strides and coordinates."""
    inner, steps, box = _box(rng, rank, swizzle, size, strided)
    dims = [int(rng.integers(1, 3 * inner // size + 1))]
    dims += [int(rng.integers(1, 12)) for _ in range(rank - 1)]
    strides, row = [], -(-dims[0] * size // 16) * 16
    for axis in range(1, rank):
        kind = rng.integers(0, 6)
        row += 16 * int(rng.integers(0, 3))
        overlapping = 16 * int(rng.integers(0, row // 16 + 1)) if kind == 1 else row
        strides.append(0 if kind == 0 else overlapping)
        row *= dims[axis]
    vectors = inner // 16
    at = [int(rng.integers(-vectors, -(-dims[0] * size // 16) + 2)) * 16 // size]
    at += [int(rng.integers(-5, dim + 3)) for dim in dims[1:]]
    if rng.random() < 0.04:
        at[-1] = int(rng.choice([-(2**31), 2**31 - 1, 2**31 - 300]))
    return dims, strides, box, steps, at


def _box(rng: np.random.Generator, rank: int, swizzle: str, size: int, strided: bool):
    """Bytes of a row, element strides and the box."""
    span = SWIZZLES[swizzle] or int(rng.choice([16, 32, 48, 96, 160, 208]))
    if not SWIZZLES[swizzle]:
        span = min(span, 256 * size)
    inner = 16 * int(rng.integers(1, span // 16 + 1))
    steps = [int(rng.integers(1, 9)) if strided else 1]
    steps += [int(each) if strided else 1 for each in rng.choice([1, 1, 1, 2, 3, 5, 8], rank - 1)]
    room, box = TILE // max(SWIZZLES[swizzle], inner), [inner // size]
    for axis in range(1, rank):
        rows = int(rng.integers(1, max(2, min(room, 7 if rank > 2 else 40)) + 1))
        room = max(1, room // rows)
        box.append(min(256, rows * steps[axis] - int(rng.integers(0, steps[axis]))))
    return inner, steps, box


def _load(title: str, type_: str, size: int, rank: int, swizzle: str) -> Case:
    rng = generator(title)
    dims, strides, box, steps, at = _shape(rng, rank, swizzle, size)
    fill = "nan" if "float" in type_ and rng.random() < 0.5 else "zero"
    tensor = Map("image", type_, dims, strides, box, steps, swizzle, fill)
    image = rng.integers(0, 256, IMAGE_BYTES, np.uint8)
    if "float" in type_ and size == 4:  # no NaN, whose payload a conversion may change
        image.view(np.uint32)[:] &= np.uint32(0xBFFFFFFF)
        image.view(np.uint32)[::5] &= np.uint32(0x807FFFFF)
    body = f"""{_START}
@!%on bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {box[0] * size * _rows(box, steps)};
cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], \
[%map, {{{", ".join(map(str, at))}}}], [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;
{_READ}"""
    words = np.zeros((THREADS, 1), np.uint32)
    return Case(title, kernel(body, 1, 0, tensor_map=True), image, words, TILE // 4 // THREADS,
                tensor_map=tensor)  # fmt: skip


def _store(
    title: str, operation: str, type_: str, rank: int, swizzle: str, *, strided: bool
) -> Case:
    rng, size = generator(title), BYTES[type_]
    dims, strides, box, steps, at = _shape(rng, rank, swizzle, size, strided)
    dims[0] = -(-dims[0] * size // 16) * 16 // size  # a ragged row's end is where GPUs differ
    row, strides = dims[0] * size, []
    for axis in range(1, rank):
        row += 16 * int(rng.integers(0, 2))
        strides.append(row)
        row *= dims[axis]
    image = rng.integers(0, 256, TILE, np.uint8)
    if "float" in type_:
        image.view(np.uint16)[:] &= np.uint16(0xBFFF)
    if row > 16 * OUT_WORDS * 4 * 8:
        dims = [dims[0]] + [1] * (rank - 1)
    tensor = Map("out", type_, dims, strides, box, steps, swizzle, "zero")
    kind = f"cp.async.bulk.tensor.{rank}d.global.shared::cta"
    if operation:
        kind = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}"
    places = ", ".join(str(max(0, each)) for each in at)
    body = f"{_FILL}{kind}.tile.bulk_group [%map, {{{places}}}], [tile];\n{_END}"
    words = np.zeros((THREADS, 1), np.uint32)
    return Case(title, kernel(body, 1, 0, tensor_map=True), image, words, 2 * OUT_WORDS,
                tensor_map=tensor)  # fmt: skip
