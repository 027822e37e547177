"""Which `sm.wgmma` become one asm: those that may all start where the last of them does."""

import re

import pytest

from tilewright.compiler.pipeline import run_passes_on_text

SUMS = "!llvm.struct<(f32, f32, f32, f32)>"
WORDS = "!llvm.struct<(i32, i32, i32, i32)>"
DESCRIPTOR = (
    "!sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, "
    'swizzle = "128B", version = 0 : i64}>'
)
FLOATS = 'a_type = "bf16", b_type = "bf16", d_type = "f32", k = 16 : i64'
BYTES = 'a_type = "s8", b_type = "s8", d_type = "s32", k = 32 : i64'


def mma(gives, adds_to, offset=0, sums=SUMS, types=FLOATS):
    fields = f'{types}, a_major = "k", b_major = "k", m = 64 : i64, n = 8 : i64, first = 0 : i64'
    offsets = f"a_offset = {offset} : i64, b_offset = {offset} : i64"
    return (
        f'  %{gives} = "sm.wgmma"(%{adds_to}, %a, %b, %true) {{{fields}, {offsets}}}'
        f" : ({sums}, {DESCRIPTOR}, {DESCRIPTOR}, i1) -> {sums}\n"
    )


def held(gives, adds_to, word):
    fields = f'{FLOATS}, b_major = "k", m = 64 : i64, n = 8 : i64, b_offset = 0 : i64'
    return (
        f'  %{gives} = "sm.wgmma_of_registers"(%{adds_to}, %{word}, %b, %true) {{{fields}}}'
        f" : ({SUMS}, vector<4xi32>, {DESCRIPTOR}, i1) -> {SUMS}\n"
    )


def store(value, sums=SUMS):
    return f"  llvm.store %{value}, %out : {sums}, !llvm.ptr<1>\n"


def asms(body):
    """Of each asm that multiplies, the text and the constraints, in the order of the program."""
    kernel = f"""
"sm.kernel"() ({{
^bb0(%out: !llvm.ptr<1>):
  %i = arith.constant 0 : i32
  %true = arith.constant true
  %p = "sm.shared_address"(%i) : (i32) -> !llvm.ptr<3>
  %a = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %b = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %z = llvm.mlir.zero : {SUMS}
  %y = llvm.mlir.zero : {SUMS}
  %w = llvm.mlir.zero : {WORDS}
{body}}}) {{cluster = [1, 1, 1], launch = "{{\\"entry\\": \\"f\\", \\"schedule\\": {{}}}}",
     sym_name = "f", threads = 128 : i64}} : () -> ()
"""
    lowered = run_passes_on_text(kernel, "-", "lower-to-nvvm", target="sm_90a")
    return re.findall(r'llvm\.inline_asm has_side_effects "(wgmma[^"]*)", "([^"]*)"', lowered)


def test_mmas_that_hand_their_sums_on_are_one_asm_that_takes_them_once():
    ((text, constraints),) = asms(
        mma("s", "z") + mma("t", "s", 32) + mma("u", "t", 64) + store("u")
    )
    lines = text.split("\\0A\\09")
    registers = "{$0, $1, $2, $3}"
    assert [line.partition(" ")[2] for line in lines] == [
        f"{registers}, $8, $9, $10, 1, 1, 0, 0;",
        f"{registers}, $11, $12, $13, 1, 1, 0, 0;",
        f"{registers}, $14, $15, $16, 1, 1, 0, 0;",
    ]
    assert constraints == "=f,=f,=f,=f,0,1,2,3,l,l,b,l,l,b,l,l,b,~{memory}"


def test_mmas_of_other_sums_keep_their_place_between_them():
    body = mma("s", "z") + mma("t", "y") + mma("u", "s", 32) + mma("v", "t", 32)
    ((text, constraints),) = asms(body + store("u") + store("v"))
    firsts = [line.partition("{")[2].partition("}")[0] for line in text.split("\\0A\\09")]
    assert firsts == ["$0, $1, $2, $3", "$4, $5, $6, $7"] * 2
    assert constraints.startswith("=f," * 8 + "0,1,2,3,4,5,6,7,l,l,b,")


@pytest.mark.parametrize(
    "between",
    ['  "sm.wgmma_commit"() : () -> ()\n', '  "sm.wgmma_wait"() {pending = 0 : i64} : () -> ()\n'],
)
def test_a_group_ends_where_it_is_closed_or_waited_for(between):
    assert len(asms(mma("s", "z") + between + mma("t", "s", 32) + store("t"))) == 2


def test_sums_that_somebody_else_reads_are_not_handed_on():
    chain = mma("s", "z") + mma("t", "s", 32)
    assert len(asms(chain + store("t"))) == 1
    assert len(asms(chain + store("t") + store("s"))) == 2
    body = mma("s", "z") + f"  %e = llvm.extractvalue %s[0] : {SUMS}\n" + mma("t", "y")
    assert len(asms(body + "  llvm.store %e, %out : f32, !llvm.ptr<1>\n" + store("t"))) == 2


def test_mmas_with_a_in_registers_join_and_read_their_own():
    words = "  %v = arith.constant dense<3> : vector<4xi32>\n"
    more = "  %x = arith.constant dense<5> : vector<4xi32>\n"
    body = words + held("s", "z", "v") + more + held("t", "s", "x") + store("t")
    ((text, constraints),) = asms(body)
    first, second = text.split("\\0A\\09")
    assert "{$8, $9, $10, $11}, $12, $13, 1, 1, 0;" in first
    assert "{$14, $15, $16, $17}, $18, $19, 1, 1, 0;" in second
    assert constraints.endswith("r,r,r,r,l,b,r,r,r,r,l,b,~{memory}")


def test_sums_of_another_type_have_an_asm_of_their_own():
    body = mma("s", "z") + mma("t", "w", sums=WORDS, types=BYTES)
    found = asms(body + store("s") + store("t", WORDS))
    assert [constraints[:2] for _, constraints in found] == ["=f", "=r"]
