"""What was read from memory, or from a register, that nobody has written may be passed on, and may
not count: in an address, a guard, a store, a product. Compilers read so ahead of loops that may
have no steps.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(3)
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 zero)
{ .reg .b32 %r<40>; .reg .b16 %h<2>; .reg .b64 %rd<9>; .reg .pred %p<9>; .reg .f32 %f<9>;
  .shared .align 16 .b8 s[1024]; .shared .align 4 .b8 written[128];
  ld.param.u64 %rd0, [out]; ld.param.u32 %r8, [zero]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2;
  cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd0, %rd1; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;
  setp.ne.u32 %p0, %r8, 0; setp.eq.u32 %p1, %r0, 5; mov.u32 %r10, 7; mov.u32 %r3, written;
  setp.lt.u32 %p4, %r0, 4;
  LOAD
"""
SHARED = "ld.shared.u32 %r9, [%r2];"
TENSOR = """.shared .align 4 .b32 at;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; bar.warp.sync -1;
  ld.shared.u32 %r20, [at]; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r20];
  tcgen05.wait::ld.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;"""
RIGHT = {
    "nobody uses it": "",
    "selp takes the other value": "add.u32 %r11, %r9, 1; selp.b32 %r10, %r11, %r10, %p0;",
    "a loop without steps would use it": """max.s32 %r11, %r9, %r10; @!%p0 bra END;
      mov.u32 %r10, %r11;""",
    "a guard that does not hold": "@%p0 st.shared.u32 [%r3], %r9; @%p0 mov.u32 %r10, %r9;",
    "it is overwritten": "mov.u32 %r9, 7; mov.u32 %r10, %r9;",
    "it is overwritten by a load": """st.shared.u32 [%r2], 7; ld.shared.u32 %r9, [%r2];
      mov.u32 %r10, %r9;""",
    "lanes pass it on, and take the other value": """shfl.sync.bfly.b32 %r11, %r9, 16, 31, -1;
      cvt.rn.f32.u32 %f1, %r11; ex2.approx.f32 %f2, %f1; mov.b32 %r12, %f2;
      selp.b32 %r10, %r12, %r10, %p0;""",
    "lanes that have it tell others that have it": """@!%p4 bra NEXT; mov.u32 %r9, 7; NEXT:
      shfl.sync.bfly.b32 %r11, %r9, 2, 31, -1; add.u32 %r11, %r11, %r9;
      shfl.sync.idx.b32 %r12, %r11, %r8, 0x1c1f, -1; @%p4 mov.u32 %r10, %r9; sub.u32 %r12, %r12, 7;
      @%p4 mov.u32 %r10, %r12;""",
    "a false predicate settles the guard": """setp.gt.u32 %p2, %r9, 3; and.pred %p3, %p2, %p0;
      @%p3 mov.u32 %r10, 1;""",
    "a true predicate settles the guard": """setp.gt.u32 %p2, %r9, 3; not.pred %p4, %p0;
      or.pred %p3, %p4, %p2; @!%p3 mov.u32 %r10, 1;""",
    "zero settles the bits": "and.b32 %r11, %r9, %r8; or.b32 %r10, %r10, %r11;",
    "another part of a vector is stored": """st.shared.v2.u32 [s+512], {%r10, %r10};
      ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [s+512]; setp.ne.u32 %p2, %r11, 7;
      @%p2 mov.u32 %r10, 0;""",
    "another lane's is stored": """@%p1 bra READ; st.shared.u32 [%r2], 7; READ:
      ld.shared.u32 %r11, [%r2]; @!%p1 mov.u32 %r10, %r11;""",
    "lanes that have it do not take part": """@%p1 mov.u32 %r9, 7; @!%p1 bra END;
      mov.u32 %r10, %r9;""",
}
WRONG = {
    "stored": "mov.u32 %r10, %r9;",
    "by way of others": "add.u32 %r11, %r9, 1; xor.b32 %r12, %r11, %r11; mov.u32 %r10, %r12;",
    "an address": "and.b32 %r11, %r9, 4; add.u32 %r11, %r11, %r2; ld.shared.u32 %r12, [%r11];",
    "a branch": "setp.gt.u32 %p2, %r9, 3; @%p2 bra END;",
    "a guard": "setp.gt.u32 %p2, %r9, 3; @%p2 mov.u32 %r10, 7;",
    "a selection": "setp.gt.u32 %p2, %r9, 3; selp.b32 %r10, 7, 8, %p2;",
    "selp takes it": "selp.b32 %r10, %r10, %r9, %p0;",
    "one lane of it": "selp.b32 %r10, %r9, %r10, %p1;",
    "lanes that have it tell those that do not": """@!%p4 bra NEXT; mov.u32 %r9, 7; NEXT:
      shfl.sync.bfly.b32 %r11, %r9, 4, 31, -1; @%p4 mov.u32 %r10, %r11;""",
    "one lane of it, from another": """shfl.sync.idx.b32 %r11, %r9, 3, 31, -1;
      selp.b32 %r10, %r11, %r10, %p1;""",
    "a true predicate beside it": """setp.gt.u32 %p2, %r9, 3; not.pred %p4, %p0;
      and.pred %p3, %p2, %p4; @%p3 mov.u32 %r10, 1;""",
    "a product": """mov.u32 %r11, 0; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
      {%f1, %f2, %f3, %f4}, {%r9, %r11}, {%r11}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};
      mov.b32 %r10, %f1;""",
    "an atomic operation": "red.global.add.u32 [%rd1], %r9;",
}


