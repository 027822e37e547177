"""atom and red (PTX ISA §9.7.13.5, §9.7.13.6)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"

OPERATIONS = {
    "add.u32": lambda old, b: old + b & 0xFFFFFFFF,
    "add.s32": lambda old, b: old + b & 0xFFFFFFFF,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda old, b: min(old, b, key=lambda v: v - (v >> 31 << 32)),
    "max.s32": lambda old, b: max(old, b, key=lambda v: v - (v >> 31 << 32)),
    "and.b32": lambda old, b: old & b,
    "or.b32": lambda old, b: old | b,
    "xor.b32": lambda old, b: old ^ b,
    "exch.b32": lambda old, b: b,
    "inc.u32": lambda old, b: 0 if old >= b else old + 1,
    "dec.u32": lambda old, b: b if old == 0 or old > b else old - 1,
}


def run(text: str, memory: np.ndarray, operands: np.ndarray, *, shared: bool = False):
    """Each lane applies the instruction to memory[lane % 5]; returns the old values."""
    size = memory.dtype.itemsize
    out = np.zeros(32, memory.dtype)
    kernel = (
        HEADER
        + f""".visible .entry k(.param .u64 m, .param .u64 b, .param .u64 out) {{
      .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b{size * 8} %v<4>; .reg .pred %p;
      .shared .align 16 .b8 s[64];
      ld.param.u64 %rd0, [m]; ld.param.u64 %rd1, [b]; ld.param.u64 %rd2, [out];
      mov.u32 %r0, %tid.x; rem.u32 %r1, %r0, 5; mad.wide.u32 %rd3, %r1, {size}, %rd0;
      mad.wide.u32 %rd4, %r0, {size}, %rd1; ld.global.b{size * 8} %v0, [%rd4];
      mad.wide.u32 %rd5, %r0, {size}, %rd2;
      setp.lt.u32 %p, %r0, 5; ld.global.b{size * 8} %v2, [%rd3]; mov.u32 %r2, s;
      mad.lo.u32 %r2, %r1, {size}, %r2; @%p st.shared.b{size * 8} [%r2], %v2;
      bar.warp.sync 0xFFFFFFFF; {text} bar.warp.sync 0xFFFFFFFF;
      st.global.b{size * 8} [%rd5], %v1; ld.shared.b{size * 8} %v3, [%r2];
      {f"st.global.b{size * 8} [%rd3], %v3;" if shared else ""} ret; }}"""
    )
    launch(kernel, "k", grid=1, block=32, params=[memory, operands, out])
    return out


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_lanes_at_one_address_are_applied_one_after_the_other(integers, name, shared):
    memory, operands = integers(32, 1)[:5].copy(), integers(32, 2)
    wanted_memory, old = memory.tolist(), []
    for lane, operand in enumerate(operands.tolist()):
        old.append(wanted_memory[lane % 5])
        wanted_memory[lane % 5] = OPERATIONS[name](wanted_memory[lane % 5], operand)
    address = "shared.{n} %v1, [%r2]" if shared else "relaxed.gpu.global.{n} %v1, [%rd3]"
    got = run(f"atom.{address.format(n=name)}, %v0;", memory, operands, shared=shared)
    assert memory.tolist() == wanted_memory
    assert got.tolist() == old


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap(integers, bits):
    memory, operands = integers(bits, 1)[:5].copy(), integers(bits, 2)
    operands[:10] = np.resize(memory, 10)
    wanted = memory.tolist()
    for lane, operand in enumerate(operands.tolist()):
        if wanted[lane % 5] == operand:
            wanted[lane % 5] = lane
    move = {16: "cvt.u16.u32 %v2, %r0;", 32: "mov.b32 %v2, %r0;", 64: "cvt.u64.u32 %v2, %r0;"}
    run(move[bits] + f" atom.global.cas.b{bits} %v1, [%rd3], %v0, %v2;", memory, operands)
    assert memory.tolist() == wanted


@pytest.mark.parametrize(
    "type_, dtype", [("f32", np.float32), ("f64", np.float64), ("f16", np.float16)]
)
def test_float_addition_in_lane_order(type_, dtype):
    rng = np.random.default_rng(0)
    memory, operands = rng.normal(size=5).astype(dtype), rng.normal(size=32).astype(dtype)
    wanted = memory.copy()
    for lane, operand in enumerate(operands):
        wanted[lane % 5] += operand
    noftz = ".noftz" if type_ == "f16" else ""
    run(
        f"red.global.add{noftz}.{type_} [%rd3], %v0; mov.b{dtype().itemsize * 8} %v1, 0;",
        memory,
        operands,
    )
    assert memory.tobytes() == wanted.tobytes()


def test_generic_addresses_and_64_bits(integers):
    memory, operands = integers(64, 1)[:5].copy(), integers(64, 2)
    wanted = memory.tolist()
    for lane, operand in enumerate(operands.tolist()):
        wanted[lane % 5] = max(wanted[lane % 5], operand)
    run("atom.acq_rel.gpu.max.u64 %v1, [%rd3], %v0;", memory, operands)
    assert memory.tolist() == wanted


@pytest.mark.parametrize(
    ("space", "address", "flushes"),
    [("global.", "%rd3", True), ("shared.", "s", False), ("", "%rd3", True), ("", "%rd6", False)],
)
@pytest.mark.parametrize("opcode", ["atom", "red"])
def test_sums_of_f32_flush_subnormal_numbers_in_global_memory_alone(
    opcode, space, address, flushes
):
    """PTX ISA §9.7.13.5; generic addresses go by where they lead."""
    tiny, least = np.float32(2.0**-140), np.float32(2.0**-126)
    text = f""".version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 m) {{
  .reg .b64 %rd<9>; .reg .b32 %v<4>; .shared .align 8 .b32 s[2];
  ld.param.u64 %rd3, [m]; mov.u64 %rd6, s; cvta.shared.u64 %rd6, %rd6;
  mov.b32 %v0, 0f{tiny.view(np.uint32):08x}; mov.b32 %v1, 0f{least.view(np.uint32):08x};
  st.shared.v2.b32 [s], {{%v0, %v1}}; st.global.v2.b32 [%rd3], {{%v0, %v1}};
  OP.{space}add.f32 [{address}], %v0; OP.{space}add.f32 [{address}+4], %v0;
  LOOK st.global.v2.b32 [%rd3], {{%v2, %v3}}; ret; }}
"""
    text = text.replace("OP", opcode)
    if opcode == "atom":
        text = text.replace("add.f32 [", "add.f32 %v2, [")
    look = "ld.shared.v2.b32 {%v2, %v3}, [s];" if address != "%rd3" else ""
    look = look or "ld.global.v2.b32 {%v2, %v3}, [%rd3];"
    memory = np.zeros(2, np.float32)
    launch(text.replace("LOOK", look), "k", grid=1, block=1, params=[memory])
    assert memory.tolist() == ([0, least] if flushes else [2 * tiny, least + tiny])
