"""Tensor copies (PTX ISA §9.7.9.27, §5.5): boxes, strides, swizzles, fill, stores and reductions.

Sizes, strides, coordinates and element strides are drawn; boxes hang over every side of the tensor.
Memory around what a copy should touch holds what is known, and is compared too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from silicon_case import Case, Map, generator, kernel

THREADS, TILE = 128, 8192
IMAGE_BYTES, OUT_WORDS = 1 << 18, 512
LOAD_TYPES = {"uint8": 1, "uint16": 2, "int32": 4, "uint64": 8, "float16": 2, "bfloat16": 2,
              "float32": 4, "float64": 8, "float32_ftz": 4, "tfloat32": 4,
              "tfloat32_ftz": 4}  # fmt: skip
SWIZZLES = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
REDUCTIONS = (
    ("add", "uint32"), ("add", "uint64"), ("add", "float16"), ("add", "bfloat16"),
    ("min", "uint32"), ("min", "int32"), ("min", "int64"), ("min", "float16"), ("max", "bfloat16"),
    ("max", "uint64"), ("inc", "uint32"), ("dec", "uint32"), ("and", "uint32"), ("or", "uint64"),
    ("xor", "uint32"),
)  # fmt: skip
BYTES = {"uint32": 4, "int32": 4, "uint64": 8, "int64": 8, "float16": 2, "bfloat16": 2}
BULK = (
    "add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32", "min.u32", "min.s32", "max.u64",
    "max.s64", "and.b32", "or.b32", "xor.b64", "add.noftz.f16", "add.noftz.bf16", "min.f16",
    "max.f16", "min.bf16", "max.bf16", "add.f32", "add.f64",
)  # fmt: skip


def tensor_copies() -> Iterator[Case]:
    """Loads of every type, rank and swizzle; then stores and reductions."""
    for number, (type_, size) in enumerate(LOAD_TYPES.items()):
        for rank in (1, 2, 3, 4, 5):
            some = list(SWIZZLES)[(number + rank) % 4 :][:1]
            for swizzle in SWIZZLES if rank in (2, 3) and size < 4 else some:
                yield _load(type_, rank, swizzle, size)
    for swizzle in SWIZZLES:
        for rank in (2, 3):
            yield _store("", "bfloat16", rank, swizzle, 2)
            yield _store("", "uint8", rank, swizzle, 1)
    for rank in (1, 4, 5):
        yield _store("", "float32", rank, "none", 4)
    for operation, type_ in REDUCTIONS:
        yield _store(operation, type_, 2, "none", BYTES[type_])
    for operation in BULK:
        yield _bulk(operation)


def _shape(rng: np.random.Generator, rank: int, swizzle: str, size: int, strided: bool):
    """dims, strides, box, element strides and coordinates."""
    span = SWIZZLES[swizzle] or int(rng.choice([16, 32, 48, 96]))
    inner = 16 * int(rng.integers(1, span // 16 + 1))
    steps = [1] + [int(each) if strided else 1 for each in rng.choice([1, 1, 2, 3], rank - 1)]
    room = TILE // max(span, inner)
    box = [inner // size]
    for axis in range(1, rank):
        rows = int(rng.integers(1, max(2, min(room, 9 if rank > 2 else 40)) + 1))
        room = max(1, room // rows)
        box.append(rows * steps[axis])
    dims = [int(rng.integers(1, 3 * inner // size))]
    dims += [int(rng.integers(1, 8)) for _ in range(rank - 1)]
    strides, row = [], -(-dims[0] * size // 16) * 16
    for axis in range(1, rank):
        row += 16 * int(rng.integers(0, 3))
        strides.append(row)
        row *= dims[axis]
    vectors = inner // 16  # on a GPU too, the first coordinate is a multiple of 16 bytes
    coordinates = [int(rng.integers(-vectors // 2, -(-dims[0] * size // 16) + 1)) * 16 // size]
    coordinates += [int(rng.integers(-3, dim + 1)) for dim in dims[1:]]
    return dims, strides, box, steps, coordinates


def _rows(box: list[int], steps: list[int]) -> int:
    return int(np.prod([-(-each // step) for each, step in zip(box[1:], steps[1:], strict=True)]))


_START = """.shared .align 8 .b64 bar;
shl.b32 %at, %t, 2; add.u32 %to, %base, %at;
FILL: st.shared.b32 [%to], %at; add.u32 %to, %to, 512; add.u32 %at, %at, 512;
setp.lt.u32 %q, %at, 8192; @%q bra FILL;
setp.eq.u32 %on, %t, 0; @%on mbarrier.init.shared.b64 [bar], 1;
fence.proxy.async.shared::cta; bar.sync 0;
"""
_READ = """shl.b32 %at, %t, 2; add.u32 %to, %base, %at; mad.wide.u32 %p3, %t, 4, %p2;
READ: ld.shared.b32 %r0, [%to]; st.global.b32 [%p3], %r0; add.u64 %p3, %p3, 512;
add.u32 %to, %to, 512; add.u32 %at, %at, 512; setp.lt.u32 %q, %at, 8192; @%q bra READ;
"""


def _load(type_: str, rank: int, swizzle: str, size: int) -> Case:
    title = f"load {rank}-D {type_} {swizzle}"
    rng = generator(title)
    dims, strides, box, steps, at = _shape(rng, rank, swizzle, size, strided=True)
    floating = "float" in type_
    fill = "nan" if floating and rank % 2 else "zero"
    image = rng.integers(0, 256, IMAGE_BYTES, np.uint8)
    if floating and size == 4:  # no NaN, whose payload a conversion may change
        image.view(np.uint32)[:] &= np.uint32(0xBFFFFFFF)
        image.view(np.uint32)[::5] &= np.uint32(0x807FFFFF)
    tensor = Map("image", type_, dims, strides, box, steps, swizzle, fill)
    coordinates = ", ".join(map(str, at))
    count = box[0] * size * _rows(box, steps)
    body = f"""{_START}
