"""What ptxas refuses in a text, the emulator refuses too, and what it accepts is no error here."""

import pytest
from ptx_mutants import emulator_refuses, ptxas_refuses

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
REGISTERS = """.reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p; .reg .f32 %f<4>;
.reg .u32 %u<4>; .reg .s32 %s<4>; .reg .f64 %fd<4>; .reg .f16 %hf<4>; .reg .u64 %q<4>;
.reg .u16 %k<4>;
"""
NAMES = [
    "A: mov.u32 %r0, 1;\nA: mov.u32 %r0, 2;",
    "{A: mov.u32 %r0, 1;}\n{A: mov.u32 %r0, 2;}",
    "A: mov.u32 %r0, 1;\n{A: mov.u32 %r0, 2; bra A;}",
    ".reg .b32 A;\nA: mov.u32 %r0, 1;",
    ".reg .b32 A;\n{A: mov.u32 %r0, 1;}",
    "k: mov.u32 %r0, 1;",
    "A: .branchtargets B;\nA: mov.u32 %r0, 1;\nB: ret;",
    "value: mov.u32 %r0, 1;",
    ".reg .b32 %r<4>;",
    ".reg .b64 %r2;",
    "{.reg .b32 %r<4>; mov.u32 %r0, 1;}",
    ".reg .b32 value;",
    ".reg .b32 outside; mov.u32 outside, 1;",
    ".shared .b32 a; .reg .b32 a;",
    ".shared .b32 value;",
    ".local .b32 a; {.local .b32 a;}",
    ".reg .v2 .b32 a; .reg .b32 a;",
    "{.param .b32 q; .param .b32 q;}",
    "bra A;\n{A: mov.u32 %r0, 1;}",
    "{bra A;}\nA: mov.u32 %r0, 1;",
    "{bra A;}\n{A: mov.u32 %r0, 1;}",
    "{.reg .b32 a;}\nmov.u32 a, 1;",
    "mov.u32 late, 1;\n.reg .b32 late;",
    "mov.u32 %r0, 1;\n.reg .b32 late;\nmov.u32 late, %r0;",
]
OPERANDS = """
mov.b32 %r0, 1.5|mov.b32 %r0, 0f3F800000|mov.u32 %r0, 0f3F800000|mov.b64 %d0, 1.5|mov.f32 %f0, 1
mov.b32 %r0, 0d3FF0000000000000|add.f32 %f0, %f0, 1|add.f32 %f0, %f1, 1.0|add.f32 %r0, %r1, 1.0
add.f32 %u0, %r1, 1.0|add.s32 %f0, %f1, 1|add.u32 %s0, %u1, 1|and.b32 %f0, %f1, %f2
mov.u32 %f0, %f1|mov.b32 %f0, %u1|mov.f32 %f0, %u1|mov.f32 %f0, %r1|mov.f16 %h0, %h1
st.global.f32 [%d0], %u0|st.global.f32 [%d0], %r0|st.global.u32 [%d0], %f0|st.global.f32 [%d0], 0
st.global.b32 [%d0], %f0|st.global.b32 [%d0], 1.5|st.global.f32 [%d0], 1.5|st.global.u8 [%d0], %f0
ld.global.f32 %u0, [%d0]|ld.global.b32 %f0, [%d0]|ld.global.f32 %d1, [%d0]|ld.global.f32 %fd1, [%d0]
ld.global.u16 %f0, [%d0]|ld.global.b16 %f0, [%d0]|ld.global.u32 %q1, [%d0]|ld.global.f16 %h0, [%d0]
st.global.u32 [%d0], %r1, %d1|st.global.L2::cache_hint.u32 [%d0], %r1, %d1|mov.b16 %hf0, %h1
ld.global.u32 %r0, [%d0], %d1|add.f16 %hf0, %h1, %h2|add.f16 %k0, %h1, %h2|mov.u16 %hf0, %h1
setp.lt.s32 %p, %r0, 1.5|setp.lt.f32 %p, %f0, 1|setp.lt.f32 %p, %f0, 1.5|setp.lt.u32 %p, %f0, %f1
selp.f32 %f0, %u0, %f1, %p|selp.b32 %f0, %u0, %f1, %p|cvt.rn.f32.u32 %u0, %u1
cvt.rn.f32.u32 %f0, %f1|cvt.rn.f32.s32 %f0, %u1|cvt.rn.f32.s32 %r0, %s1|cvt.rn.f16.f32 %k0, %f1
shl.b32 %r0, %f0, 1|shl.b32 %r0, %r0, %f1|mul.wide.u32 %d0, %f0, %r1|mad.wide.s32 %d0, %r0, 1.5, %d1
bar.sync 1.5|bar.sync 15|bar.sync 16|bar.sync 0, 33|bar.sync 0, 64|fma.rn.f32 %f0, %f1, 2, %f3
fma.rn.f32 %f0, %f1, 2.0, %f3|max.f32 %f0, %f1, 1.0|max.f32 %f0, %f1, 1|neg.f32 %u0, %f1
atom.global.add.f32 %f0, [%d0], 1.0|atom.global.add.f32 %f0, [%d0], 1|red.global.add.f32 [%d0], 0.5
atom.global.add.u32 %f0, [%d0], %r1|ld.global.b32 %r0, [%fd0]|ld.global.b32 %r0, [%q0]
min.s32 %r0, %s1, %f1|popc.b32 %r0, %f0|popc.b32 %f0, %r0|bfe.u32 %r0, %f1, 1, 1
shfl.sync.idx.b32 %f0, %f1, 0, 31, -1|mov.b32 %r0, %tid.x|add.u32 %r0, %tid.x, 1
cvt.u64.u32 %d0, %tid.x|st.global.u32 [%d0], %tid.x|setp.eq.u32 %p, %laneid, 0
copysign.f32 %f0, %f1, %u2|ex2.approx.f32 %f0, %u1|rcp.rn.f32 %f0, 1.0|abs.f32 %f0, 1
max.f32x2 %d0, %d1, %d2|neg.f32x2 %d0, %d1|setp.lt.f32x2 %p, %d0, %d1|sub.f32x2 %d0, %d1, %d2
"""
MODIFIERS = """
cp.async.bulk.global.global.mbarrier::complete_tx::bytes [%r0], [%d1], %r2, [%r3]
cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [%r0], [%d1], %r2, [%r3]
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d1], %r2, [%r3]
cp.async.cg.global.shared [%d1], [%r0], 16|cp.async.cg.shared.global [%r0], [%d1], 16
prefetch.global.L1 [%d0]|prefetch.local.L2 [%d0]|prefetch.L2::evict_last [%d0]|prefetch [%d0]
prefetch.shared.L2 [%d0]|prefetch.const.L2 [%d0]|prefetch.local.L2::evict_last [%d0]
prefetch.L1.L2 [%d0]|prefetchu.L1 [%d0]|prefetchu.L2 [%d0]|prefetchu.global.L1 [%d0]|prefetchu [%d0]
applypriority.L2::evict_normal [%d0], 128|applypriority.global.L2::evict_last [%d0], 128
applypriority.local.L2::evict_normal [%d0], 128|applypriority.global [%d0], 128
discard.L2 [%d0], 128|discard.local.L2 [%d0], 128|discard.global.L1 [%d0], 128|discard [%d0], 128
createpolicy.range.global.L2::evict_last.b64 %d0, [%d1], 64, 128
createpolicy.fractional.global.L2::evict_first.b64 %d0, 1.0
bar.sync.aligned 1|barrier.sync.aligned 1|bar.red.popc.aligned.u32 %r0, 1, %p
barrier.red.popc.aligned.u32 %r0, 1, %p|bar.arrive.aligned 1, 64|st.volatile.local.b32 [%d0], %r0
ld.volatile.local.b32 %r0, [%d0]|red.global.add.noftz.f32 [%d0], %f0
red.global.min.noftz.f16x2 [%d0], %r0|atom.global.max.noftz.bf16 %h0, [%d0], %h1
red.global.min.noftz.v2.f16 [%d0], {%h0,%h1}|atom.global.add.noftz.bf16 %h0, [%d0], %h1
"""
MODULES = [
    ".global .b32 a;\n.global .b32 a;",
    ".extern .shared .b8 a[];\n.extern .shared .b8 a[];",
    ".extern .shared .b8 a[];\n.extern .shared .b32 a[];",
    ".global .b32 f;\n.func f() {ret;}",
    ".func f() {ret;}\n.func f() {ret;}",
    ".func f();\n.func f();\n.func f() {ret;}",
    ".func f(.param .b32 x);\n.func f() {ret;}",
    ".entry k() {ret;}",
    ".global .b32 value;",
    ".target sm_100a",
]


