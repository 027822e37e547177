"""PTX text to the module tree (PTX ISA §4, §5.4, §6, §11)."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator import PtxSyntaxError
from tilewright.runtime.emulator.ptx import syntax
from tilewright.runtime.emulator.ptx.operands import number
from tilewright.runtime.emulator.ptx.parser import parse

HEADER = ".version 8.8\n.target sm_100a, debug\n.address_size 64\n"


def body(text: str) -> tuple:
    module = parse(HEADER + ".entry k() {\n" + text + "\n}")
    return module.functions["k"].body.statements


def one(text: str) -> syntax.Instruction:
    (instruction,) = body(text)
    return instruction


def test_the_header_is_kept():
    module = parse(HEADER)
    assert (module.version, module.target, module.address_size) == (
        (8, 8),
        ("sm_100a", "debug"),
        64,
    )


@pytest.mark.parametrize(
    "text, operands",
    [
        ("%r1, %r2", (syntax.Symbol("%r1"), syntax.Symbol("%r2"))),
        ("%r1, -5", (syntax.Symbol("%r1"), syntax.Integer(-5))),
        ("[%rd1+16]", (syntax.Address(syntax.Symbol("%rd1"), 16),)),
        ("[%rd1+-16]", (syntax.Address(syntax.Symbol("%rd1"), -16),)),
        ("[%rd1 - 16]", (syntax.Address(syntax.Symbol("%rd1"), -16),)),
        ("[0x400]", (syntax.Address(syntax.Integer(0x400)),)),
        ("{%r1, _}", (syntax.Vector((syntax.Symbol("%r1"), syntax.Symbol("_"))),)),
        (
            "%p1|%p2, !%p3",
            (
                syntax.Pair(syntax.Symbol("%p1"), syntax.Symbol("%p2")),
                syntax.Negated(syntax.Symbol("%p3")),
            ),
        ),
        ("_|%p2", (syntax.Pair(syntax.Symbol("_"), syntax.Symbol("%p2")),)),
        ("array+8", (syntax.SymbolOffset("array", 8),)),
        (
            "[%r1], [%rd2, {%r3, 4}], [bar+8], %rd4",
            (
                syntax.Address(syntax.Symbol("%r1")),
                syntax.Address(
                    syntax.Symbol("%rd2"),
                    0,
                    syntax.Vector((syntax.Symbol("%r3"), syntax.Integer(4))),
                ),
                syntax.Address(syntax.Symbol("bar"), 8),
                syntax.Symbol("%rd4"),
            ),
        ),
        (
            "(%r1), f, (%r2, 3)",
            (
                syntax.Group((syntax.Symbol("%r1"),)),
                syntax.Symbol("f"),
                syntax.Group((syntax.Symbol("%r2"), syntax.Integer(3))),
            ),
        ),
        ("%tid.x", (syntax.Symbol("%tid.x"),)),
    ],
)
def test_operands(text, operands):
    assert one(f"foo.bar {text};").operands == operands


def test_a_modifier_may_stand_behind_a_space():
    """As TileLang's templates write it, and ptxas takes it"""
    (found,) = body("cp.async.bulk.prefetch.L2.global .L2::cache_hint [%rd0], 16, %rd1;")
    assert found.opcode == "cp.async.bulk.prefetch.L2.global.L2::cache_hint"
    assert len(found.operands) == 3


def test_opcodes_keep_their_colons_and_text_its_line():
    instruction = body(
        "\n\n  @!%p1 tcgen05.mma.cta_group::1.kind::f16\n  [%r1], // comment\n  %rd1;"
    )[0]
    assert instruction.opcode == "tcgen05.mma.cta_group::1.kind::f16"
    assert instruction.guard == syntax.Guard("%p1", True)
    assert instruction.line == 7
    assert instruction.text == "@!%p1 tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1"


@pytest.mark.parametrize(
    "text, value",
    [("0", 0), ("42", 42), ("42U", 42), ("0x1F", 31), ("0XffU", 255), ("0b110", 6), ("017", 15)],
)
def test_integer_constants(text, value):
    """PTX ISA §4.5.1"""
    assert number(text) == syntax.Integer(value)


@pytest.mark.parametrize(
    "text, bits, width",
    [
        ("0f3F800000", 0x3F800000, 32),
        ("0F3f800000", 0x3F800000, 32),
        ("0d3FF0000000000000", 0x3FF0000000000000, 64),
        ("1.5", 0x3FF8000000000000, 64),
        ("1e3", 0x408F400000000000, 64),
    ],
)
def test_float_constants(text, bits, width):
    """PTX ISA §4.5.2"""
    assert number(text) == syntax.Float(bits, width)


