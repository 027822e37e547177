"""What a kernel with exchanged operands may not have, written by hand into what passes leave."""

import pytest
from edited_ir import insert, refusal, replace

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import check_program, parse_module
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.runtime.errors import LaunchError
from tilewright.runtime.operands.tensors import check_dense

TILING = "normalize,tiling{tile=64x48x64 swap=true}"
STAGED = f"{TILING},tma-insertion,epilogue-staging{{columns=16}}"
KIND = "views: tile.swapped says whether operands as large as c are transposed"
MATRIX = "memref<300x264xbf16, 1>"
PERMUTED = "memref<320x300xbf16, strided<[1, 320]>, 1>"
OPERAND = insert(
    "arith.truncf",
    f'%e = "tile.element"(%arg2) {{axes = "mn"}} : ({MATRIX}) -> bf16',
    before=True,
)


def exchanged_rows(lines):
    """The first load by threads reads a view that is transposed."""
    turn = f'%turned = "tile.transposed"(%arg0) : (memref<300x320xbf16, 1>) -> {PERMUTED}'
    lines = insert('"tile.cta_tile"', turn)(lines)
    at = next(at for at, line in enumerate(lines) if "tile.load" in line and "%arg0" in line)
    line = lines[at].replace("%arg0", "%turned").replace("memref<300x320xbf16, 1>", PERMUTED)
    return [*lines[:at], line, *lines[at + 1 :]]


def turned_twice(lines):
    """The view of c is transposed once more."""
    at = next(at for at, line in enumerate(lines) if "tile.transposed" in line)
    name, types = lines[at].split()[0], "memref<264x300xbf16, strided<[1, 264]>, 1>"
    again = f'%again = "tile.transposed"({name}) : ({types}) -> '
    return [
        *lines[: at + 1],
        f"{again}memref<300x264xbf16, strided<[264, 1]>, 1>",
        *lines[at + 1 :],
    ]


@pytest.mark.parametrize(
    ("passes", "edit", "message"),
    [
        (
            TILING,
            replace(", tile.swapped", ", tile.swapped = 3 : i64"),
            "views: tile.swapped must be a unit attribute, got 3 : i64; leave its value out",
        ),
        (TILING, OPERAND, f"{KIND}, got a read of the other kind; transpose its view"),
        (
            TILING,
            turned_twice,
            "views: must turn a view of the kernel, or a matrix of one, got a turned one; take "
            "that as it lies",
        ),
        (
            TILING,
            exchanged_rows,
            "views: must load from a view as it lies, got a tile.transposed; drop it",
        ),
    ],
    ids=["a value", "an operand", "turned twice", "a transposed load"],
)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_what_is_read_the_other_way_round_is_refused(passes, edit, message, target):
    assert refusal(passes, edit, target)[0].partition(": ")[2] == message


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        (
            {"products": 2},
            "must take a, b and what its epilogue reads, got a, b, b2, c; drop tile.swapped",
        ),
        (
            {"c_dtype": "mxfp8"},
            "must store single elements, got neighbours of a row; drop tile.swapped",
        ),
    ],
    ids=["two products", "block scales"],
)
def test_kernels_of_other_kinds_are_not_swapped(fields, rule):
    spec, text = MatmulSpec(64, 64, 64, **fields), "tiling{tile=128x64x64}"
    lines = compile_matmul(
        spec, target="sm_100a", pipeline=text, stop_after="tiling", until="mlir"
    ).mlir.replace("threads = 128 : i64", "threads = 128 : i64, tile.swapped")
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError, match=rule):
        check_program(parse_module(lines, "kernel.mlir"))


def test_rows_of_a_piece_whose_columns_lie_in_line_are_refused():
    message, _ = refusal(STAGED, replace('write = "matrices"', 'write = "rows"'), "sm_90a")
    assert "rows need a staging whose rows lie in line, got" in message


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_threads_write_no_rows_of_exchanged_operands(target):
    text = f"{TILING},epilogue-staging{{write=rows}}"
    with pytest.raises(CompileError, match="write=rows needs rows that lie in line, got exchanged"):
        compile_matmul(MatmulSpec(19, 72, 64), target=target, pipeline=text, until="mlir")