def agree(text: str) -> None:
    """Both accept a text, or both refuse it for what it says"""
    refused, here = ptxas_refuses(text), emulator_refuses(text)
    assert (refused is None) == (here is None), f"ptxas: {refused}\nemulator: {here}"


def kernel(body: str, before: str = "") -> str:
    return f"{HEAD}{before}\n.visible .entry k(.param .u32 value) {{\n{REGISTERS}{body}\nret;\n}}\n"


@pytest.mark.parametrize("body", NAMES)
def test_names_are_declared_once_in_a_block_and_before_they_are_used(body):
    agree(kernel(body, ".global .b32 outside;"))


@pytest.mark.parametrize("line", OPERANDS.strip().splitlines())
def test_registers_and_constants_fit_the_type_of_their_instruction(line):
    for instruction in line.split("|"):
        agree(kernel(f"{instruction};"))


@pytest.mark.parametrize("line", MODIFIERS.strip().splitlines())
def test_instructions_have_the_modifiers_that_they_need_and_no_others(line):
    for instruction in line.split("|"):
        agree(kernel(f"{instruction};"))


@pytest.mark.parametrize("before", MODULES)
def test_names_of_a_module_are_declared_once(before):
    agree(kernel("", before))


TYPES = "b8 b64 b128 u8 s16 f16 f16x2 f32 f64 pred bf16 bf16x2 tf32 e4m3x2 u16x2 f32x2".split()


