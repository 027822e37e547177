"""What a kernel with exchanged operands may not have, written by hand into what passes leave."""

import pytest
from edited_ir import insert, refusal, replace

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import parse_module
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.runtime.errors import LaunchError
from tilewright.runtime.operands.tensors import check_dense

TILING = "normalize,tiling{tile=64x48x64 swap=true}"
STAGED = f"{TILING},tma-insertion,epilogue-staging{{columns=16}}"
ONE = "views: a swapped kernel must take one product of two matrices to one output"
MATRIX = "memref<300x264xbf16, 1>"
TURNED = "memref<320x300xbf16, strided<[1, 320]>, 1>"
OPERAND = insert(
    "arith.truncf",
    f'%e = "tile.element"(%arg2) {{axes = "mn"}} : ({MATRIX}) -> bf16',
    before=True,
)


def exchanged_rows(lines):
    """The first load by threads reads a view that is transposed."""
    turn = f'%turned = "tile.transposed"(%arg0) : (memref<300x320xbf16, 1>) -> {TURNED}'
    lines = insert('"tile.cta_tile"', turn)(lines)
    at = next(at for at, line in enumerate(lines) if "tile.load" in line and "%arg0" in line)
    line = lines[at].replace("%arg0", "%turned").replace("memref<300x320xbf16, 1>", TURNED)
    return [*lines[:at], line, *lines[at + 1 :]]


@pytest.mark.parametrize(
    ("passes", "edit", "message"),
    [
        (
            TILING,
            replace(", tile.swapped", ", tile.swapped = 3 : i64"),
            "views: tile.swapped must be a unit attribute, got 3 : i64; leave its value out",
        ),
        (TILING, OPERAND, f"{ONE}, got an operand of the epilogue; drop tile.swapped"),
        (
            TILING,
            exchanged_rows,
            "views: must load from a view as it lies, got a tile.transposed; drop it",
        ),
    ],
    ids=["a value", "an operand", "a transposed load"],
)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_what_is_read_the_other_way_round_is_refused(passes, edit, message, target):
    assert refusal(passes, edit, target)[0].partition(": ")[2] == message


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
