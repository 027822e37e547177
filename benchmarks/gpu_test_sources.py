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
