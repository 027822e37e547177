"""mov, cvta, mapa, prmt and special registers (PTX ISA §9.7.9, §10)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"


@pytest.mark.parametrize("parts, whole, count", [(16, 32, 2), (32, 64, 2), (16, 64, 4)])
def test_vectors_pack_lowest_element_first(execute, integers, parts, whole, count):
    """PTX ISA §9.7.9.4 mov with vector operands"""
    a = integers(whole, 1)
    names = ["%h0", "%h1", "%h2", "%h3"] if parts == 16 else ["%t0", "%t1"]
    vector = ", ".join(names[:count])
    swapped = ", ".join(reversed(names[:count]))
    got = execute(f"mov.b{whole} {{{vector}}}, %a; mov.b{whole} %d, {{{swapped}}};", a, out=a.dtype)
    for x, d in zip(a.tolist(), got.tolist(), strict=True):
        words = [x >> parts * k & (1 << parts) - 1 for k in range(count)]
        assert d == sum(word << parts * k for k, word in enumerate(reversed(words)))


def test_128_bit_registers_hold_two_words(execute, integers):
    """PTX ISA §9.7.9.4 mov.b128"""
    a, b = integers(64, 1), integers(64, 2)
    body = """.reg .b128 %x, %y; mov.b128 %x, {%a, %b}; mov.b128 %y, %x;
              mov.b128 {%w0, %w1}, %y; sub.u64 %d, %w0, %w1;"""
    got = execute(body, a, b, out=np.uint64)
    assert got.tolist() == [
        (x - y) & (1 << 64) - 1 for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


def test_a_masked_128_bit_write_keeps_the_other_lanes(execute, integers):
    a = integers(64, 3)
    body = """.reg .b128 %x; mov.b128 %x, {%a, 7}; setp.lt.u32 %p, %lane, 5;
              @%p mov.b128 %x, {9, 9}; mov.b128 {%d, _}, %x;"""
    got = execute(body, a, out=np.uint64)
    assert got.tolist() == [9] * 5 + a.tolist()[5:]


def test_a_masked_copy_of_a_128_bit_register_keeps_the_other_lanes(execute, integers):
    a, b = integers(64, 3), integers(64, 4)
    body = """.reg .b128 %x, %y; mov.b128 %x, {%a, 7}; mov.b128 %y, {%b, 8};
              setp.lt.u32 %p, %lane, 5; @%p mov.b128 %x, %y; mov.b128 {%w0, %w1}, %x;
              mad.lo.u64 %d, %w1, 1000, %w0;"""
    got = execute(body, a, b, out=np.uint64)
    wanted = [8000 + x for x in b.tolist()[:5]] + [7000 + x for x in a.tolist()[5:]]
    assert got.tolist() == [x & (1 << 64) - 1 for x in wanted]


def test_the_sink_drops_an_element(execute, integers):
    a = integers(64, 1)
    got = execute("mov.b64 {_, %d}, %a;", a, out=np.uint32)
    assert got.tolist() == [x >> 32 for x in a.tolist()]


@pytest.mark.parametrize(
    "text, bits",
    [
        ("0f3FC00000", 0x3FC00000),
        ("-1", 0xFFFFFFFF),
        ("0x80U", 0x80),
        ("017", 0o17),
        ("0b101", 5),
        ("WARP_SZ", 32),
        ("~0", 0xFFFFFFFF),
        ("-0f3F800000", 0xBF800000),
    ],
)
def test_constants(execute, text, bits):
    """PTX ISA §4.5"""
    assert execute(f"mov.b32 %d, {text};", out=np.uint32).tolist() == [bits] * 32


def test_decimal_floats_are_rounded_to_the_instruction_type(execute):
    """PTX ISA §4.5.2: decimal constants are f64"""
    a = np.zeros(32, np.float32)
    assert execute("add.f32 %d, %a, 0.1;", a, out=np.float32)[0] == np.float32(0.1)
    got = execute("mov.f64 %d, 0d3FB999999999999A;", out=np.float64)
    assert got[0] == 0.1


@pytest.mark.parametrize("mode", [None, "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_byte_permutation(execute, integers, mode):
    """PTX ISA §9.7.9.7 prmt, by its tables"""
    tables = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    a, b = integers(32, 1), integers(32, 2)
    c = np.random.default_rng(0).integers(0, 1 << 16, 32, np.uint32)
    got = execute(f"prmt.b32{'.' + mode if mode else ''} %d, %a, %b, %c;", a, b, c, out=np.uint32)
    for x, y, z, d in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        data = (y << 32 | x).to_bytes(8, "little")
        wanted = 0
        for position in range(4):
            nibble = z >> 4 * position & 15
            if mode is None:
                byte = data[nibble & 7]
                byte = (0xFF if byte & 0x80 else 0) if nibble & 8 else byte
            else:
                byte = data[int(tables[mode][z & 3][3 - position])]
            wanted |= byte << 8 * position
        assert d == wanted


# -- special registers -----------------------------------------------------------------------


def read_special(register: str, *, bits: int = 32, **shape) -> np.ndarray:
    """The register in every thread of the grid, [ctas, threads]."""
    grid, block = np.prod(shape["grid"]), np.prod(shape["block"])
    out = np.zeros((grid, block), f"u{bits // 8}")
    x, y, _ = (*shape["block"], 1, 1)[:3]
    text = (
        HEADER
        + f""".visible .entry k(.param .u64 out, .param .u32 gx, .param .u32 gy) {{
      .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .b{bits} %v;
      ld.param.u64 %rd0, [out]; ld.param.u32 %r10, [gx]; ld.param.u32 %r11, [gy];
      mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z;
      mad.lo.u32 %r3, %r2, %r11, %r1; mad.lo.u32 %r3, %r3, %r10, %r0;
      mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.y; mov.u32 %r6, %tid.z;
      mad.lo.u32 %r7, %r6, {y}, %r5; mad.lo.u32 %r7, %r7, {x}, %r4;
      mad.lo.u32 %r8, %r3, {block}, %r7; mad.wide.u32 %rd1, %r8, {bits // 8}, %rd0;
      mov.b{bits} %v, {register}; st.global.b{bits} [%rd1], %v; ret; }}"""
    )
    gx, gy, _ = (*shape["grid"], 1, 1)[:3]
    launch(text, "k", params=[out, gx, gy], **shape)
    return out


@pytest.mark.parametrize("axis", "xyz")
def test_thread_and_block_indices(axis):
    """PTX ISA §10.1 %tid, §10.2 %ntid, §10.6 %ctaid, §10.7 %nctaid"""
    grid, block, number = (3, 2, 2), (5, 7, 3), "xyz".index(axis)
    shape = dict(grid=grid, block=block)
    threads = np.indices(block[::-1])[2 - number].reshape(-1)
    ctas = np.indices(grid[::-1])[2 - number].reshape(-1)
    assert (read_special(f"%tid.{axis}", **shape) == threads).all()
    assert (read_special(f"%ctaid.{axis}", **shape) == ctas[:, None]).all()
    assert (read_special(f"%ntid.{axis}", **shape) == block[number]).all()
    assert (read_special(f"%nctaid.{axis}", **shape) == grid[number]).all()


def test_lane_and_warp_numbers():
    """PTX ISA §10.3 %laneid, §10.4 %warpid, §10.13–§10.17 %lanemask_*"""
    shape = dict(grid=(2,), block=(80,))
    lane = np.arange(80) % 32
    assert (read_special("%laneid", **shape) == lane).all()
    assert (read_special("%warpid", **shape) == np.arange(80) // 32).all()
    one = np.uint64(1) << lane.astype(np.uint64)
    full = np.uint64(0xFFFFFFFF)
    for name, mask in {
        "eq": one,
        "lt": one - 1,
        "le": 2 * one - 1,
        "gt": full - (2 * one - 1),
        "ge": full - (one - 1),
    }.items():
        assert (read_special(f"%lanemask_{name}", **shape) == mask).all()


def test_cluster_registers():
    """PTX ISA §10.11 %clusterid and following"""
    shape = dict(grid=(4, 2), block=(32,), cluster=(2, 2))
    x, y = np.arange(8) % 4, np.arange(8) // 4
    for register, wanted in {
        "%clusterid.x": x // 2,
        "%clusterid.y": y // 2,
        "%nclusterid.x": 2 + 0 * x,
        "%cluster_ctaid.x": x % 2,
        "%cluster_ctaid.y": y % 2,
        "%cluster_nctaid.x": 2 + 0 * x,
        "%cluster_ctarank": x % 2 + 2 * (y % 2),
        "%cluster_nctarank": 4 + 0 * x,
    }.items():
        assert (read_special(register, **shape) == wanted[:, None]).all(), register


def test_without_clusters_each_cta_is_its_own():
    shape = dict(grid=(3,), block=(32,))
    for register, wanted in {
        "%cluster_ctarank": 0,
        "%cluster_nctarank": 1,
        "%cluster_nctaid.x": 1,
        "%cluster_ctaid.x": 0,
    }.items():
        assert (read_special(register, **shape) == wanted).all()


def test_clocks_advance(execute):
    """PTX ISA §10.24 %clock, §10.26 %clock64, §10.28 %globaltimer"""
    got = execute(
        """mov.u64 %w0, %clock64; mov.u64 %w1, %clock64; sub.u64 %d, %w1, %w0;""", out=np.uint64
    )
    assert (0 < got).all() and (got < 1000).all()
    got = execute(
        """mov.u64 %w0, %globaltimer; mov.u64 %w1, %globaltimer;
                     setp.gt.u64 %p, %w1, %w0; selp.u32 %d, 1, 0, %p;""",
        out=np.uint32,
    )
    assert got.all()
    got = execute("mov.u32 %t0, %clock; mov.u32 %t1, %clock; sub.u32 %d, %t1, %t0;", out=np.uint32)
    assert got.all()


def test_explicit_clusters_are_told(execute):
    """PTX ISA §10.10 %is_explicit_cluster"""
    got = execute("mov.pred %p, %is_explicit_cluster; selp.u32 %d, 1, 0, %p;", out=np.uint32)
    assert got.tolist() == [0] * 32


def test_shared_memory_sizes_are_told():
    """PTX ISA §10.30 %total_smem_size, §10.32 %dynamic_smem_size"""
    shape = dict(grid=(1,), block=(32,), shared_bytes=4096)
    assert (read_special("%dynamic_smem_size", **shape) == 4096).all()
    assert (read_special("%total_smem_size", **shape) == 4096).all()


def test_a_special_register_that_does_not_exist_is_refused(trap_of):
    trap = trap_of("mov.u32 %d, %nonsense;")
    assert (trap.category, trap.message) == (
        "undeclared",
        "`%nonsense` is neither a register nor a variable",
    )
