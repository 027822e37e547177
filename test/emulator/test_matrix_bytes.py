"""ldmatrix and stmatrix of 8-bit matrices, movmatrix (PTX ISA §9.7.14.5.15–17, sm_100a)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"


def run(body: str, source: np.ndarray, words: int) -> np.ndarray:
    """Lane t has words 4t..4t+3 of `source` in %r1..4, %r10 is the address of 4 KiB of shared
    memory; returns %r20.. of each lane as uint32[32, words]."""
    out = np.full((32, words), 0xDEADBEEF, np.uint32)
    stores = "".join(f"st.global.u32 [%rd3+{4 * i}], %r{20 + i};" for i in range(words))
    text = f"""{HEADER}.visible .entry k(.param .u64 a, .param .u64 out) {{
      .shared .align 128 .b8 tile[4096]; .reg .b32 %r<32>; .reg .b64 %rd<9>; .reg .pred %p<4>;
      ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [out]; mov.u32 %r9, %tid.x; mov.u32 %r10, tile;
      mad.wide.u32 %rd2, %r9, 16, %rd0; mad.wide.u32 %rd3, %r9, {4 * words}, %rd1;
      mad.lo.u32 %r11, %r9, 48, %r10; shl.b32 %r12, %r9, 4; add.u32 %r12, %r12, %r10;
      ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd2]; {body} {stores} ret; }}"""
    launch(text, "k", grid=1, block=32, params=[source, out])
    return out


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_bytes_stores_columns_of_16_rows(count):
    """m16n8.trans.b8: byte 2v+h of lane t is row t/4+8v of column 2(t%4)+h; lane 8j+i addresses
    column i of matrix j, here 48 bytes apart"""
    registers = np.random.default_rng(0).integers(0, 1 << 32, (32, 4), np.uint32)
    names = ", ".join(f"%r{1 + j}" for j in range(count))
    zero = "mov.u32 %r13, 0; st.shared.v4.u32 [%r11], {%r13, %r13, %r13, %r13};"
    out = run(
        f"""{zero} stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r11], {{{names}}};
        ld.shared.v4.u32 {{%r20, %r21, %r22, %r23}}, [%r11];""",
        registers,
        4,
    )
    expected = np.zeros((32, 16), np.uint8)
    for lane in range(32):
        for j in range(count):
            for byte in range(4):
                v, h = divmod(byte, 2)
                column, row = 2 * (lane % 4) + h, lane // 4 + 8 * v
                expected[8 * j + column, row] = int(registers[lane, j]) >> 8 * byte & 0xFF
    assert np.array_equal(out.view(np.uint8), expected)


@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_of_bytes_gives_four_columns_of_a_row(count):
    """m16n16.trans.b8: byte b of register r of lane t is row t/4+8r of column 4(t%4)+b; lane
    16j+i addresses column i of matrix j"""
    data = np.random.default_rng(1).integers(0, 1 << 32, (32, 4), np.uint32)
    names = ", ".join(f"%r{20 + j}" for j in range(2 * count))
    out = run(
        f"""st.shared.v4.u32 [%r11], {{%r1, %r2, %r3, %r4}}; bar.sync 0;
        ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.b8 {{{names}}}, [%r11];""",
        data,
        2 * count,
    )
    columns = data.view(np.uint8)
    got = out.view(np.uint8).reshape(32, 2 * count, 4)
    for lane in range(32):
        for register in range(2 * count):
            j, r = divmod(register, 2)
            for byte in range(4):
                expected = columns[16 * j + 4 * (lane % 4) + byte, lane // 4 + 8 * r]
                assert got[lane, register, byte] == expected


def test_movmatrix_transposes_a_fragment():
    fragment = np.random.default_rng(2).integers(0, 1 << 32, (32, 4), np.uint32)
    out = run("movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r1;", fragment, 1)
    matrix = np.ascontiguousarray(fragment[:, 0]).view(np.uint16).reshape(8, 8)
    assert np.array_equal(out.view(np.uint16).reshape(8, 8), matrix.T)


def test_a_converted_pair_survives_stmatrix_and_ldmatrix():
    """§9.7.9.22 cvt.rn.bf16x2.f32 packs the second operand low"""
    values = np.random.default_rng(3).standard_normal((32, 4)).astype(np.float32)
    out = run(
        """cvt.rn.bf16x2.f32 %r5, %r2, %r1; cvt.rn.bf16x2.f32 %r6, %r4, %r3;
        stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r11], {%r5, %r6};
        bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20, %r21}, [%r11];""",
        values.view(np.uint32),
        2,
    )
    import ml_dtypes

    assert np.array_equal(out.view(np.uint16).reshape(32, 4),
                          values.astype(ml_dtypes.bfloat16).view(np.uint16))  # fmt: skip


@pytest.mark.parametrize(
    ("body", "category", "message"),
    [
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r10+8], {%r1};", "misaligned", None),
        ("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r10], {%r1};", "unmodelled",
         "shape .m16n8.x1 of .b8 (PTX ISA section 9.7.14.5.16)"),
        ("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1, %r2}, [%r10];", "unmodelled",
         "shape .m16n16.x4.trans of .b8 (PTX ISA section 9.7.14.5.15)"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r12]; st.shared.b32 [%r12], %r1;",
         "uninitialised-read", None),
        ("setp.lt.u32 %p0, %r9, 4; @%p0 exit; stmatrix.sync.aligned.m8n8.x1.b16 [%rd3], {%r1};",
         "convergence", "stmatrix needs all 32 threads of the warp, lanes 0-3 are not alive"),
        ("setp.lt.u32 %p0, %r9, 4; @%p0 stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r10], {%r1};",
         "convergence", "the guard of this .aligned instruction leaves out lanes 4-31"),
    ],
)  # fmt: skip
def test_misuse_is_refused(body, category, message):
    with pytest.raises(Trap) as caught:
        run(body, np.zeros((32, 4), np.uint32), 1)
    assert caught.value.category == category
    assert message is None or caught.value.message == message


PADDED = {"b4x16_p64": 4, "b6x16_p32": 6}


def padded_rows(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(uint32[32, 4] as lanes store them, uint8[32, 16] codes): rows of 16 padded elements."""
    rng = np.random.default_rng(bits)
    codes = rng.integers(0, 1 << bits, (32, 16)).astype(np.uint8)
    flags = (codes[:, :, None] >> np.arange(bits)) & 1
    packed = np.packbits(flags.reshape(32, -1), axis=1, bitorder="little")
    rows = np.full((32, 16), 0xEE, np.uint8)
    rows[:, : 2 * bits] = packed
    return rows.view(np.uint32), codes


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("source", PADDED)
def test_ldmatrix_expands_padded_elements_of_a_row(source, count):
    """m8n16: byte b of register j of lane t is element 4(t%4)+b of row t/4 of matrix j"""
    data, codes = padded_rows(PADDED[source])
    names = ", ".join(f"%r{20 + j}" for j in range(count))
    out = run(
        f"""st.shared.v4.u32 [%r11], {{%r1, %r2, %r3, %r4}}; bar.sync 0;
        ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{source} {{{names}}}, [%r11];""",
        data,
        count,
    )
    for lane in range(32):
        for j in range(count):
            wanted = codes[8 * j + lane // 4, 4 * (lane % 4) : 4 * (lane % 4) + 4]
            assert out[lane, j] == int.from_bytes(wanted.tobytes(), "little")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("source", PADDED)
def test_ldmatrix_expands_padded_elements_of_columns(source, count):
    """m16n16.trans: byte b of register r of lane t is element t/4+8r of column 4(t%4)+b"""
    data, codes = padded_rows(PADDED[source])
    names = ", ".join(f"%r{20 + j}" for j in range(2 * count))
    out = run(
        f"""st.shared.v4.u32 [%r11], {{%r1, %r2, %r3, %r4}}; bar.sync 0;
        ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.b8x16.{source} {{{names}}}, [%r11];""",
        data,
        2 * count,
    )
    for lane in range(32):
        for j in range(2 * count):
            matrix, register = divmod(j, 2)
            element = lane // 4 + 8 * register
            wanted = codes[16 * matrix + 4 * (lane % 4) :, element][:4]
            assert out[lane, j] == int.from_bytes(wanted.tobytes(), "little")