NEVER = ""
"""Nothing writes %r9 at all."""
PARTS = {
    "a half beside it": "mov.b32 {%h0, _}, %r10; mov.b32 %r11, {%h0, %h1}; and.b32 %r10, %r11, 15;",
    "a byte beside it": "prmt.b32 %r11, %r10, %r9, 0x7540; and.b32 %r10, %r11, 15;",
    "one side of a branch": "@%p0 bra LATE; mov.u32 %r9, 7; LATE: @!%p0 mov.u32 %r10, %r9;",
    "a loop's first step": """L: setp.eq.u32 %p2, %r8, 1; @%p2 mov.u32 %r10, %r9;
      mov.u32 %r9, 7; add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 2; @%p3 bra L;""",
}


def run(load: str, body: str, seed: int) -> list[int]:
    out = np.full(32, 0xBAD, np.uint32)
    text = f"{HEADER.replace('LOAD', load)}{body}\nEND: st.global.u32 [%rd1], %r10; ret; }}\n"
    launch(text, "k", grid=1, block=32, params=[out, 0], seed=seed)
    return out.tolist()


@pytest.mark.parametrize("load", [SHARED, TENSOR, NEVER], ids=["shared", "tensor", "never"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_was_never_written_may_be_read_and_forgotten(name, load):
    for seed in SEEDS:
        assert run(load, RIGHT[name], seed) == [7] * 32


@pytest.mark.parametrize("load", [SHARED, TENSOR], ids=["shared", "tensor"])
@pytest.mark.parametrize("name", WRONG)
def test_where_it_counts_the_read_is_named_and_its_use(name, load):
    for seed in SEEDS:
        with pytest.raises(Trap, match=r"; ptx:\d+ `.*` uses what it read$") as caught:
            run(load, WRONG[name], seed)
        assert caught.value.category == "uninitialised-read"
        assert caught.value.text.startswith(load.split("; ")[0] if load == SHARED[:-1] else "")
        assert "ld." in caught.value.text


@pytest.mark.parametrize("name", WRONG)
def test_a_register_that_nothing_has_written_is_named_where_it_is_read(name):
    for seed in SEEDS:
        with pytest.raises(Trap, match=r"nothing has written register %r9") as caught:
            run(NEVER, WRONG[name], seed)
        assert caught.value.category == "uninitialised-read"
        assert "%r9" in caught.value.text and caught.value.lanes


@pytest.mark.parametrize("name", PARTS)
def test_what_of_a_register_does_not_count_needs_no_writing(name):
    for seed in SEEDS:
        assert run(NEVER, PARTS[name], seed) == [7] * 32


def test_a_register_that_some_lanes_have_written_is_named_with_the_others():
    with pytest.raises(Trap, match=r"nothing has written register %r9") as caught:
        run(NEVER, "@%p1 mov.u32 %r9, 7; mov.u32 %r10, %r9;", 0)
    assert caught.value.lanes == (1 << 32) - 1 ^ 1 << 5


def test_a_part_of_a_vector_that_nobody_has_stored_is_named():
    body = """st.shared.v2.u32 [s+512], {%r10, %r10};
      ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [s+512]; mov.u32 %r10, %r13;"""
    with pytest.raises(Trap, match=r"; ptx:\d+ `st.global.u32 .*` uses what it read$"):
        run("", body, 0)


ASKED = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %rd0; .reg .pred %p<2>; .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; ld.param.u64 %rd0, [out]; mov.b32 %r1, 1;
  @%p0 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
  { .reg .pred P1, P2;
    setp.eq.u32 P2, %r1, 1;
    @P2 mbarrier.ASKS.parity.shared::cta.b64 P1, [bar], PARITY;
    selp.b32 %r2, 1, 0, P1; }
  setp.ne.s32 %p1, %r2, 0; @%p1 bra DONE; mov.b32 %r2, 2; DONE:
  @%p0 st.global.b32 [%rd0], %r2; ret; }
"""


@pytest.mark.parametrize("asks", ["test_wait", "try_wait"])
@pytest.mark.parametrize(("parity", "wanted"), [(1, 1), (0, 2)])
def test_a_wait_that_is_told_no_has_written_its_answer(asks, parity, wanted):
    """CUTLASS asks so ahead of its loops, under a guard that holds."""
    out = np.zeros(1, np.uint32)
    text = ASKED.replace("ASKS", asks).replace("PARITY", str(parity))
    launch(text, "k", grid=1, block=64, params=[out])
    assert out[0] == wanted


PASSED_ON = {
    "nobody reads it": "",
    "another part of the bytes is read": "ld.shared.u32 %r10, [%r3+4]; mov.u32 %r10, 7;",
    "it is read and forgotten": "ld.shared.u32 %r11, [%r3]; selp.b32 %r10, %r11, %r10, %p0;",
    "it is overwritten": "st.shared.u32 [%r3], %r10; ld.shared.u32 %r10, [%r3];",
    "it is overwritten in part, which is read": """st.shared.u8 [%r3+1], %r10;
      ld.shared.u8 %r10, [%r3+1];""",
}
STORE = "add.u32 %r3, %r3, %r1; st.shared.v2.u32 [%r3+128], {%r9, %r10}; add.u32 %r3, %r3, 128;"
WIDE = HEADER.replace("written[128]", "written[1024]").replace(
    "shl.b32 %r1, %r0, 2", "shl.b32 %r1, %r0, 3"
)


def pass_on(body: str, load: str, seed: int) -> list[int]:
    out = np.full(64, 0xBAD, np.uint32)
    text = f"{WIDE.replace('LOAD', load)}{STORE}{body}\nst.global.u32 [%rd1], %r10; ret; }}\n"
    launch(text, "k", grid=1, block=32, params=[out, 0], seed=seed)
    return out[::2].tolist()


@pytest.mark.parametrize("load", [SHARED, TENSOR, NEVER], ids=["shared", "tensor", "never"])
@pytest.mark.parametrize("name", PASSED_ON)
def test_it_may_go_through_shared_memory(name, load):
    for seed in SEEDS:
        assert pass_on(PASSED_ON[name], load, seed) == [7] * 32


@pytest.mark.parametrize("load", [SHARED, TENSOR, NEVER], ids=["shared", "tensor", "never"])
def test_where_it_counts_behind_shared_memory_the_store_is_named(load):
    for seed in SEEDS:
        with pytest.raises(Trap, match=r"never written but by ptx:\d+, with what nobody") as caught:
            pass_on("ld.shared.u32 %r10, [%r3];", load, seed)
        assert caught.value.category == "uninitialised-read"
        assert "ld.shared.u32 %r10" in caught.value.text


MATRIX = """mov.u32 %r22, s; mad.lo.u32 %r20, %r0, 16, %r22; setp.lt.u32 %p5, %r0, 4;
  @!%p5 mov.u32 %r9, 7; stmatrix.sync.aligned.m8n8.x2TRANS.shared.b16 [%r20], {%r9, %r10};
  bar.warp.sync -1; mad.lo.u32 %r21, %r0, 4, %r22; """


@pytest.mark.parametrize(
    ("trans", "lanes"), [("", range(4)), (".trans", [4 * row for row in range(8)])]
)
def test_a_matrix_is_stored_with_the_places_that_nobody_wrote(trans, lanes):
    """The lanes of the first row have nothing for the first matrix; a word of it then has a half"""
    read = "@%p1 ld.shared.u32 %r10, [%r21]; @%p1 st.global.u32 [%rd1], %r10;"
    for lane in range(32):
        body = MATRIX.replace("TRANS", trans) + f"setp.eq.u32 %p1, %r0, {lane};" + read
        body += "mov.u32 %r10, 7;"
        text = f"{HEADER.replace('LOAD', NEVER)}{body} ret; }}\n"
        if lane in lanes:
            with pytest.raises(Trap, match="nobody had written"):
                launch(text, "k", grid=1, block=32, params=[np.zeros(32, np.uint32), 0])
        else:
            launch(text, "k", grid=1, block=32, params=[np.zeros(32, np.uint32), 0])


HALF = """.shared .align 4 .b32 at; .reg .b32 %w<4>;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; bar.warp.sync -1;
  ld.shared.u32 %r20, [at]; mov.u32 %r21, 7;
  tcgen05.st.sync.aligned.16x64b.x2.b32 [%r20], {{%r21, %r21}}; tcgen05.wait::st.sync.aligned;
  {load} tcgen05.wait::ld.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;"""
ROWS = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r9, %w0}, [%r20];"
PACKED = "tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 {%r9, %w0}, [%r20];"


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_load_from_tensor_memory_those_lanes_count_that_nobody_has_written(seed):
    """An MMA of 64 rows writes 16 of each 32 lanes, and all of them are loaded"""
    load = HALF.format(load=ROWS)
    take = "setp.lt.u32 %p2, %r0, {lanes}; @%p2 mov.u32 %r10, {register};"
    assert run(load, take.format(lanes=16, register="%r9"), seed) == [7] * 32
    assert run(load, take.format(lanes=16, register="%w0"), seed) == [7] * 32
    with pytest.raises(Trap, match=r"tensor memory lane 16 column \d+ was never written"):
        run(load, take.format(lanes=17, register="%r9"), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_packed_load_those_registers_count_that_nobody_has_written(seed):
    load = HALF.format(load=PACKED)
    assert run(load, "and.b32 %r10, %r9, 15;", seed) == [7] * 32
    with pytest.raises(Trap, match="was never written"):
        run(load, "and.b32 %r10, %w0, 15;", seed)
