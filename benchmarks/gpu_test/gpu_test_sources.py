"""Sources of gpu_test_cases.py that no spec says: products whose epilogues read other operands."""

from __future__ import annotations

from tilewright.compiler.importers.linalg_text import LinalgText

AXES = ("n", "mn", "m")


def with_operands(m: int, n: int, k: int, dtype: str = "bf16") -> LinalgText:
    """`e2 - e1 + e0 + sum`: a bias of columns, a residual, and one element a row."""
    views = [f"tensor<{n}xf32>", f"tensor<{m}x{n}x{dtype}>", f"tensor<{m}xf32>"]
    a, b, c = (f"tensor<{rows}x{depth}x{dtype}>" for rows, depth in ((m, k), (n, k), (m, n)))
    arguments = "".join(f", %arg{at}: {view}" for at, view in enumerate(views))
    reads = "\n".join(
        f'    %e{at} = "tile.element"(%arg{at}) {{axes = "{axes}"}} : ({view}) -> '
        f"{dtype if axes == 'mn' else 'f32'}"
        for at, (axes, view) in enumerate(zip(AXES, views, strict=True))
    )
    return LinalgText(
        f"""
func.func @matmul(%a: {a}, %b: {b}{arguments}) -> {c} {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: f32):
{reads}
    %s0 = arith.addf %x, %e0 : f32
    %w = arith.extf %e1 : {dtype} to f32
    %s1 = arith.subf %s0, %w : f32
    %s2 = arith.addf %s1, %e2 : f32
    %t = arith.truncf %s2 : f32 to {dtype}
    "tile.yield"(%t) : ({dtype}) -> ()
  }}) {{a_major = "k", b_major = "k"}} : ({a}, {b}) -> {c}
  return %c : {c}
}}
""",
        "with_operands.mlir",
    )


STACK_AXES = ("b", "bm", "m", "bn", "mn", "bmn")


def with_operands_of_stacks(n: int, k: int, rows: tuple[int, int] | None = None) -> LinalgText:
    """Of any M, or one of `rows`, and any batch: 1.5 times the sum times a factor of each matrix,
    plus what there is for rows and columns of one and of all, minus half of another stack."""
    own = {"b": "?", "bm": "?x?", "m": "?", "bn": f"?x{n}", "mn": f"?x{n}", "bmn": f"?x?x{n}"}
    views = [f"tensor<{own[axes]}x{'bf16' if axes == 'bmn' else 'f32'}>" for axes in STACK_AXES]
    arguments = "".join(f", %arg{at}: {view}" for at, view in enumerate(views))
    reads = "\n".join(
        f'    %e{at} = "tile.element"(%arg{at}) {{axes = "{axes}"}} : ({view}) -> '
        f"{'bf16' if axes == 'bmn' else 'f32'}"
        for at, (axes, view) in enumerate(zip(STACK_AXES, views, strict=True))
    )
    a, b, c = f"tensor<?x?x{k}xbf16>", f"tensor<?x{n}x{k}xbf16>", f"tensor<?x?x{n}xbf16>"
    known = f"module attributes {{tile.rows = [{rows[0]}, {rows[1]}]}}" if rows else "module"
    return LinalgText(
        f"""
{known} {{
func.func @matmul(%a: {a}, %b: {b}{arguments}) -> {c} {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: f32):
    %alpha = arith.constant 1.5 : f32
    %beta = arith.constant -0.5 : f32
{reads}
    %p = arith.mulf %x, %alpha : f32
    %s0 = arith.mulf %p, %e0 : f32
    %s1 = arith.addf %s0, %e1 : f32
    %s2 = arith.addf %s1, %e2 : f32
    %s3 = arith.addf %s2, %e3 : f32
    %s4 = arith.addf %s3, %e4 : f32
    %w = arith.extf %e5 : bf16 to f32
    %q = arith.mulf %w, %beta : f32
    %s5 = arith.addf %s4, %q : f32
    %t = arith.truncf %s5 : f32 to bf16
    "tile.yield"(%t) : (bf16) -> ()
  }}) {{a_major = "k", b_major = "k"}} : ({a}, {b}) -> {c}
  return %c : {c}
}}
}}
""",
        "with_operands_of_stacks.mlir",
    )
