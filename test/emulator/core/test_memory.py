"""ld, st and the state spaces (PTX ISA §5.1, §9.7.9.8, §9.7.9.11, §9.7.9.20)."""

from __future__ import annotations

import numpy as np
import pytest
from memory_kernels import HEADER, run, trapped

from tilewright.runtime.emulator import GlobalArray, Trap, launch

UP_TO_16_BYTES = [
    (".v2", "b8"),
    (".v4", "b8"),
    (".v2", "b16"),
    (".v4", "b16"),
    ("", "b32"),
    (".v2", "b32"),
    (".v4", "b32"),
    ("", "b64"),
    (".v2", "b64"),
]
OF_32_BYTES = [(".v8", "b32"), (".v4", "b64")]
"""Which global memory alone has."""


@pytest.mark.parametrize(
    ("vector", "type_", "space"),
    [
        *((*each, "shared") for each in UP_TO_16_BYTES),
        *(
            (*each, space)
            for each in UP_TO_16_BYTES + OF_32_BYTES
            for space in ("global", "generic")
        ),
    ],
)
def test_vector_loads_and_stores_move_every_element(vector, type_, space):
    count, width = int(vector[2:] or 1), int(type_[1:]) // 8
    size = count * width
    a = np.random.default_rng(0).integers(0, 256, 32 * size, np.uint8)
    out = np.full(32 * size, 0xEE, np.uint8)
    prefix = {1: "%h", 2: "%h", 4: "%r1", 8: "%rd1"}[width]
    names = ", ".join(f"{prefix}{k}" for k in range(count))
    operand = f"{{{names}}}" if count > 1 else names
    backwards = f"{{{', '.join(reversed(names.split(', ')))}}}" if count > 1 else names
    via = "" if space == "generic" else ".global"
    body = f"""mad.wide.u32 %rd2, %r0, {size}, %rd0; mad.wide.u32 %rd3, %r0, {size}, %rd1;
               ld{via}{vector}.{type_} {operand}, [%rd2];"""
    if space == "shared":
        body += f"""mov.u32 %r9, buffer; mad.lo.u32 %r9, %r0, {size}, %r9;
                    st.shared{vector}.{type_} [%r9], {backwards};
                    ld.shared{vector}.{type_} {operand}, [%r9];
                    st.global{vector}.{type_} [%rd3], {operand};"""
    else:
        body += f"st{via}{vector}.{type_} [%rd3], {backwards};"
    run(body, a, out, ".shared .align 32 .b8 buffer[1024];")
    elements = a.reshape(32, count, width)[:, ::-1]
    assert np.array_equal(out.reshape(32, count, width), elements)


def test_narrow_loads_extend_by_their_type():
    """PTX ISA §9.4.1: ld may write a wider register"""
    a = np.arange(32, dtype=np.uint8) + 112
    out = np.zeros((32, 2), np.uint32)
    run(
        """cvt.u64.u32 %rd4, %r0; add.u64 %rd2, %rd0, %rd4; ld.global.s8 %r1, [%rd2];
           ld.global.u8 %r2, [%rd2]; mad.wide.u32 %rd3, %r0, 8, %rd1;
           st.global.v2.u32 [%rd3], {%r1, %r2};""",
        a,
        out,
    )
    assert np.array_equal(out[:, 0].view(np.int32), a.view(np.int8).astype(np.int32))
    assert np.array_equal(out[:, 1], a)


def test_a_narrow_store_takes_the_low_bytes():
    a = np.arange(32, dtype=np.uint32) * 0x01010101 + 7
    out = np.zeros(32, np.uint8)
    run(
        """mad.wide.u32 %rd2, %r0, 4, %rd0; ld.global.u32 %r1, [%rd2]; cvt.u64.u32 %rd4, %r0;
           add.u64 %rd3, %rd1, %rd4; st.global.u8 [%rd3], %r1;""",
        a,
        out,
    )
    assert np.array_equal(out, (a & 0xFF).astype(np.uint8))


def test_128_bit_accesses():
    a = np.random.default_rng(1).integers(0, 1 << 63, 64, np.uint64)
    out = np.zeros(64, np.uint64)
    run(
        """.reg .b128 %q; mad.wide.u32 %rd2, %r0, 16, %rd0; ld.global.b128 %q, [%rd2];
           mov.b128 {%rd4, %rd5}, %q; mov.b128 %q, {%rd5, %rd4};
           mad.wide.u32 %rd3, %r0, 16, %rd1; st.global.b128 [%rd3], %q;""",
        a,
        out,
    )
    assert np.array_equal(out.reshape(32, 2), a.reshape(32, 2)[:, ::-1])


