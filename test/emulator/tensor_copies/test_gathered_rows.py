"""tile::gather4 and tile::scatter4: four rows of a matrix by number (PTX ISA §5.5.4.1)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap

SIZE = 512
MOVES = """
  mov.s32 %r10, {x};
  mov.s32 %r11, {rows[0]}; mov.s32 %r12, {rows[1]};
  mov.s32 %r13, {rows[2]}; mov.s32 %r14, {rows[3]};
"""
NAMES = "{%r10, %r11, %r12, %r13, %r14}"
GATHER = (
    """
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {bytes};
  @%p0 cp.async.bulk.tensor.2d.{space}.global.tile::gather4.mbarrier::complete_tx::bytes
    [%r2], [%rd1, """
    + "{NAMES}], [%r1];"
)
SCATTER = f"""
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
    [%rd1, {NAMES}], [%r2];
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;
"""


def row_map(source: np.ndarray, columns: int, mode: str, rows: int = 1) -> TensorMap:
    extent = (source.shape[1], source.shape[0])
    return TensorMap(source, "bf16", extent, (2 * extent[0],), (columns, rows), swizzle=mode)


def gathered(copies, source, x, rows, columns, mode, space="shared::cta") -> np.ndarray:
    """The 512 bytes of shared memory after a gather, 0x5A where it wrote nothing."""
    out = np.zeros(SIZE, np.uint8)
    copy = GATHER.format(bytes=8 * columns, space=space, NAMES=NAMES)
    filled = copies.COPY_IN.format(size=SIZE) + "fence.proxy.async.shared::cta; bar.sync 0;"
    body = filled + MOVES.format(x=x, rows=rows) + copy + copies.WAIT
    body += copies.COPY_OUT.format(size=SIZE)
    image = np.full(SIZE, 0x5A, np.uint8)
    copies.run(body, out, row_map(source, columns, mode), image)
    return out


def place(row: int, byte: int, pitch: int, mode: str) -> int:
    """Where a byte of a gathered row lies: 16-byte chunks move inside 128-byte lines."""
    logical = row * pitch + byte
    chunks = {"none": 1, "32B": 2, "64B": 4, "128B": 8}[mode]
    return logical ^ ((logical >> 7) % chunks) << 4


@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
@pytest.mark.parametrize(
    "mode, columns, x", [("none", 8, 8), ("32B", 16, 24), ("64B", 32, 40), ("128B", 64, -8),
                         ("128B", 32, 16)]
)  # fmt: skip
def test_gathered_rows_lie_behind_one_another(copies, mode, columns, x, space):
    source = np.random.default_rng(1).integers(1, 1 << 15, (19, 64)).astype(np.uint16)
    rows = (17, 3, -2, 3)
    got = gathered(copies, source, x, rows, columns, mode, space)
    wanted = np.full(SIZE, 0x5A, np.uint8)
    pitch = {"none": 2 * columns, "32B": 32, "64B": 64, "128B": 128}[mode]
    for number, row in enumerate(rows):
        for column in range(columns):
            inside = 0 <= x + column < 64 and 0 <= row < 19
            value = int(source[row, x + column]) if inside else 0
            at = [place(number, 2 * column + byte, pitch, mode) for byte in (0, 1)]
            wanted[at] = value & 0xFF, value >> 8
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("mode, columns", [("none", 16), ("128B", 64)])
def test_scattered_rows_replace_those_inside(copies, mode, columns):
    target = np.random.default_rng(2).integers(1, 1 << 15, (11, 64)).astype(np.uint16)
    image = np.random.default_rng(3).integers(0, 256, SIZE, dtype=np.uint8)
    wanted, rows, x = target.copy(), (9, 0, 30, 4), 64 - columns // 2
    pitch = 128 if mode == "128B" else 2 * columns
    for number, row in enumerate(rows):
        for column in range(columns // 2):
            low, high = (image[place(number, 2 * column + byte, pitch, mode)] for byte in (0, 1))
            if row < 11:
                wanted[row, x + column] = int(low) | int(high) << 8
    body = copies.COPY_IN.format(size=SIZE) + MOVES.format(x=x, rows=rows) + SCATTER
    copies.run(body, np.zeros(16, np.uint8), row_map(target, columns, mode), image)
    assert np.array_equal(target, wanted)


def test_a_box_of_several_rows_is_refused(copies):
    source = np.zeros((19, 64), np.uint16)
    copy = GATHER.format(bytes=64, space="shared::cta", NAMES=NAMES)
    body = MOVES.format(x=0, rows=(0, 1, 2, 3)) + copy
    trap = copies.refused(body, row_map(source, 8, "none", rows=4))
    assert (trap.category, trap.message) == (
        "tma", "a gather or scatter of rows needs a box of one row, got 4"
    )  # fmt: skip


def test_negative_rows_are_not_scattered(copies):
    body = copies.COPY_IN.format(size=SIZE) + MOVES.format(x=0, rows=(0, 1, -1, 3)) + SCATTER
    trap = copies.refused(body, row_map(np.zeros((19, 64), np.uint16), 8, "none"),
                          other=np.zeros(SIZE, np.uint8))  # fmt: skip
    assert trap.message == "a tensor store needs coordinates >= 0, got (0, -1)"