@pytest.mark.parametrize("type_", TYPES)
def test_variables_have_the_types_that_can_be_declared(type_):
    for space in ("reg", "shared"):
        agree(kernel(f".{space} .{type_} a;"))
    agree(kernel("").replace(".param .u32", f".param .{type_}"))


@pytest.mark.parametrize(("old", "new"), [
    ("value)", "value,)"), ("{\n.reg", "{\n.extern .shared .b8 a[];\n.reg"),
    ("\nret;", "\ntcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r1}, [%r0];\nret;"),
    ("\nret;", "\ntcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r0];\nret;"),
    ("\nret;", "\nld.global.v2.b32 {%r1, %r1}, [%d0];\nret;"),
])  # fmt: skip
def test_lists_are_as_ptxas_takes_them(old, new):
    agree(kernel("").replace(old, new))


FAMILIES = {
    "tcgen05.fence::before_thread_sync": ("sm_100a", "8.6"),
    "setmaxnreg.inc.sync.aligned.u32 64": ("sm_90a", "8.0"),
    "cp.async.bulk.commit_group": ("sm_90", "8.0"),
    "mbarrier.init.shared.b64 [%r0], 1": ("sm_80", "7.0"),
    "mbarrier.try_wait.parity.shared.b64 %p, [%r0], %r1": ("sm_90", "7.8"),
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], %r1": ("sm_90", "8.0"),
    "cp.async.ca.shared.global [%r0], [%d0], 16": ("sm_80", "7.0"),
    "elect.sync _|%p, -1": ("sm_90", "8.0"),
    "barrier.cluster.arrive.aligned": ("sm_90", "7.8"),
    "mapa.shared::cluster.u32 %r0, %r1, %r2": ("sm_90", "7.8"),
    "getctarank.shared::cluster.u32 %r0, %r1": ("sm_90", "7.8"),
    "griddepcontrol.wait": ("sm_90", "7.8"),
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1]": ("sm_75", "6.5"),
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0}": ("sm_90", "7.8"),
    "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1": ("sm_75", "7.8"),
    "fence.proxy.async": ("sm_90", "8.0"),
    "fence.mbarrier_init.release.cluster": ("sm_90", "8.0"),
    "redux.sync.add.s32 %r0, %r1, -1": ("sm_80", "7.0"),
    "createpolicy.fractional.L2::evict_first.b64 %d0": ("sm_80", "7.4"),
    "tensormap.replace.tile.rank.global.b1024.b32 [%d0], 1": ("sm_90a", "8.3"),
    "st.bulk.weak.shared::cta [%r0], %d0, 0": ("sm_100", "8.6"),
    "wgmma.fence.sync.aligned": ("sm_90a", "8.0"),
}
"""Of a family one instruction, the least target and the least version that have it."""
BELOW = {"sm_100a": "sm_100", "sm_90a": "sm_90", "sm_90": "sm_80", "sm_80": "sm_75",
         "sm_75": "sm_70", "sm_100": "sm_90"}  # fmt: skip


@pytest.mark.parametrize("instruction", FAMILIES)
def test_a_family_needs_its_target_and_its_version(instruction):
    target, version = FAMILIES[instruction]
    least = kernel(f"{instruction};").replace("sm_100a", target).replace("9.0", version)
    if version < "8.6":
        least = least.replace(REGISTERS, REGISTERS.replace(".reg .f16 %hf<4>; ", ""))
    assert ptxas_refuses(least) is None and emulator_refuses(least) is None
    agree(least.replace(target, BELOW[target]))
    older = {"8.6": "8.3", "8.3": "8.1", "8.0": "7.8", "7.8": "7.7", "7.4": "7.3"}.get(version)
    if older is not None:
        agree(least.replace(f".version {version}", f".version {older}"))


def test_a_target_may_stand_twice_in_the_head():
    agree(kernel("").replace(".target sm_100a", ".target sm_100a\n.target sm_100a"))


def test_a_message_names_both_places():
    text = kernel("A: mov.u32 %r0, 1;\nA: mov.u32 %r0, 2;")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if each.startswith("A:"))
    assert emulator_refuses(text) == (
        "malformed",
        f"ptx:{line + 1}: error: kernel k: duplicate: `A` is declared in ptx:{line} in the same"
        " block",
    )


def test_a_register_of_another_class_is_named_with_both_types():
    kind, message = emulator_refuses(kernel("add.f32 %f0, %u1, %f2;"))
    wanted = "type: operand %u1 must fit .f32 here, got a register of type .u32"
    assert kind == "malformed" and message.endswith(wanted)
