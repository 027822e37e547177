"""Forms of a product in linalg: how A and B come to it, and how it is said."""

from __future__ import annotations

from linalg_writing import (
    AB,
    MN,
    NM,
    OUT,
    SUM,
    A,
    B,
    Form,
    G,
    K,
    M,
    N,
    filled,
    generic,
    indexed,
    indexing_maps,
    matmul,
    of_types,
    product,
    stacked,
)

OPERANDS = {
    "bf16": of_types("bf16", "bf16"),
    "f16": of_types("f16", "f16"),
    "f32": of_types("f32", "f32"),
    "e4m3 e5m2": of_types("f8E4M3FN", "f8E5M2"),
    "e5m2": of_types("f8E5M2", "f8E5M2"),
    "i8": of_types("i8", "i8", "i32", "0"),
    "i8 without signs": of_types("u8", "u8", "i32", "0", "cast_unsigned"),
    "A of K rows": indexed(f"{K}x{M}xbf16", B, "k, m", "k, n", lambda x, y: x.T @ y),
    "B of N rows": indexed(A, "Th", "m, k", "n, k", lambda x, y: x @ y.T),
    "both turned": indexed(f"{K}x{M}xbf16", "Th", "k, m", "n, k", lambda x, y: x.T @ y.T),
    "A transposed": Form(
        f"x: T[{K}x{M}xf16], y: T[{K}x{N}xf16]",
        f"  %e = tensor.empty() : T[{M}x{K}xf16]\n"
        f"  %t = linalg.transpose ins(%x : T[{K}x{M}xf16])"
        f" outs(%e : T[{M}x{K}xf16]) permutation = [1, 0]\n"
        + filled()
        + matmul(f"%t {M}x{K}xf16", f"%y {K}x{N}xf16"),
        OUT,
        lambda x, y: x.T @ y,
    ),
    "B transposed by a generic": Form(
        "x: T[A], y: T[Th]",
        generic("%y Th", [NM, MN], "%u: bf16, %w: bf16", "linalg.yield %u : bf16", "%t B")
        + filled()
        + matmul("%x A", "%t B"),
        OUT,
        lambda x, y: x @ y.T,
    ),
    "B transposed twice": Form(
        AB,
        "  %e = tensor.empty() : T[Th]\n  %t = linalg.transpose ins(%y : T[B])"
        " outs(%e : T[Th]) permutation = [1, 0]\n"
        + filled()
        + matmul("%x A", "%t Th", how=indexing_maps("m, k", "n, k", "m, n")),
        OUT,
        product,
    ),
    "extended tensors": Form(
        AB,
        "  %a = arith.extf %x : T[A] to T[Aw]\n  %b = arith.extf %y : T[B] to T[Bw]\n"
        + filled()
        + matmul("%a Aw", "%b Bw"),
        OUT,
        product,
    ),
    "extended twice": Form(
        f"x: T[{M}x{K}xf8E4M3FN], y: T[{N}x{K}xf8E4M3FN]",
        f"  %h = arith.extf %x : T[{M}x{K}xf8E4M3FN] to T[{M}x{K}xf16]\n"
        f"  %a = arith.extf %h : T[{M}x{K}xf16] to T[Aw]\n"
        f"  %b = arith.extf %y : T[{N}x{K}xf8E4M3FN] to T[Tw]\n"
        + filled()
        + matmul("%a Aw", "%b Tw"),
        OUT,
        lambda x, y: x @ y.T,
    ),
    "extended by a generic": Form(
        AB,
        generic(
            "%x A",
            [MN],
            "%u: bf16, %w: f32",
            "%v = arith.extf %u : bf16 to f32\n    linalg.yield %v : f32",
            "%a Aw",
        )
        + "  %b = arith.extf %y : T[B] to T[Bw]\n"
        + filled()
        + matmul("%a Aw", "%b Bw"),
        OUT,
        product,
    ),
    "one signed, one not": Form(
        f"x: T[{M}x{K}xu8], y: T[{N}x{K}xi8]",
        f"  %a = arith.extui %x : T[{M}x{K}xu8] to T[{M}x{K}xi32]\n"
        f"  %b = arith.extsi %y : T[{N}x{K}xi8] to T[{N}x{K}xi32]\n"
        + filled(element="i32", zero="0")
        + matmul(f"%a {M}x{K}xi32", f"%b {N}x{K}xi32", "Ci"),
        "%sum: T[Ci]",
        lambda x, y: x @ y.T,
    ),
    "extended through i16": Form(
        f"x: T[{M}x{K}xu8], y: T[{N}x{K}xu8]",
        f"  %a = arith.extui %x : T[{M}x{K}xu8] to T[{M}x{K}xi16]\n"
        f"  %b = arith.extui %y : T[{N}x{K}xu8] to T[{N}x{K}xi16]\n"
        + filled(element="i32", zero="0")
        + matmul(f"%a {M}x{K}xi16", f"%b {N}x{K}xi16", "Ci", "cast_signed"),
        "%sum: T[Ci]",
        lambda x, y: x @ y.T,
    ),
    "a matrix by itself": Form(
        "x: T[S]",
        filled(f"{K}x{K}") + matmul("%x S", "%x S", "Sw"),
        "%sum: T[Sw]",
        lambda x: x @ x,
    ),
    "a matrix by its own transpose": Form(
        "x: T[A]",
        filled(f"{M}x{M}")
        + matmul("%x A", "%x A", f"{M}x{M}xf32", indexing_maps("m, k", "n, k", "m, n")),
        f"%sum: T[{M}x{M}xf32]",
        lambda x: x @ x.T,
    ),
    "B before A": Form("y: T[B], x: T[A]", SUM, OUT, lambda y, x: x @ y),
    "an argument that nobody reads": Form(f"u: T[3x5xf32], {AB}", SUM, OUT, lambda u, x, y: x @ y),
    "lines that nobody reads": Form(AB, SUM + "  %u = math.exp %sum : T[C]\n", OUT, product),
    "zeros as a constant": Form(
        AB, "  %init = arith.constant dense<0.0> : T[C]\n" + matmul(A, B), OUT, product
    ),
    "stacks": stacked("GA", "GB", "", product),
    "stacks, B of N rows": stacked(
        "GA",
        f"{G}x{N}x{K}xbf16",
        indexing_maps("b, m, k", "b, n, k", "b, m, n", dims="b, m, n, k"),
        lambda x, y: x @ y.swapaxes(1, 2),
    ),
    "stacks that share B": stacked(
        "GA",
        "%t GB",
        "",
        product,
        "  %e = tensor.empty() : T[GB]\n"
        "  %t = linalg.broadcast ins(%y : T[B]) outs(%e : T[GB]) dimensions = [0]\n",
        "x: T[GA], y: T[B]",
    ),
    "stacks that share A by its map": stacked(
        A,
        "GB",
        indexing_maps("m, k", "b, k, n", "b, m, n", dims="b, m, n, k"),
        product,
    ),
    "two products of one A": Form(
        f"{AB}, z: T[B]",
        SUM + matmul("%x A", "%z B", name="other") + "  %r = arith.subf %sum, %other : T[C]\n",
        "%r: T[C]",
        lambda x, y, z: x @ y - x @ z,
    ),
    "the second of two products first": Form(
        f"{AB}, z: T[B]",
        SUM + matmul("%x A", "%z B", name="other") + "  %r = arith.subf %other, %sum : T[C]\n",
        "%r: T[C]",
        lambda x, y, z: x @ z - x @ y,
    ),
    "one product twice": Form(
        AB,
        SUM + matmul(A, B, name="other") + "  %r = arith.addf %sum, %other : T[C]\n",
        "%r: T[C]",
        lambda x, y: 2 * (x @ y),
    ),
}