@!%on bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {count};
cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], \
[%map, {{{coordinates}}}], [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;
{_READ}"""
    words = np.zeros((THREADS, 1), np.uint32)
    return Case(title, kernel(body, 1, 0, tensor_map=True), image, words, TILE // 4 // THREADS,
                tensor_map=tensor)  # fmt: skip


_FILL = """.shared .align 8 .b64 bar;
shl.b32 %at, %t, 2; cvt.u64.u32 %step, %at; add.u64 %p3, %p0, %step; add.u32 %to, %base, %at;
FILL: ld.global.b32 %r0, [%p3]; st.shared.b32 [%to], %r0; add.u64 %p3, %p3, 512;
add.u32 %to, %to, 512; add.u32 %at, %at, 512; setp.lt.u32 %q, %at, 8192; @%q bra FILL;
setp.eq.u32 %on, %t, 0; fence.proxy.async.shared::cta; bar.sync 0; @!%on bra END;
"""
_END = """cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""


def _store(operation: str, type_: str, rank: int, swizzle: str, size: int) -> Case:
    title = f"{operation or 'store'} {rank}-D {type_} {swizzle}"
    rng = generator(title)
    dims, strides, box, steps, at = _shape(rng, rank, swizzle, size, strided=False)
    at = [max(0, each) for each in at]
    dims[0] = -(-dims[0] * size // 16) * 16 // size  # a ragged row's end is where GPUs differ
    if strides and strides[0] < dims[0] * size:
        strides = [each + 16 for each in strides]
    image = rng.integers(0, 256, TILE, np.uint8)
    if "float" in type_:
        image.view(np.uint16)[:] &= np.uint16(0xBFFF)
    tensor = Map("out", type_, dims, strides, box, steps, swizzle, "zero")
    coordinates = ", ".join(map(str, at))
    opcode = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile.bulk_group"
    if not operation:
        opcode = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
    body = f"{_FILL}{opcode} [%map, {{{coordinates}}}], [tile];\n{_END}"
    words = np.zeros((THREADS, 1), np.uint32)
    return Case(title, kernel(body, 1, 0, tensor_map=True), image, words, OUT_WORDS,
                tensor_map=tensor)  # fmt: skip


def _bulk(operation: str) -> Case:
    title = f"cp.reduce.async.bulk {operation}"
    rng = generator(title)
    image = rng.integers(0, 256, TILE, np.uint8)
    if "f16" in operation:
        image.view(np.uint16)[:] &= np.uint16(0xBFFF)
    elif ".f" in operation:
        image.view(np.uint32)[:] &= np.uint32(0xBFFFFFFF)
        image.view(np.uint32)[::5] = 0x80000123
    opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}"
    body = f"{_FILL}add.u64 %p3, %p2, 48;\n{opcode} [%p3], [tile+32], 4000;\n{_END}"
    return Case(title, kernel(body, 1, 0), image, np.zeros((THREADS, 1), np.uint32), 16)
