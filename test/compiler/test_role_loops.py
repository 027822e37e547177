"""Which loop of a kernel is a role's inner loop, on text written by hand."""

import pytest

from tilewright.compiler import inspect_ptx, inspect_sass
from tilewright.compiler.control_flow import Instruction, innermost_loop
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"

# A load-ahead loop, then a tile loop (outer) around a K loop (inner) with a wait that spins.
PTX = f"""
.version 8.8
.visible .entry other() {{ L: bra L; }}
.visible .entry gemm(.param .u64 p) .reqntid 192, 1, 1 {{
  .reg .b32 %r<9>; // tcgen05.mma is only named here
  .reg .pred %p<9>;
$ahead:
  {LOAD} [%r1], [%r2, {{%r3, %r4}}], [%r5];
  add.s32 %r1, %r1, 1;
  @%p1 bra $ahead;
$tile:
  mov.u32 %r1, 0;
$k: $spin:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], %r6;
  @!%p2 bra $spin;
  {LOAD} [%r1], [%r2, {{%r3, %r4}}], [%r5];
  {LOAD} [%r1], [%r2, {{%r3, %r4}}], [%r5];
  tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p4;
  @%p3 bra $k;
  tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r1, %r2}}, [%r3];
  {STORE} [%r2, {{%r3, %r4}}], [%r1];
  @%p4 bra.uni $tile;
  ret;
}}
"""

SASS = """
	.section	.text.other,"ax",@progbits
.text.other:
.L_x_9:
        /*0000*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], idesc[UR9], !UPT ;
        /*0010*/                   BRA `(.L_x_9) ;
	.section	.text.gemm,"ax",@progbits
.text.gemm:
        /*0000*/                   BSSY B0, `(.L_x_3) ;
.L_x_1:
        /*0010*/                   UTMALDG.2D [UR4], [UR8] ;
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0030*/              @!P0 BRA `(.L_x_5) ;
.L_x_2:
        /*0040*/                   UTCHMMA.2CTA gdesc[UR4], gdesc[UR6], tmem[UR8], !UPT ;
        /*0050*/                   UTCBAR [UR5], URZ ;
        /*0060*/                   BRA.U UP0, `(.L_x_1) ;
        /*0070*/                   BSYNC B0 ;
        /*0080*/                   EXIT ;
.L_x_3:
        /*0090*/                   LDTM.x32 R4, tmem[UR4] ;
        /*00a0*/               @P1 BRA `(.L_x_3) ;
        /*00b0*/                   EXIT ;
.L_x_5:
        /*00c0*/                   NANOSLEEP 0x64 ;
        /*00d0*/                   BRA `(.L_x_2) ;
"""


def ptx_loop(role):
    return inspect_ptx.role_loops(PTX, "gemm")[role]


def test_the_steady_loop_is_taken_and_not_the_one_that_loads_ahead():
    loop = ptx_loop("tma")
    assert loop.depth == 2
    assert loop.count(inspect_ptx.ROLES["tma"]) == 2
    assert len(loop.instructions) == 6


def test_the_spinning_wait_inside_a_loop_is_not_the_loop():
    texts = ptx_loop("mma").instructions
    assert texts[0].startswith("mbarrier.try_wait")
    assert texts[-1] == "bra $k"


def test_a_role_of_the_outer_loop_has_the_outer_loop():
    loop = ptx_loop("epilogue")
    assert loop.depth == 1
    assert len(loop.instructions) == 1 + 6 + 3


def test_a_tma_store_is_no_load():
    loop = ptx_loop("epilogue")
    assert loop.count(r"cp\.async\.bulk\.tensor") == 3
    assert loop.count(inspect_ptx.ROLES["tma"]) == 2


def test_a_role_outside_every_loop_has_none():
    ptx = ".entry k() { tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p4; ret; }"
    assert inspect_ptx.role_loops(ptx, "k") == {"tma": None, "mma": None, "epilogue": None}


def test_a_loop_that_leaves_in_its_middle_and_lies_out_of_order_is_found():
    ptx = """.entry k() {
      bra $test;
    $done: ret;
    $body: tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];
      { .reg .b32 %t; mov.b32 %t, 1; }
    $test: setp.lt.u32 %p1, %r1, 4;
      @%p1 bra $body;
      bra $done;
    }"""
    loop = inspect_ptx.role_loops(ptx, "k")["epilogue"]
    assert [text.split(" ")[0] for text in loop.instructions] == [
        "tcgen05.ld.sync.aligned.32x32b.x2.b32",
        "mov.b32",
        "setp.lt.u32",
        "bra",
    ]


def test_an_indirect_branch_goes_to_every_label_of_its_table():
    ptx = """.entry k() {
    $top: tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r3, %p4;
    $table: .branchtargets $top, $end;
      brx.idx %r1, $table;
    $end: ret; }"""
    assert len(inspect_ptx.role_loops(ptx, "k")["mma"].instructions) == 2


def test_a_jump_into_a_loop_from_outside_its_header_makes_no_natural_loop():
    program = [
        Instruction("jump", (2,)),
        Instruction("marker"),
        Instruction("other"),
        Instruction("back", (1,)),
    ]
    assert innermost_loop(program, "marker") is None


def test_no_instructions_have_no_loop():
    assert innermost_loop([], "marker") is None


def test_a_kernel_that_is_not_there_is_named():
    with pytest.raises(CompileError, match="ptx: the text must hold the kernel 'gone', got none"):
        inspect_ptx.role_loops(PTX, "gone")
    with pytest.raises(CompileError, match="sass: the text must hold the kernel 'gone', got none"):
        inspect_sass.role_loops(SASS, "gone")


def test_sass_blocks_moved_out_of_line_belong_to_their_loop():
    loops = inspect_sass.role_loops(SASS, "gemm")
    assert len(loops["mma"].instructions) == 6 + 2
    assert loops["mma"] == loops["tma"]
    assert loops["epilogue"].instructions == ("LDTM.x32 R4, tmem[UR4]", "BRA `(.L_x_3)")


def test_sass_jumps_by_address_are_the_same_as_by_label():
    by_label = {"(.L_x_1)": "0x10", "(.L_x_2)": "0x40", "(.L_x_3)": "0x90", "(.L_x_5)": "0xc0"}
    text = SASS[SASS.index(".text.gemm:") :].replace(".text.gemm:", "\t\tFunction : gemm")
    for label, address in by_label.items():
        text = text.replace(f"`{label}", address)
    loops = inspect_sass.role_loops(text, "gemm")
    assert [len(loop.instructions) for loop in loops.values()] == [8, 8, 2]


def test_a_compiled_kernel_has_loops_around_its_loads_and_mmas():
    compiled = compile_matmul(MatmulSpec(256, 256, 4096), preset="v2a")
    loops = inspect_ptx.role_loops(compiled.ptx, compiled.entry)
    assert loops["mma"].count(inspect_ptx.ROLES["mma"]) >= 4
    assert loops["tma"].count(inspect_ptx.ROLES["tma"]) >= 2
    sass = inspect_sass.disassemble(compiled.assembled.cubin)
    assert sass is not None, "the test extra installs nvdisasm"
    found = inspect_sass.role_loops(sass, compiled.entry)
    assert found["mma"].count(inspect_sass.ROLES["mma"]) >= 4