def test_variables_in_every_space():
    """PTX ISA §5.4"""
    module = parse(
        HEADER
        + """
      .visible .const .align 8 .b8 c[4] = {1, 2, 0x3, -1};
      .extern .shared .align 1024 .b8 dynamic[];
      .global .v4 .f32 v, w;
      .global .u64 pointers[2] = {c, generic(v)+8};
      .global .b8 halves[2] = {0xFF(v), 0xFF00(v)};
      .global .s32 matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};"""
    )
    found = {variable.name: variable for variable in module.variables}
    assert found["c"].initializer[3] == syntax.Integer(-1)
    assert (found["c"].align, found["c"].dims, found["c"].space) == (8, (4,), "const")
    assert found["dynamic"].extern and found["dynamic"].dims == (0,)
    assert found["v"].vector == found["w"].vector == 4
    assert found["pointers"].initializer == (
        syntax.Symbol("c"),
        syntax.SymbolOffset("v", 8, generic=True),
    )
    assert found["halves"].initializer[1] == syntax.SymbolOffset("v", mask=0xFF00)
    assert [value.value for value in found["matrix"].initializer] == [1, 2, 3, 4, 5, 6]


def test_functions_and_directives():
    """PTX ISA §11"""
    module = parse(
        HEADER
        + """
      .weak .func (.param .b32 r) f(.param .align 4 .b8 s[12], .reg .b32 x) .noreturn ;
      .func g() { ret; }
      .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128])
      .reqntid 128, 1, 1 .minnctapersm 1
      .reqnctapercluster 2
      .explicitcluster
      { .pragma "nounroll"; .loc 1 3 5, function_name info, inlined_at 1 2 3
        .reg .b32 %r<3>, %x; .reg .pred p;
        { .shared .b32 inner; } ret; }
      .section .debug_info { .b8 1, 2 }"""
    )
    assert [v.name for v in module.functions["f"].params[:1]] == ["s"]
    assert module.functions["f"].body is None
    kernel = module.functions["k"]
    assert kernel.is_entry and not module.functions["g"].is_entry
    assert kernel.directives == {
        "reqntid": (128, 1, 1),
        "minnctapersm": (1,),
        "reqnctapercluster": (2,),
        "explicitcluster": (),
    }
    assert kernel.params[1].dims == (128,) and kernel.params[1].align == 64
    assert kernel.params[0].align is None
    registers = kernel.body.statements[0]
    assert registers.names == (("%r", 3), ("%x", None))


def test_branch_targets_belong_to_their_label():
    statements = body("T: .branchtargets A, B; A: B: ret;")
    assert statements[0].targets == ("A", "B")
    assert [s.name for s in statements[1:3]] == ["A", "B"]


@pytest.mark.parametrize(
    "text, message",
    [
        (".target sm_90", "ptx:1:1: error: a PTX module must start with .version, got `.target`"),
        (
            HEADER + ".entry k( {",
            "ptx:4:11: error: expected .param or .reg in a parameter list, got `{`",
        ),
        (
            HEADER + ".entry k() {\n  add.s32 %r1, %r2\n}",
            "ptx:6:1: error: expected `,` or `;`, got `}`",
        ),
        (
            HEADER + ".entry k() {\n  ret;",
            "ptx:5:7: error: expected `}`, got `the end of the text`",
        ),
        (HEADER + ".entry k() { ld.b32 %r1, [%r2; }", "ptx:4:30: error: expected `]`, got `;`"),
        (
            HEADER + ".entry k() { ld.b32 %r1, [1.5]; }",
            "ptx:4:27: error: expected an address, got a decimal",
        ),
        *(
            (
                HEADER + f".global .b32 x[2] = {{1, {value}}};",
                "ptx:4:25: error: expected a constant or an address in an initialiser",
            )
            for value in ("[y]", "!y", "y|z", "(y)")
        ),
        (
            HEADER + ".entry k() { mov.b32 %r1, #; }",
            "ptx:4:27: error: character not allowed in PTX, got '#'",
        ),
        (
            HEADER + "nonsense",
            "ptx:4:1: error: expected .entry, .func or a variable, got `nonsense`",
        ),
        (HEADER + ".global x;", "ptx:4:9: error: expected a type in a declaration, got `x`"),
    ],
)
def test_syntax_errors_say_where_and_what_was_expected(text, message):
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1, 2, 0, 3", [1, 2, 0, 3]),
        ("1, 010, 0x10, 5U, 6, 7", [1, 8, 16, 5, 6, 7]),
        ("4, -1, 2, 2+3, 6", [4, -1, 2, 5, 6]),
        ("9999999999999999999, 18446744073709551615, 1, 2", [10**19 - 1, 2**64 - 1, 1, 2]),
        ("1", [1]),
    ],
)
def test_tables_of_integers_are_read_in_their_order(text, values):
    module = parse(f"{HEADER}.global .b64 table[8] = {{{text}}};\n")
    (table,) = module.variables
    assert [each.value for each in table.initializer] == values


@pytest.mark.parametrize(
    "text", ["1, 2, ,", "1, 2 3", "1, 2, 99999999999999999999, 3", "1, 2, 09, 3"]
)
def test_tables_of_what_is_no_integer_are_refused(text):
    with pytest.raises(PtxSyntaxError):
        parse(f"{HEADER}.global .b64 table[8] = {{{text}}};\n")