def test_units_are_written_only_to_buffers_whose_rows_lie_in_line():
    buffer, vector = '!tile.smem<tensor<64x16xbf16>, "mn", "128B">', "vector<8xbf16>"
    text = f"""module {{
      func.func @f(%v: {vector}, %b: {buffer}, %row: i32) {{
        "tile.write_unit"(%v, %b, %row, %row) : ({vector}, {buffer}, i32, i32) -> ()
        return
      }}
    }}"""
    with lent_context(), pytest.raises(CompileError, match="rows of the buffer must lie in line"):
        parse_module(text, "pieces.mlir")


def test_views_that_negate_their_memory_are_refused():
    torch = pytest.importorskip("torch")
    negated = torch.ones(2, 3, dtype=torch.complex64).conj().imag
    assert negated.is_neg()
    with pytest.raises(LaunchError, match=r"tensor 'a': must hold its values, got a view that neg"):
        check_dense("a", negated)
    check_dense("a", negated.resolve_neg())


def test_pieces_ahead_lie_as_those_of_the_store():
    matrix, wide = "tensor<64x64xbf16>", "tensor<64x64xf32>"
    source = LinalgText(
        f"""
func.func @f(%a: {matrix}, %b: {matrix}, %r: {wide}) -> {matrix} {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: f32):
    %e = "tile.element"(%r) {{axes = "mn"}} : ({wide}) -> f32
    %y = arith.addf %x, %e : f32
    %t = arith.truncf %y : f32 to bf16
    "tile.yield"(%t) : (bf16) -> ()
  }}) {{a_major = "k", b_major = "k"}} : ({matrix}, {matrix}) -> {matrix}
  return %c : {matrix}
}}
""",
        "f.mlir",
    )
    text = "tiling{tile=64x64x64 swap=true},tma-insertion,epilogue-staging{columns=64 ahead=1}"
    lines = compile_matmul(
        source, target="sm_90a", pipeline=text, stop_after="epilogue-staging", until="mlir"
    ).mlir
    assert f'{wide}, "mn", "128B"' in lines
    lines = lines.replace(f'{wide}, "mn", "128B"', f'{wide}, "k", "128B"')
    rule = "ahead: must load pieces that lie as those of the store, 'mn', got 'k'"
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError, match=rule):
        check_program(parse_module(lines, "kernel.mlir"))


def test_pairs_that_are_read_ahead_end_with_the_columns():
    source = LinalgText(
        """
func.func @f(%a: tensor<82x64xbf16>, %b: tensor<64x64xbf16>, %r: tensor<82xf32>)
    -> tensor<82x64xbf16> {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%r) {axes = "m"} : (tensor<82xf32>) -> f32
    %y = arith.addf %x, %e : f32
    %t = arith.truncf %y : f32 to bf16
    "tile.yield"(%t) : (bf16) -> ()
  }) {a_major = "k", b_major = "k"} : (tensor<82x64xbf16>, tensor<64x64xbf16>)
    -> tensor<82x64xbf16>
  return %c : tensor<82x64xbf16>
}
""",
        "f.mlir",
    )
    text = "tiling{tile=64x48x64 swap=true},tma-insertion,epilogue-staging{vectors=registers}"
    lines = compile_matmul(
        source, target="sm_90a", pipeline=text, stop_after="epilogue-staging", until="mlir"
    ).mlir
    assert "tile.read_ahead" in lines
    with lent_context(), ir.Location.unknown():
        check_program(parse_module(lines, "kernel.mlir"))
        with pytest.raises(CompileError, match="ahead: pairs of columns must end with those of C"):
            check_program(parse_module(lines.replace("82", "83"), "kernel.mlir"))
