"""Shared, local, constant and module memory: where each lies, how long it lasts, what ends it."""

from __future__ import annotations

import numpy as np
import pytest
from memory_kernels import HEADER, START, run, trapped

from tilewright.runtime.emulator import launch


def test_static_and_dynamic_shared_memory_do_not_overlap():
    out = np.zeros((32, 2), np.uint32)
    declarations = """.shared .align 4 .b8 fixed[128];
                      .extern .shared .align 16 .b8 dynamic[];"""
    run(
        """mov.u32 %r1, fixed; mov.u32 %r2, dynamic; shl.b32 %r3, %r0, 2;
           add.u32 %r4, %r1, %r3; add.u32 %r5, %r2, %r3;
           add.u32 %r6, %r0, 100; st.shared.u32 [%r4], %r0; st.shared.u32 [%r5], %r6;
           ld.shared.u32 %r7, [%r4]; ld.shared.u32 %r8, [%r5];
           mad.wide.u32 %rd3, %r0, 8, %rd1; st.global.v2.u32 [%rd3], {%r7, %r8};""",
        np.zeros(1),
        out,
        declarations,
        shared_bytes=128,
    )
    assert np.array_equal(out, np.stack([np.arange(32), np.arange(32) + 100], 1))


@pytest.mark.parametrize("bytes_", [0, 124])
def test_dynamic_shared_memory_ends_where_the_launch_says(bytes_):
    trap = trapped(
        """mov.u32 %r2, dynamic; shl.b32 %r3, %r0, 2; add.u32 %r5, %r2, %r3;
                      st.shared.u32 [%r5], %r0;""",
        np.zeros(1),
        np.zeros(1),
        ".extern .shared .align 16 .b8 dynamic[];",
        shared_bytes=bytes_,
    )
    assert trap.category == "out-of-bounds"


def test_shared_memory_below_the_first_usable_byte_is_out_of_bounds():
    trap = trapped(
        "mov.u32 %r1, 0; st.shared.u32 [%r1], %r0;", np.zeros(1), np.zeros(1), shared_bytes=4096
    )
    assert trap.category == "out-of-bounds"


def test_an_unwritten_shared_byte_cannot_be_read_and_used():
    trap = trapped(
        """mov.u32 %r1, s; setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u16 [%r1], 1;
                      @%p0 ld.shared.u32 %r2, [%r1]; @%p0 st.global.u32 [%rd1], %r2;""",
        np.zeros(1),
        np.zeros(1),
        ".shared .align 4 .b8 s[128];",
    )
    assert trap.category == "uninitialised-read"


def test_local_memory_belongs_to_each_thread():
    """PTX ISA §5.1.5"""
    out = np.zeros(32, np.uint32)
    run(
        """.local .align 8 .b8 depot[64]; mov.u64 %rd4, depot; cvta.local.u64 %rd5, %rd4;
           st.local.u32 [%rd4+8], %r0; and.b32 %r1, %r0, 7; mad.wide.u32 %rd6, %r1, 4, %rd5;
           st.u32 [%rd6+32], %r0; ld.u32 %r2, [%rd5+8]; ld.local.u32 %r3, [depot+8];
           ld.u32 %r4, [%rd6+32]; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
           mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], %r2;""",
        np.zeros(1),
        out,
    )
    assert out.tolist() == [3 * k for k in range(32)]


@pytest.mark.parametrize("offset", [64, -4, 62])
def test_local_accesses_stay_inside_the_thread_s_memory(offset):
    trap = trapped(
        f""".local .align 8 .b8 depot[64]; mov.u64 %rd4, depot;
                       ld.local.u32 %r1, [%rd4+{offset}];""",
        np.zeros(1),
        np.zeros(1),
    )
    assert trap.category in ("out-of-bounds", "misaligned")


def test_module_variables_are_initialised():
    """PTX ISA §5.4.4"""
    out = np.zeros((32, 4), np.uint32)
    declarations = """.const .align 4 .b32 table[4] = {10, -1, 0x30};
      .global .align 4 .f32 half = 0f3F000000; .global .align 8 .u64 where = generic(table);
      .global .align 4 .b8 bytes[8] = {1, 2, 3, 4, 5};"""
    run(
        """and.b32 %r1, %r0, 3; mov.u64 %rd4, table; mad.wide.u32 %rd5, %r1, 4, %rd4;
           ld.const.u32 %r2, [%rd5]; ld.global.u32 %r3, [half]; ld.global.u64 %rd6, [where];
           ld.u32 %r4, [%rd6+4]; ld.global.u32 %r5, [bytes+4]; mad.wide.u32 %rd3, %r0, 16, %rd1;
           st.global.v4.u32 [%rd3], {%r2, %r3, %r4, %r5};""",
        np.zeros(1),
        out,
        declarations,
    )
    assert out[:, 0].tolist() == [10, 0xFFFFFFFF, 0x30, 0] * 8
    assert out[0, 1:].tolist() == [0x3F000000, 0xFFFFFFFF, 5]


def test_constants_cannot_be_written():
    trap = trapped(
        "mov.u64 %rd4, c; st.u32 [%rd4], 1;", np.zeros(1), np.zeros(1), ".const .b32 c = 3;"
    )
    assert trap.category == "read-only"


def test_addresses_of_constants_and_parameters_fit_32_bits():
    """As LLVM makes them with short pointers: mov.b32, then ld or cvta of the extended address"""
    out = np.zeros(4, np.uint32)
    body = """mov.b32 %r1, table; ld.const.u32 %r2, [%r1+4]; cvt.u64.u32 %rd4, %r1;
        cvta.const.u64 %rd5, %rd4; ld.u32 %r3, [%rd5+8]; mov.b32 %r4, k_param;
        ld.param.u32 %r5, [%r4]; cvt.u64.u32 %rd6, %r4; cvta.param.u64 %rd7, %rd6;
        ld.u32 %r6, [%rd7]; st.global.v4.u32 [%rd1], {%r2, %r3, %r5, %r6};"""
    start = START.replace("(.param", "(.param .u32 k_param, .param", 1)
    text = HEADER + ".const .align 4 .b32 table[3] = {10, 20, 30};\n" + start + body + " ret; }"
    launch(text, "k", grid=1, block=1, params=[77, np.zeros(1), out])
    assert out.tolist() == [20, 30, 77, 77]


def test_global_variables_start_anew_in_every_launch():
    for _ in range(2):
        out = np.zeros(32, np.uint32)
        run(
            """ld.global.u32 %r1, [g]; add.u32 %r2, %r1, 1; st.global.u32 [g], %r2;
               mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], %r1;""",
            np.zeros(1),
            out,
            ".global .u32 g = 41;",
        )
        assert out.tolist() == [41] * 32
