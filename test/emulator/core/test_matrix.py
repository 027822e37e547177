"""ldmatrix and stmatrix against the element map of PTX ISA §9.7.14.5.15 and §9.7.14.5.16."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"


def run(body: str, source: np.ndarray, out: np.ndarray) -> None:
    """%rd0 and %rd1 are the arrays, %r9 the lane, %r10 the address of 4 KiB of shared memory."""
    text = f"""{HEADER}.visible .entry k(.param .u64 a, .param .u64 out) {{
      .shared .align 128 .b8 tile[4096]; .reg .b32 %r<32>; .reg .b64 %rd<9>; .reg .pred %p<4>;
      ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [out]; mov.u32 %r9, %tid.x; mov.u32 %r10, tile;
      mad.wide.u32 %rd2, %r9, 16, %rd0; mad.wide.u32 %rd3, %r9, 16, %rd1;
      mad.lo.u32 %r11, %r9, 80, %r10; {body} ret; }}"""
    launch(text, "k", grid=1, block=32, params=[source, out])


def element(matrix: np.ndarray, lane: int, half: int, transposed: bool) -> int:
    row, column = lane // 4, 2 * (lane % 4) + half
    return matrix[column, row] if transposed else matrix[row, column]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_two_elements_of_a_row(count, transposed):
    """The rows lie 80 bytes apart, each at the address its lane supplies"""
    rows = np.random.default_rng(0).integers(0, 1 << 16, (32, 8), np.uint16)
    out = np.full((32, 4), 0xDEAD, np.uint32)
    registers = ", ".join(f"%r{20 + j}" for j in range(count))
    run(
        f"""ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd2];
        st.shared.v4.b32 [%r11], {{%r1, %r2, %r3, %r4}}; bar.sync 0;
        mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0;
        ldmatrix.sync.aligned.m8n8.x{count}{".trans" if transposed else ""}.shared.b16
          {{{registers}}}, [%r11];
        st.global.v4.b32 [%rd3], {{%r20, %r21, %r22, %r23}};""",
        rows,
        out,
    )
    for lane in range(32):
        for j in range(count):
            matrix = rows[8 * j : 8 * j + 8]
            low, high = (element(matrix, lane, half, transposed) for half in (0, 1))
            assert out[lane, j] == int(high) << 16 | int(low)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_writes_what_ldmatrix_would_read(count, transposed):
    fragments = np.random.default_rng(1).integers(0, 1 << 32, (32, 4), np.uint32)
    out = np.full((32, 8), 0xBEEF, np.uint16)
    registers = ", ".join(f"%r{1 + j}" for j in range(count))
    run(
        f"""ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd2];
        stmatrix.sync.aligned.m8n8.x{count}{".trans" if transposed else ""}.shared::cta.b16
          [%r11], {{{registers}}};
        bar.sync 0; setp.lt.u32 %p1, %r9, {8 * count};
        @%p1 ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r11];
        @%p1 st.global.v4.b32 [%rd3], {{%r20, %r21, %r22, %r23}};""",
        fragments,
        out,
    )
    for lane in range(32):
        for j in range(count):
            matrix = out[8 * j : 8 * j + 8]
            low, high = (element(matrix, lane, half, transposed) for half in (0, 1))
            assert fragments[lane, j] == int(high) << 16 | int(low)


def test_rows_must_be_aligned_to_16_bytes():
    with pytest.raises(Trap) as caught:
        run(
            "add.u32 %r11, %r11, 8; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r11], {%r9};",
            np.zeros(128, np.uint32),
            np.zeros(128, np.uint32),
        )
    assert caught.value.category == "misaligned"


def test_part_of_a_warp_cannot_store_a_matrix():
    with pytest.raises(Trap) as caught:
        run(
            """setp.lt.u32 %p1, %r9, 8; @!%p1 bra J;
            stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r11], {%r9}; J: bar.sync 0;""",
            np.zeros(128, np.uint32),
            np.zeros(128, np.uint32),
        )
    assert caught.value.category == "convergence"