def test_masked_lanes_neither_load_nor_store():
    a = np.arange(4, dtype=np.uint32) + 5
    out = np.full(32, 99, np.uint32)
    run(
        """setp.lt.u32 %p0, %r0, 4; mov.u32 %r1, 1; mad.wide.u32 %rd2, %r0, 4, %rd0;
           @%p0 ld.global.u32 %r1, [%rd2]; mad.wide.u32 %rd3, %r0, 4, %rd1;
           setp.ne.u32 %p1, %r0, 31; @%p1 st.global.u32 [%rd3], %r1;""",
        a,
        out,
    )
    assert out.tolist() == [5, 6, 7, 8] + [1] * 27 + [99]


# -- bounds, alignment, spaces ------------------------------------------------------------------


def test_a_store_past_an_array_names_the_array_and_the_distance():
    out = np.zeros(31, np.uint32)
    trap = trapped(
        "mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], %r0;", np.zeros(1, np.uint32), out
    )
    assert trap.category == "out-of-bounds"
    assert trap.message.endswith(
        "is in no allocation; it is 0 bytes past the end of parameter 1 (out) (124 bytes)"
    )
    assert (trap.kernel, trap.cta, trap.warp, trap.lanes) == ("k", (0, 0, 0), 0, 0xFFFFFFFF)
    assert trap.text == "st.global.u32 [%rd3], %r0"
    assert trap.line == 7


def test_an_access_that_straddles_the_end_is_out_of_bounds():
    trap = trapped("ld.global.u64 %rd5, [%rd0+8];", np.zeros(3, np.uint32), np.zeros(1, np.uint32))
    assert trap.category == "out-of-bounds"
    assert "goes 4 bytes past the end of parameter 0 (a) (12 bytes)" in trap.message


def test_a_null_pointer_is_nowhere():
    trap = trapped(
        "mov.u64 %rd5, 0; ld.global.u32 %r1, [%rd5];",
        np.zeros(3, np.uint32),
        np.zeros(1, np.uint32),
    )
    assert (
        trap.category == "out-of-bounds" and "0x0 is in no allocation; none is near" in trap.message
    )


@pytest.mark.parametrize(
    "text, offset",
    [
        ("ld.global.u32 %r1, [%rd0+2];", 2),
        ("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd0+8];", 8),
        ("ld.v2.u64 {%rd4,%rd5}, [%rd0+8];", 8),
    ],
)
def test_accesses_must_be_naturally_aligned(text, offset):
    trap = trapped(text, np.zeros(64, np.uint32), np.zeros(1, np.uint32))
    assert trap.category == "misaligned"


def test_a_wrapped_array_can_be_less_aligned():
    a = GlobalArray(np.arange(9, dtype=np.uint32), offset=4)
    trap = trapped("ld.global.v2.u32 {%r1,%r2}, [%rd0];", a, np.zeros(1, np.uint32))
    assert trap.category == "misaligned"
    out = np.zeros(32, np.uint32)
    run(
        "ld.global.v2.u32 {%r1,%r2}, [%rd0+4]; mad.wide.u32 %rd3, %r0, 4, %rd1;"
        "st.global.u32 [%rd3], %r2;",
        a,
        out,
    )
    assert out.tolist() == [2] * 32


def test_a_read_only_array_refuses_stores():
    out = np.zeros(32, np.uint32)
    out.flags.writeable = False
    trap = trapped("st.global.u32 [%rd1], %r0;", np.zeros(1, np.uint32), out)
    assert trap.category == "read-only"


def test_bytes_between_the_elements_of_a_strided_array_cannot_be_touched():
    storage = np.arange(64, dtype=np.uint32).reshape(32, 2)
    out = storage[:, 0]
    trap = trapped("st.global.u32 [%rd1+4], 7;", np.zeros(1, np.uint32), out)
    assert trap.category == "out-of-bounds" and "between the elements" in trap.message
    run("mad.wide.u32 %rd3, %r0, 8, %rd1; st.global.u32 [%rd3], 7;", np.zeros(1, np.uint32), out)
    assert (storage[:, 0] == 7).all() and (storage[:, 1] == np.arange(32) * 2 + 1).all()


def test_a_reversed_array_starts_at_its_first_element():
    storage = np.arange(32, dtype=np.uint32)
    out = np.zeros(32, np.uint32)
    run(
        """ld.global.u32 %r1, [%rd0]; mad.wide.u32 %rd3, %r0, 4, %rd1;
           st.global.u32 [%rd3], %r1;""",
        storage[::-1],
        out,
    )
    assert out[0] == 31


def test_the_same_array_twice_is_one_region():
    a = np.zeros(32, np.uint32)
    run(
        """mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], 5;
           setp.eq.u64 %p0, %rd0, %rd1; @!%p0 trap;""",
        a,
        a,
    )
    assert (a == 5).all()


# -- shared -------------------------------------------------------------------------------------


