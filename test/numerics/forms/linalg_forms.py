"""Every form of linalg that a file may hold, and forms that are refused with their rule."""

from __future__ import annotations

from epilogue_forms import EPILOGUES
from linalg_writing import (
    AB,
    MN,
    MULTIPLIED,
    NM,
    OUT,
    PERMUTED,
    SUM,
    A,
    B,
    Form,
    K,
    M,
    N,
    beside,
    contraction,
    filled,
    generic,
    matmul,
    product,
)
from operand_forms import OPERANDS

ZEROS = "must start as linalg.fill of 0; add C afterwards"
SUMS = "got loops that sum; write it so, with indexing_maps"
TURNED_READ = "must be indexed [], [m], [n] or [m, n], got ['n', 'm']"
FORMS = {**OPERANDS, **EPILOGUES}
REFUSED = {
    "zeros below": (Form(AB, filled(zero="-0.0") + matmul(A, B), OUT, product), ZEROS),
    "a contraction": (contraction("m, n, k", ("m, k", "k, n", "m, n"), MULTIPLIED), SUMS),
    "a contraction with its operands exchanged": (
        contraction("m, n, k", ("m, k", "k, n", "m, n"), PERMUTED),
        SUMS,
    ),
    "a contraction of other loops": (
        contraction(
            "k, n, m", ("m, k", "k, n", "m, n"), MULTIPLIED, loops="reduction parallel parallel"
        ),
        SUMS,
    ),
    "a contraction of both turned": (
        contraction(
            "m, n, k",
            ("k, m", "n, k", "m, n"),
            MULTIPLIED,
            lambda x, y: x.T @ y.T,
            f"{K}x{M}xbf16",
            "Th",
        ),
        SUMS,
    ),
    "a contraction of stacks": (
        contraction(
            "b, m, n, k",
            ("b, m, k", "b, k, n", "b, m, n"),
            MULTIPLIED,
            product,
            "GA",
            "GB",
            "parallel parallel parallel reduction",
            "GC",
        ),
        SUMS,
    ),
    "a contraction that shares B": (
        contraction(
            "b, m, n, k",
            ("b, m, k", "k, n", "b, m, n"),
            MULTIPLIED,
            product,
            "GA",
            B,
            "parallel parallel parallel reduction",
            "GC",
        ),
        SUMS,
    ),
    "a value of each element, turned": (
        beside(f"{N}x{M}", NM, lambda x, y, e: x @ y + e.T),
        TURNED_READ,
    ),
    "a value of each element, transposed": (
        Form(
            f"{AB}, e: T[Ct]",
            SUM + "  %e0 = tensor.empty() : T[C]\n  %t = linalg.transpose ins(%e : T[Ct])"
            " outs(%e0 : T[C]) permutation = [1, 0]\n  %r = arith.addf %t, %sum : T[C]\n",
            "%r: T[C]",
            lambda x, y, e: x @ y + e.T,
        ),
        TURNED_READ,
    ),
    "A once more, turned, as a summand": (
        Form(
            "x: T[S], y: T[S]",
            filled(f"{K}x{K}")
            + matmul("%x S", "%y S", "Sw")
            + generic(
                "%sum Sw; %x S",
                [MN, NM],
                "%u: f32, %e: bf16, %w: f32",
                "%f = arith.extf %e : bf16 to f32\n"
                "    %v = arith.addf %u, %f : f32\n"
                "    linalg.yield %v : f32",
                "%r Sw",
            ),
            "%r: T[Sw]",
            lambda x, y: x @ y + x.T,
        ),
        TURNED_READ,
    ),
}
