"""Forms of what linalg makes of the sums."""

from __future__ import annotations

import numpy as np
import torch
from linalg_writing import (
    AB,
    MN,
    NM,
    NONE,
    OF_COLUMN,
    OF_ROW,
    STACK,
    SUM,
    Form,
    G,
    K,
    M,
    N,
    along,
    beside,
    compared,
    filled,
    generic,
    matmul,
    narrowed,
    on_sums,
    tensor_op,
    to_bf16,
)

BIAS = """  %e0 = tensor.empty() : T[C]
  %wide = linalg.broadcast ins(%e : T[{}xf32]) outs(%e0 : T[C]) dimensions = [{}]
  %r = arith.addf %sum, %wide : T[C]
"""
EPILOGUES = {
    "a value of each column": beside(f"{N}", OF_COLUMN, lambda x, y, e: x @ y + e),
    "a value of each row": beside(f"{M}", OF_ROW, lambda x, y, e: x @ y + e[:, None]),
    "one value": beside("", NONE, lambda x, y, e: x @ y + e),
    "a value of each element": beside(f"{M}x{N}", MN, lambda x, y, e: x @ y + e),
    "a factor of each row": beside(
        f"{M}", OF_ROW, lambda x, y, e: (x @ y) * e[:, None], "%v = arith.mulf %u, %e : f32"
    ),
    "a narrow value of each column": beside(
        f"{N}",
        OF_COLUMN,
        lambda x, y, e: x @ y - e,
        "%f = arith.extf %e : bf16 to f32\n    %v = arith.subf %u, %f : f32",
        "bf16",
    ),
    "a value of each column, broadcast": Form(
        f"{AB}, e: T[{N}xf32]", SUM + BIAS.format(N, 0), "%r: T[C]", lambda x, y, e: x @ y + e
    ),
    "a value of each row, broadcast": Form(
        f"{AB}, e: T[{M}xf32]",
        SUM + BIAS.format(M, 1),
        "%r: T[C]",
        lambda x, y, e: x @ y + e[:, None],
    ),
    "one vector along both axes": Form(
        f"x: T[S], e: T[{K}xf32]",
        filled(f"{K}x{K}")
        + matmul("%x S", "%x S", "Sw")
        + generic(
            f"%sum Sw; %e {K}xf32; %e {K}xf32",
            [MN, OF_ROW, OF_COLUMN],
            "%u: f32, %f: f32, %g: f32, %w: f32",
            "%s = arith.mulf %u, %f : f32\n"
            "    %v = arith.addf %s, %g : f32\n"
            "    linalg.yield %v : f32",
            "%r Sw",
        ),
        "%r: T[Sw]",
        lambda x, e: (x @ x) * e[:, None] + e,
    ),
    "A once more, as a summand": Form(
        "x: T[S], y: T[S]",
        filled(f"{K}x{K}")
        + matmul("%x S", "%y S", "Sw")
        + generic(
            "%sum Sw; %x S",
            [MN, MN],
            "%u: f32, %e: bf16, %w: f32",
            "%f = arith.extf %e : bf16 to f32\n"
            "    %v = arith.addf %u, %f : f32\n"
            "    linalg.yield %v : f32",
            "%r Sw",
        ),
        "%r: T[Sw]",
        lambda x, y: x @ y + x,
    ),
    "a splat": Form(
        AB,
        SUM + "  %c = arith.constant dense<2.5> : T[C]\n  %r = arith.mulf %sum, %c : T[C]\n",
        "%r: T[C]",
        lambda x, y: (x @ y) * 2.5,
    ),
    "a constant outside": Form(
        AB,
        SUM
        + "  %c = arith.constant -1.5 : f32\n"
        + generic(
            "%sum C",
            [MN],
            "%u: f32, %w: f32",
            "%v = arith.mulf %u, %c : f32\n    linalg.yield %v : f32",
        ),
        "%r: T[C]",
        lambda x, y: (x @ y) * -1.5,
    ),
    "a filled tensor": Form(
        AB,
        SUM + filled(zero="7.0", name="seven") + "  %r = arith.subf %seven, %sum : T[C]\n",
        "%r: T[C]",
        lambda x, y: 7 - x @ y,
    ),
    "two generics": Form(
        f"{AB}, e: T[{N}xf32]",
        SUM
        + generic(
            f"%sum C; %e {N}xf32",
            [MN, OF_COLUMN],
            "%u: f32, %f: f32, %w: f32",
            "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32",
            "%s C",
        )
        + generic(
            "%s C; %sum C",
            [MN, MN],
            "%u: f32, %f: f32, %w: f32",
            "%v = arith.mulf %u, %f : f32\n    linalg.yield %v : f32",
        ).replace("%o0", "%o1"),
        "%r: T[C]",
        lambda x, y, e: (x @ y + e) * (x @ y),
    ),
    "a generic of turned loops": Form(
        f"{AB}, e: T[{N}xf32]",
        SUM
        + generic(
            f"%sum C; %e {N}xf32",
            [NM, OF_ROW, NM],
            "%u: f32, %f: f32, %w: f32",
            "%v = arith.subf %f, %u : f32\n    linalg.yield %v : f32",
        ),
        "%r: T[C]",
        lambda x, y, e: e - x @ y,
    ),
    "a row of one, spread by a zero": Form(
        f"{AB}, e: T[{N}xf32]",
        SUM + f"  %e1 = tensor.empty() : T[1x{N}xf32]\n"
        f"  %row = linalg.broadcast ins(%e : T[{N}xf32]) outs(%e1 : T[1x{N}xf32])"
        " dimensions = [0]\n"
        + generic(
            f"%sum C; %row 1x{N}xf32",
            [MN, "affine_map<(i, j) -> (0, j)>"],
            "%u: f32, %f: f32, %w: f32",
            "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32",
        ),
        "%r: T[C]",
        lambda x, y, e: x @ y + e,
    ),
    "negf": tensor_op("arith.negf %sum", np.negative),
    "absf": tensor_op("math.absf %sum", np.abs),
    "exp": on_sums(
        "%c = arith.constant 0.01 : f32\n"
        "    %t = arith.mulf %u, %c : f32\n"
        "    %v = math.exp %t : f32",
        lambda s: np.exp(s * 0.01),
        1e-5,
    ),
    "exp2": on_sums(
        "%c = arith.constant 0.125 : f32\n"
        "    %t = arith.mulf %u, %c : f32\n"
        "    %v = math.exp2 %t : f32",
        lambda s: np.exp2(s / 8),
        1e-5,
    ),
    "tanh": on_sums(
        "%c = arith.constant 0.0625 : f32\n"
        "    %t = arith.mulf %u, %c : f32\n"
        "    %v = math.tanh %t : f32",
        lambda s: np.tanh(s / 16),
        1e-5,
    ),
    "erf": on_sums(
        "%c = arith.constant 0.0625 : f32\n"
        "    %t = arith.mulf %u, %c : f32\n"
        "    %v = math.erf %t : f32",
        lambda s: torch.erf(torch.from_numpy(s / 16)).numpy(),
        1e-5,
    ),
    "sqrt": on_sums(
        "%t = math.absf %u : f32\n    %v = math.sqrt %t : f32", lambda s: np.sqrt(np.abs(s)), 1e-6
    ),
    "rsqrt": on_sums(
        "%c = arith.constant 0.5 : f32\n"
        "    %t = math.absf %u : f32\n"
        "    %o = arith.addf %t, %c : f32\n"
        "    %v = math.rsqrt %o : f32",
        lambda s: 1 / np.sqrt(np.abs(s) + 0.5),
        1e-5,
    ),
    "log": on_sums(
        "%t = math.absf %u : f32\n    %v = math.log1p %t : f32", lambda s: np.log1p(np.abs(s)), 1e-5
    ),
    "a power of two": on_sums(
        "%c = arith.constant 0.125 : f32\n"
        "    %t = arith.mulf %u, %c : f32\n"
        "    %two = arith.constant 2.0 : f32\n"
        "    %v = math.powf %two, %t : f32",
        lambda s: np.exp2(s / 8),
        1e-5,
    ),
    **{
        name: on_sums(
            "%c = arith.constant 0.125 : f32\n"
            "    %t = arith.mulf %u, %c : f32\n"
            f"    %v = math.{name} %t : f32",
            formula,
        )
        for name, formula in (
            ("floor", lambda s: np.floor(s / 8)),
            ("ceil", lambda s: np.ceil(s / 8)),
            ("trunc", lambda s: np.trunc(s / 8)),
            ("roundeven", lambda s: np.rint(s / 8)),
            ("round", lambda s: np.sign(s) * np.floor(np.abs(s / 8) + 0.5)),
        )
    },
    "fma": on_sums("%v = math.fma %u, %u, %u : f32", lambda s: s * s + s),
    "a square": on_sums(
        "%c = arith.constant 2 : i32\n    %v = math.fpowi %u, %c : f32, i32", np.square
    ),
    "a cube": on_sums(
        "%c = arith.constant 3 : i64\n    %v = math.fpowi %u, %c : f32, i64", lambda s: s**3, 1e-6
    ),
    "divf": on_sums(
        "%c = arith.constant 8.0 : f32\n    %v = arith.divf %u, %c : f32", lambda s: s / 8
    ),
    "divided by": on_sums(
        "%c = arith.constant 0.5 : f32\n"
        "    %a = math.absf %u : f32\n"
        "    %t = arith.addf %a, %c : f32\n"
        "    %v = arith.divf %c, %t : f32",
        lambda s: 0.5 / (np.abs(s) + 0.5),
        1e-6,
    ),
    "maximumf": on_sums(
        "%c = arith.constant 4.0 : f32\n    %v = arith.maximumf %u, %c : f32",
        lambda s: np.maximum(s, 4),
    ),
    "minimumf": on_sums(
        "%c = arith.constant 4.0 : f32\n    %v = arith.minimumf %u, %c : f32",
        lambda s: np.minimum(s, 4),
    ),
    "maxnumf of NaN": on_sums(
        "%c = arith.constant 0x7FC00000 : f32\n    %v = arith.maxnumf %c, %u : f32", lambda s: s
    ),
    "maximumf of NaN": on_sums(
        "%c = arith.constant 0x7FC00000 : f32\n    %v = arith.maximumf %c, %u : f32",
        lambda s: s * np.nan,
    ),
    **{
        predicate: compared(predicate, formula)
        for predicate, formula in (
            ("oeq", lambda s: s == 3),
            ("ogt", lambda s: s > 3),
            ("oge", lambda s: s >= 3),
            ("olt", lambda s: s < 3),
            ("ole", lambda s: s <= 3),
            ("one", lambda s: s != 3),
            ("ueq", lambda s: s == 3),
            ("une", lambda s: s != 3),
            ("ord", lambda s: s == s),
            ("uno", lambda s: s != s),
        )
    },
    "bf16 of tensors": narrowed("bf16", torch.bfloat16),
    "f16 of tensors": narrowed("f16", torch.float16),
    "rounded and widened": Form(
        AB,
        SUM
        + generic(
            "%sum C",
            [MN],
            "%u: f32, %w: f32",
            "%c = arith.constant 0.3 : f32\n"
            "    %s = arith.mulf %u, %c : f32\n"
            "    %t = arith.truncf %s : f32 to bf16\n"
            "    %v = arith.extf %t : bf16 to f32\n    linalg.yield %v : f32",
        ),
        "%r: T[C]",
        lambda x, y: to_bf16(np.float32(x @ y) * np.float32(0.3)),
    ),
    "sums of bf16": Form(
        f"{AB}, e: T[Ch]",
        SUM + "  %n = arith.truncf %sum : T[C] to T[Ch]\n  %s = arith.addf %n, %e : T[Ch]\n"
        "  %r = arith.mulf %s, %e : T[Ch]\n",
        "%r: T[Ch]",
        lambda x, y, e: to_bf16(to_bf16(to_bf16(x @ y) + e) * e),
    ),
    "sums in i32 as f32": Form(
        f"x: T[{M}x{K}xi8], y: T[{N}x{K}xi8], e: T[{N}xf32]",
        filled(element="i32", zero="0")
        + matmul(f"{M}x{K}xi8", f"{N}x{K}xi8", "Ci")
        + generic(
            f"%sum Ci; %e {N}xf32",
            [MN, OF_COLUMN],
            "%u: i32, %f: f32, %w: f32",
            "%s = arith.sitofp %u : i32 to f32\n"
            "    %v = arith.mulf %s, %f : f32\n"
            "    linalg.yield %v : f32",
        ),
        "%r: T[C]",
        lambda x, y, e: (x @ y.T) * e,
    ),
    "sums in i32 and a summand": Form(
        f"x: T[{M}x{K}xi8], y: T[{N}x{K}xi8], e: T[{N}xi32]",
        filled(element="i32", zero="0")
        + matmul(f"{M}x{K}xi8", f"{N}x{K}xi8", "Ci")
        + generic(
            f"%sum Ci; %e {N}xi32",
            [MN, OF_COLUMN],
            "%u: i32, %f: i32, %w: i32",
            "%v = arith.addi %u, %f : i32\n    linalg.yield %v : i32",
            "%r Ci",
        ),
        "%r: T[Ci]",
        lambda x, y, e: x @ y.T + e,
    ),
    "sums before and behind": Form(
        AB,
        SUM + "  %r = arith.negf %sum : T[C]\n",
        "%r: T[C]; %sum: T[C]",
        lambda x, y: (-(x @ y), x @ y),
    ),
    "a generic of two results": Form(
        AB,
        SUM
        + generic(
            "%sum C",
            [MN],
            "%u: f32, %w: f32, %q: bf16",
            "%s = arith.addf %u, %u : f32\n"
            "    %t = arith.truncf %u : f32 to bf16\n"
            "    linalg.yield %s, %t : f32, bf16",
            "%r C; %q Ch",
        ),
        "%r#0: T[C]; %r#1: T[Ch]",
        lambda x, y: (2 * (x @ y), x @ y),
    ),
    "the second of two results": Form(
        AB,
        SUM
        + generic(
            "%sum C",
            [MN],
            "%u: f32, %w: f32, %q: f32",
            "%s = arith.addf %u, %u : f32\n"
            "    %t = arith.negf %s : f32\n"
            "    linalg.yield %s, %t : f32, f32",
            "%r C; %q C",
        ),
        "%r#1: T[C]",
        lambda x, y: -2 * (x @ y),
    ),
    "a stack and a vector of each matrix": Form(
        f"x: T[GA], y: T[GB], e: T[{G}x{N}xf32]",
        STACK + "  %sum = linalg.batch_matmul ins(%x, %y : T[GA], T[GB]) outs(%init : "
        "T[GC]) -> T[GC]\n"
        + generic(
            f"%sum GC; %e {G}x{N}xf32",
            along("b, i, j", "b, j", "b, i, j"),
            "%u: f32, %f: f32, %w: f32",
            "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32",
            "%r GC",
            "parallel parallel parallel",
        ),
        "%r: T[GC]",
        lambda x, y, e: x @ y + e[:, None, :],
    ),
    "a stack and one vector for all": Form(
        f"x: T[GA], y: T[GB], e: T[{M}xf32]",
        STACK + "  %sum = linalg.batch_matmul ins(%x, %y : T[GA], T[GB]) outs(%init : "
        "T[GC]) -> T[GC]\n"
        + generic(
            f"%sum GC; %e {M}xf32",
            along("b, i, j", "i", "b, i, j"),
            "%u: f32, %f: f32, %w: f32",
            "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32",
            "%r GC",
            "parallel parallel parallel",
        ),
        "%r: T[GC]",
        lambda x, y, e: x @ y + e[:, None],
    ),
}