def test_generic_addresses_of_shared_memory_go_there_and_back():
    out = np.zeros(32, np.uint32)
    run(
        """mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; mad.wide.u32 %rd6, %r0, 4, %rd5;
           mul.lo.u32 %r1, %r0, 3; st.u32 [%rd6], %r1; cvta.to.shared.u64 %rd7, %rd6;
           cvt.u32.u64 %r2, %rd7; ld.shared.u32 %r3, [%r2]; mad.wide.u32 %rd3, %r0, 4, %rd1;
           isspacep.shared %p0, %rd6; @!%p0 trap; isspacep.global %p1, %rd6; @%p1 trap;
           isspacep.global %p2, %rd3; @!%p2 trap; st.u32 [%rd3], %r3;""",
        np.zeros(1),
        out,
        ".shared .align 4 .b8 s[128];",
    )
    assert out.tolist() == [3 * k for k in range(32)]


def test_a_shared_variable_cannot_be_accessed_as_global():
    trap = trapped("ld.global.u32 %r1, [s];", np.zeros(1), np.zeros(1), ".shared .b32 s;")
    assert trap.category == "address-space"


def test_lanes_of_one_generic_access_may_go_to_different_spaces():
    a, out = np.arange(32, dtype=np.uint32) + 50, np.zeros(32, np.uint32)
    run(
        """mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; mad.wide.u32 %rd6, %r0, 4, %rd5;
           st.u32 [%rd6], %r0; mad.wide.u32 %rd7, %r0, 4, %rd0; and.b32 %r1, %r0, 1;
           setp.eq.u32 %p0, %r1, 0; selp.b64 %rd8, %rd6, %rd7, %p0; ld.u32 %r2, [%rd8];
           mad.wide.u32 %rd3, %r0, 4, %rd1; st.u32 [%rd3], %r2;""",
        a,
        out,
        ".shared .align 4 .b8 s[128];",
    )
    assert out.tolist() == [k if k % 2 == 0 else k + 50 for k in range(32)]


# -- local, const, global variables, parameters -------------------------------------------------


def test_parameters_of_every_type_reach_the_kernel():
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out, .param .f32 f, .param .s8 small,
       .param .align 8 .b8 raw[12], .param .f64 d, .param .u16 h) {
      .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f64 %d; .reg .f32 %f;
      ld.param.u64 %rd0, [out]; ld.param.b32 %r0, [f]; ld.param.s8 %r1, [small];
      ld.param.u32 %r2, [raw+8]; ld.param.f64 %d, [d]; cvt.rn.f32.f64 %f, %d;
      mov.b32 %r3, %f; ld.param.u16 %r4, [h]; mov.b64 %rd1, raw; cvta.param.u64 %rd2, %rd1;
      ld.u32 %r5, [%rd2+4];
      st.global.v4.u32 [%rd0], {%r0, %r1, %r2, %r3}; st.global.v2.u32 [%rd0+16], {%r4, %r5};
      ret; }"""
    )
    out = np.zeros(6, np.uint32)
    raw = np.array([1, 22, 333], np.uint32).tobytes()
    launch(text, "k", grid=1, block=32, params=[out, 1.5, -2, raw, 0.25, np.uint16(65535)])
    assert out.tolist() == [0x3FC00000, 0xFFFFFFFE, 333, 0x3E800000, 65535, 22]


def test_poison_differs_by_seed_and_is_never_zero():
    found = []
    for seed in range(3):
        out = np.zeros(32, np.uint32)
        run(
            "mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], %r17;",
            np.zeros(1),
            out,
            seed=seed,
            check="off",
        )
        assert out.all()
        found.append(out.tobytes())
    assert len(set(found)) == 3


ADDRESSED = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 8 .b8 fields[64])
{ .reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d0, [out]; mov.b64 %d1, fields;
  ACCESS st.global.b32 [%d0], %r1; ret; }
"""


@pytest.mark.parametrize(
    "access",
    [
        "ld.param.b32 %r1, [%d1+4];",
        "cvta.param.u64 %d1, %d1; ld.b32 %r1, [%d1+4];",
        "cvta.param.u64 %d1, %d1; cvta.to.param.u64 %d1, %d1; ld.param.b32 %r1, [%d1+4];",
    ],
)
def test_a_parameter_is_read_at_its_own_address_or_a_generic_one(access):
    out = np.zeros(1, np.uint32)
    text = ADDRESSED.replace("ACCESS", access)
    launch(text, "k", grid=1, block=1, params=[out, bytes(range(64))])
    assert out[0] == 0x07060504


def test_a_generic_address_is_none_of_a_parameter():
    """An H200 stops there (PTX ISA §6.4.1: ld.param takes an address of .param)"""
    access = "cvta.param.u64 %d1, %d1; ld.param.b32 %r1, [%d1+4];"
    with pytest.raises(Trap, match=r"is a generic address, and not one of \.param") as caught:
        launch(ADDRESSED.replace("ACCESS", access), "k", grid=1, block=1,
               params=[np.zeros(1, np.uint32), bytes(64)])  # fmt: skip
    assert caught.value.category == "address-space"
