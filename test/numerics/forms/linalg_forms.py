"""Every form of linalg that a file may hold, with its formula in numpy.

A form is what stands in a function of the tensors `arguments`, and the formula of the same arrays in
float64. `T[8x24xbf16]` stands for `tensor<8x24xbf16>`, and u8 for an i8 that is extended without a sign. Where the formula rounds between the sums and
the result, it says so; the result is rounded to its type once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

M, N, K = 8, 40, 24
MN, NM, I, J, NONE = (f"affine_map<(i, j) -> ({dims})>" for dims in ("i, j", "j, i", "i", "j", ""))
INTEGERS = "i8", "i32", "0"
FLOATS = "bf16", "f32", "0.0"


class Form(NamedTuple):
    """A function's arguments, its lines, its results, and what they are of the arguments."""

    arguments: str
    lines: str
    results: str
    formula: Callable[..., Any]
    relative: float = 0.0

    def text(self) -> str:
        """The module."""
        names, types = zip(*(each.split(": ") for each in self.results.split("; ")), strict=True)
        returned = ", ".join(types)
        given = re.sub(r"(\w+):", r"%\1:", self.arguments)
        text = (
            f"func.func @f({given}) -> ({returned}) {{\n{self.lines}\n"
            f"  return {', '.join(names)} : {returned}\n}}\n"
        )
        return re.sub(r"T\[([^\]]*)\]", r"tensor<\1>", text).replace("xu8>", "xi8>")


def filled(
    shape: str = f"{M}x{N}", element: str = "f32", zero: str = "0.0", name: str = "init"
) -> str:
    """Zeros to sum into."""
    return f"""
  %zero_{name} = arith.constant {zero} : {element}
  %empty_{name} = tensor.empty() : T[{shape}x{element}]
  %{name} = linalg.fill ins(%zero_{name} : {element}) outs(%empty_{name} : T[{shape}x{element}]) -> T[{shape}x{element}]
"""


def matmul(
    a: str, b: str, c: str = f"{M}x{N}xf32", how: str = "", init: str = "init", name: str = "sum"
) -> str:
    """A linalg.matmul of %x and %y, or of others that are named with their types."""
    x, y = (
        each if each.startswith("%") else f"%{n} {each}"
        for n, each in zip("xy", (a, b), strict=True)
    )
    (xn, xt), (yn, yt) = x.split(" "), y.split(" ")
    if yt.startswith(f"{N}x{K}x") and "maps" not in how:
        maps = indexing_maps("m, k", "n, k", "m, n")
        how = f"{maps} {{cast = #linalg.type_fn<{how}>}}" if how else maps
    return f"  %{name} = linalg.matmul {how} ins({xn}, {yn} : T[{xt}], T[{yt}]) outs(%{init} : T[{c}]) -> T[{c}]\n"


def indexing_maps(*maps: str, dims: str = "m, n, k") -> str:
    """The attribute of an op that multiplies."""
    return f"indexing_maps = [{', '.join(f'affine_map<({dims}) -> ({each})>' for each in maps)}]"


A, B = f"{M}x{K}xbf16", f"{K}x{N}xbf16"
AB = f"x: T[{A}], y: T[{B}]"
SUM = filled() + matmul(A, B)
OUT = f"%sum: T[{M}x{N}xf32]"


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x @ y


def of_types(a: str, b: str, sums: str = "f32", zero: str = "0.0", how: str = "") -> Form:
    """A product of two types of elements."""
    a, b, c = f"{M}x{K}x{a}", f"{N}x{K}x{b}", f"{M}x{N}x{sums}"
    lines = filled(element=sums, zero=zero) + matmul(a, b, c, how)
    return Form(f"x: T[{a}], y: T[{b}]", lines, f"%sum: T[{c}]", lambda x, y: x @ y.T)


def indexed(a: str, b: str, a_map: str, b_map: str, formula: Callable[..., Any]) -> Form:
    """A linalg.matmul with indexing maps of its own."""
    lines = filled() + matmul(a, b, how=indexing_maps(a_map, b_map, "m, n"))
    return Form(f"x: T[{a}], y: T[{b}]", lines, OUT, formula)


def generic(
    inputs: str,
    maps: list[str],
    block: str,
    body: str,
    results: str = f"%r {M}x{N}xf32",
    loops: str = "parallel parallel",
    outs: str = "",
) -> str:
    """A linalg.generic: `inputs` are names with their types, `results` as well."""
    names, types = zip(*(each.split(" ") for each in inputs.split("; ")), strict=True)
    made = [each.split(" ") for each in results.split("; ")]
    of_outputs = maps if len(maps) == len(names) + len(made) else [*maps, *[MN] * len(made)]
    kinds = ", ".join(f'"{each}"' for each in loops.split())
    told = ", ".join(f"T[{each}]" for each in types)
    places = [outs] if outs else [f"%o{number}" for number in range(len(made))]
    shapes = ", ".join(f"T[{shape}]" for _, shape in made)
    many = len(made) > 1
    empties = (
        ""
        if outs
        else "".join(
            f"  {place} = tensor.empty() : T[{shape}]\n"
            for place, (_, shape) in zip(places, made, strict=True)
        )
    )
    lefts = made[0][0] + (f":{len(made)}" if many else "")
    given = f"({shapes})" if many else shapes
    return f"""{empties}  {lefts} = linalg.generic {{indexing_maps = [{", ".join(of_outputs)}], iterator_types = [{kinds}]}}
    ins({", ".join(names)} : {told}) outs({", ".join(places)} : {shapes}) {{
  ^bb0({block}):
    {body}
  }} -> {given}
"""


def on_sums(body: str, formula: Callable[[np.ndarray], Any], relative: float = 0.0) -> Form:
    """What a generic body makes of each sum %u, as %v."""
    made = generic(
        f"%sum {M}x{N}xf32", [MN], "%u: f32, %w: f32", f"{body}\n    linalg.yield %v : f32"
    )
    return Form(AB, SUM + made, f"%r: T[{M}x{N}xf32]", lambda x, y: formula(x @ y), relative)


def beside(
    shape: str,
    map_: str,
    formula: Callable[..., Any],
    body: str = "%v = arith.addf %u, %e : f32",
    element: str = "f32",
) -> Form:
    """A generic op that reads one more tensor."""
    of_shape = f"{shape}x{element}" if shape else element
    made = generic(
        f"%sum {M}x{N}xf32; %e {of_shape}", [MN, map_], f"%u: f32, %e_: {element}, %w: f32",
        f"{body.replace('%e,', '%e_,').replace('%e ', '%e_ ')}\n    linalg.yield %v : f32",
    )  # fmt: skip
    return Form(f"{AB}, e: T[{of_shape}]", SUM + made, f"%r: T[{M}x{N}xf32]", formula)


def tensor_op(op: str, formula: Callable[..., Any], relative: float = 0.0) -> Form:
    """An elementwise op on whole tensors."""
    line = f"  %r = {op} : T[{M}x{N}xf32]\n"
    return Form(AB, SUM + line, f"%r: T[{M}x{N}xf32]", lambda x, y: formula(x @ y), relative)


def contraction(
    order: str,
    maps: tuple[str, str, str],
    body: str,
    formula: Callable[..., Any] = product,
    a: str = A,
    b: str = B,
    loops: str = "parallel parallel reduction",
    c: str = f"{M}x{N}xf32",
) -> Form:
    """A product as a linalg.generic."""
    maps_ = [f"affine_map<({order}) -> ({each})>" for each in maps]
    shape = c.removesuffix("xf32")
    made = generic(
        f"%x {a}; %y {b}",
        maps_,
        "%p: bf16, %q: bf16, %s: f32",
        body,
        f"%sum {c}",
        loops,
        outs="%init",
    )
    return Form(f"x: T[{a}], y: T[{b}]", filled(shape) + made, f"%sum: T[{c}]", formula)


MULTIPLIED = """%f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %t = arith.mulf %f, %g : f32
    %v = arith.addf %s, %t : f32
    linalg.yield %v : f32"""
TURNED = MULTIPLIED.replace("%f, %g", "%g, %f").replace("%s, %t", "%t, %s")
G = 3
STACK = filled(f"{G}x{M}x{N}")


def stacked(
    a: str, b: str, how: str, formula: Callable[..., Any], before: str = "", arguments: str = ""
) -> Form:
    c = f"{G}x{M}x{N}xf32"
    x, y = (each if " " in each else f"%{n} {each}" for n, each in zip("xy", (a, b), strict=True))
    (xn, xt), (yn, yt) = x.split(" "), y.split(" ")
    line = f"  %sum = linalg.batch_matmul {how} ins({xn}, {yn} : T[{xt}], T[{yt}]) outs(%init : T[{c}]) -> T[{c}]\n"
    given = arguments or f"x: T[{xt}], y: T[{yt}]"
    return Form(given, before + STACK + line, f"%sum: T[{c}]", formula)


def rounded(values: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """Rounded to a type and back."""
    return torch.from_numpy(values).float().to(dtype).double().numpy()


def to_bf16(values: np.ndarray) -> np.ndarray:
    return rounded(values, torch.bfloat16)


def narrowed(dtype: str, kind: torch.dtype) -> Form:
    """Sums in another type, as ops on tensors have it."""
    line = f"  %r = arith.truncf %sum : T[{M}x{N}xf32] to T[{M}x{N}x{dtype}]\n"
    return Form(AB, SUM + line, f"%r: T[{M}x{N}x{dtype}]", lambda x, y: rounded(x @ y, kind))


def compared(predicate: str, formula: Callable[[np.ndarray], np.ndarray]) -> Form:
    body = f"""%c = arith.constant 3.0 : f32
    %t = arith.cmpf {predicate}, %u, %c : f32
    %v = arith.select %t, %u, %c : f32"""
    return on_sums(body, lambda s: np.where(formula(s), s, 3.0))


OPERANDS = {
    "bf16": of_types("bf16", "bf16"),
    "f16": of_types("f16", "f16"),
    "f32": of_types("f32", "f32"),
    "e4m3 e5m2": of_types("f8E4M3FN", "f8E5M2"),
    "e5m2": of_types("f8E5M2", "f8E5M2"),
    "i8": of_types("i8", "i8", "i32", "0"),
    "i8 without signs": of_types("u8", "u8", "i32", "0", "cast_unsigned"),
    "A of K rows": indexed(f"{K}x{M}xbf16", B, "k, m", "k, n", lambda x, y: x.T @ y),
    "B of N rows": indexed(A, f"{N}x{K}xbf16", "m, k", "n, k", lambda x, y: x @ y.T),
    "both turned": indexed(f"{K}x{M}xbf16", f"{N}x{K}xbf16", "k, m", "n, k", lambda x, y: x.T @ y.T),
    "A transposed": Form(
        f"x: T[{K}x{M}xf16], y: T[{K}x{N}xf16]",
        f"  %e = tensor.empty() : T[{M}x{K}xf16]\n  %t = linalg.transpose ins(%x : T[{K}x{M}xf16])"
        f" outs(%e : T[{M}x{K}xf16]) permutation = [1, 0]\n"
        + filled() + matmul(f"%t {M}x{K}xf16", f"%y {K}x{N}xf16"),
        OUT, lambda x, y: x.T @ y,
    ),
    "B transposed by a generic": Form(
        f"x: T[{A}], y: T[{N}x{K}xbf16]",
        generic(f"%y {N}x{K}xbf16", [NM, MN], "%u: bf16, %w: bf16", "linalg.yield %u : bf16", f"%t {B}")
        + filled() + matmul(f"%x {A}", f"%t {B}"),
        OUT, lambda x, y: x @ y.T,
    ),
    "B transposed twice": Form(
        AB,
        f"  %e = tensor.empty() : T[{N}x{K}xbf16]\n  %t = linalg.transpose ins(%y : T[{B}])"
        f" outs(%e : T[{N}x{K}xbf16]) permutation = [1, 0]\n"
        + filled() + matmul(f"%x {A}", f"%t {N}x{K}xbf16", how=indexing_maps("m, k", "n, k", "m, n")),
        OUT, product,
    ),
    "extended tensors": Form(
        AB,
        f"  %a = arith.extf %x : T[{A}] to T[{M}x{K}xf32]\n  %b = arith.extf %y : T[{B}] to T[{K}x{N}xf32]\n"
        + filled() + matmul(f"%a {M}x{K}xf32", f"%b {K}x{N}xf32"),
        OUT, product,
    ),
    "extended twice": Form(
        f"x: T[{M}x{K}xf8E4M3FN], y: T[{N}x{K}xf8E4M3FN]",
        f"  %h = arith.extf %x : T[{M}x{K}xf8E4M3FN] to T[{M}x{K}xf16]\n"
        f"  %a = arith.extf %h : T[{M}x{K}xf16] to T[{M}x{K}xf32]\n"
        f"  %b = arith.extf %y : T[{N}x{K}xf8E4M3FN] to T[{N}x{K}xf32]\n"
        + filled() + matmul(f"%a {M}x{K}xf32", f"%b {N}x{K}xf32"),
        OUT, lambda x, y: x @ y.T,
    ),
    "extended by a generic": Form(
        AB,
        generic(f"%x {A}", [MN], "%u: bf16, %w: f32", "%v = arith.extf %u : bf16 to f32\n    linalg.yield %v : f32", f"%a {M}x{K}xf32")
        + f"  %b = arith.extf %y : T[{B}] to T[{K}x{N}xf32]\n"
        + filled() + matmul(f"%a {M}x{K}xf32", f"%b {K}x{N}xf32"),
        OUT, product,
    ),
    "one signed, one not": Form(
        f"x: T[{M}x{K}xu8], y: T[{N}x{K}xi8]",
        f"  %a = arith.extui %x : T[{M}x{K}xu8] to T[{M}x{K}xi32]\n  %b = arith.extsi %y : T[{N}x{K}xi8] to T[{N}x{K}xi32]\n"
        + filled(element="i32", zero="0") + matmul(f"%a {M}x{K}xi32", f"%b {N}x{K}xi32", f"{M}x{N}xi32"),
        f"%sum: T[{M}x{N}xi32]", lambda x, y: x @ y.T,
    ),
    "extended through i16": Form(
        f"x: T[{M}x{K}xu8], y: T[{N}x{K}xu8]",
        f"  %a = arith.extui %x : T[{M}x{K}xu8] to T[{M}x{K}xi16]\n  %b = arith.extui %y : T[{N}x{K}xu8] to T[{N}x{K}xi16]\n"
        + filled(element="i32", zero="0") + matmul(f"%a {M}x{K}xi16", f"%b {N}x{K}xi16", f"{M}x{N}xi32", "cast_signed"),
        f"%sum: T[{M}x{N}xi32]", lambda x, y: x @ y.T,
    ),
    "a matrix by itself": Form(
        f"x: T[{K}x{K}xbf16]", filled(f"{K}x{K}") + matmul(f"%x {K}x{K}xbf16", f"%x {K}x{K}xbf16", f"{K}x{K}xf32"),
        f"%sum: T[{K}x{K}xf32]", lambda x: x @ x,
    ),
    "a matrix by its own transpose": Form(
        f"x: T[{A}]",
        filled(f"{M}x{M}") + matmul(f"%x {A}", f"%x {A}", f"{M}x{M}xf32", indexing_maps("m, k", "n, k", "m, n")),
        f"%sum: T[{M}x{M}xf32]", lambda x: x @ x.T,
    ),
    "B before A": Form(f"y: T[{B}], x: T[{A}]", SUM, OUT, lambda y, x: x @ y),
    "an argument that nobody reads": Form(f"u: T[3x5xf32], {AB}", SUM, OUT, lambda u, x, y: x @ y),
    "lines that nobody reads": Form(
        AB, SUM + f"  %u = math.exp %sum : T[{M}x{N}xf32]\n", OUT, product
    ),
    "zeros as a constant": Form(
        AB, f"  %init = arith.constant dense<0.0> : T[{M}x{N}xf32]\n" + matmul(A, B), OUT, product
    ),
    "stacks": stacked(f"{G}x{A}", f"{G}x{B}", "", product),
    "stacks, B of N rows": stacked(
        f"{G}x{A}", f"{G}x{N}x{K}xbf16", indexing_maps("b, m, k", "b, n, k", "b, m, n", dims="b, m, n, k"),
        lambda x, y: x @ y.swapaxes(1, 2),
    ),
    "stacks that share B": stacked(
        f"{G}x{A}", f"%t {G}x{B}", "", product,
        f"  %e = tensor.empty() : T[{G}x{B}]\n  %t = linalg.broadcast ins(%y : T[{B}]) outs(%e : T[{G}x{B}]) dimensions = [0]\n",
        f"x: T[{G}x{A}], y: T[{B}]",
    ),
    "stacks that share A by its map": stacked(
        A, f"{G}x{B}", indexing_maps("m, k", "b, k, n", "b, m, n", dims="b, m, n, k"),
        product,
    ),
    "two products of one A": Form(
        f"{AB}, z: T[{B}]",
        SUM + matmul(f"%x {A}", f"%z {B}", name="other") + f"  %r = arith.subf %sum, %other : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]", lambda x, y, z: x @ y - x @ z,
    ),
    "the second of two products first": Form(
        f"{AB}, z: T[{B}]",
        SUM + matmul(f"%x {A}", f"%z {B}", name="other") + f"  %r = arith.subf %other, %sum : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]", lambda x, y, z: x @ z - x @ y,
    ),
    "one product twice": Form(
        AB, SUM + matmul(A, B, name="other") + f"  %r = arith.addf %sum, %other : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]", lambda x, y: 2 * (x @ y),
    ),
}  # fmt: skip
BIAS = f"""  %e0 = tensor.empty() : T[{M}x{N}xf32]
  %wide = linalg.broadcast ins(%e : T[{{}}xf32]) outs(%e0 : T[{M}x{N}xf32]) dimensions = [{{}}]
  %r = arith.addf %sum, %wide : T[{M}x{N}xf32]
"""
EPILOGUES = {
    "a value of each column": beside(f"{N}", J, lambda x, y, e: x @ y + e),
    "a value of each row": beside(f"{M}", I, lambda x, y, e: x @ y + e[:, None]),
    "one value": beside("", NONE, lambda x, y, e: x @ y + e),
    "a value of each element": beside(f"{M}x{N}", MN, lambda x, y, e: x @ y + e),
    "a factor of each row": beside(f"{M}", I, lambda x, y, e: (x @ y) * e[:, None], "%v = arith.mulf %u, %e : f32"),
    "a narrow value of each column": beside(
        f"{N}", J, lambda x, y, e: x @ y - e, "%f = arith.extf %e : bf16 to f32\n    %v = arith.subf %u, %f : f32", "bf16"
    ),
    "a value of each column, broadcast": Form(
        f"{AB}, e: T[{N}xf32]", SUM + BIAS.format(N, 0), f"%r: T[{M}x{N}xf32]", lambda x, y, e: x @ y + e
    ),
    "a value of each row, broadcast": Form(
        f"{AB}, e: T[{M}xf32]", SUM + BIAS.format(M, 1), f"%r: T[{M}x{N}xf32]", lambda x, y, e: x @ y + e[:, None]
    ),
    "one vector along both axes": Form(
        f"x: T[{K}x{K}xbf16], e: T[{K}xf32]",
        filled(f"{K}x{K}") + matmul(f"%x {K}x{K}xbf16", f"%x {K}x{K}xbf16", f"{K}x{K}xf32")
        + generic(f"%sum {K}x{K}xf32; %e {K}xf32; %e {K}xf32", [MN, I, J], "%u: f32, %f: f32, %g: f32, %w: f32",
                  "%s = arith.mulf %u, %f : f32\n    %v = arith.addf %s, %g : f32\n    linalg.yield %v : f32", f"%r {K}x{K}xf32"),
        f"%r: T[{K}x{K}xf32]", lambda x, e: (x @ x) * e[:, None] + e,
    ),
    "A once more, as a summand": Form(
        f"x: T[{K}x{K}xbf16], y: T[{K}x{K}xbf16]",
        filled(f"{K}x{K}") + matmul(f"%x {K}x{K}xbf16", f"%y {K}x{K}xbf16", f"{K}x{K}xf32")
        + generic(f"%sum {K}x{K}xf32; %x {K}x{K}xbf16", [MN, MN], "%u: f32, %e: bf16, %w: f32",
                  "%f = arith.extf %e : bf16 to f32\n    %v = arith.addf %u, %f : f32\n    linalg.yield %v : f32", f"%r {K}x{K}xf32"),
        f"%r: T[{K}x{K}xf32]", lambda x, y: x @ y + x,
    ),
    "a splat": Form(
        AB, SUM + f"  %c = arith.constant dense<2.5> : T[{M}x{N}xf32]\n  %r = arith.mulf %sum, %c : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]", lambda x, y: (x @ y) * 2.5,
    ),
    "a constant outside": Form(
        AB, SUM + "  %c = arith.constant -1.5 : f32\n"
        + generic(f"%sum {M}x{N}xf32", [MN], "%u: f32, %w: f32", "%v = arith.mulf %u, %c : f32\n    linalg.yield %v : f32"),
        f"%r: T[{M}x{N}xf32]", lambda x, y: (x @ y) * -1.5,
    ),
    "a filled tensor": Form(
        AB, SUM + filled(zero="7.0", name="seven") + f"  %r = arith.subf %seven, %sum : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]", lambda x, y: 7 - x @ y,
    ),
    "two generics": Form(
        f"{AB}, e: T[{N}xf32]",
        SUM + generic(f"%sum {M}x{N}xf32; %e {N}xf32", [MN, J], "%u: f32, %f: f32, %w: f32",
                      "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32", f"%s {M}x{N}xf32")
        + generic(f"%s {M}x{N}xf32; %sum {M}x{N}xf32", [MN, MN], "%u: f32, %f: f32, %w: f32",
                  "%v = arith.mulf %u, %f : f32\n    linalg.yield %v : f32").replace("%o0", "%o1"),
        f"%r: T[{M}x{N}xf32]", lambda x, y, e: (x @ y + e) * (x @ y),
    ),
    "a generic of turned loops": Form(
        f"{AB}, e: T[{N}xf32]",
        SUM + generic(f"%sum {M}x{N}xf32; %e {N}xf32", [NM, I, NM], "%u: f32, %f: f32, %w: f32",
                      "%v = arith.subf %f, %u : f32\n    linalg.yield %v : f32"),
        f"%r: T[{M}x{N}xf32]", lambda x, y, e: e - x @ y,
    ),
    "negf": tensor_op("arith.negf %sum", np.negative),
    "absf": tensor_op("math.absf %sum", np.abs),
    "exp": on_sums("%c = arith.constant 0.01 : f32\n    %t = arith.mulf %u, %c : f32\n    %v = math.exp %t : f32", lambda s: np.exp(s * 0.01), 1e-5),
    "exp2": on_sums("%c = arith.constant 0.125 : f32\n    %t = arith.mulf %u, %c : f32\n    %v = math.exp2 %t : f32", lambda s: np.exp2(s / 8), 1e-5),
    "tanh": on_sums("%c = arith.constant 0.0625 : f32\n    %t = arith.mulf %u, %c : f32\n    %v = math.tanh %t : f32", lambda s: np.tanh(s / 16), 1e-5),
    "erf": on_sums(
        "%c = arith.constant 0.0625 : f32\n    %t = arith.mulf %u, %c : f32\n    %v = math.erf %t : f32",
        lambda s: torch.erf(torch.from_numpy(s / 16)).numpy(), 1e-5,
    ),
    "sqrt": on_sums("%t = math.absf %u : f32\n    %v = math.sqrt %t : f32", lambda s: np.sqrt(np.abs(s)), 1e-6),
    "rsqrt": on_sums(
        "%c = arith.constant 0.5 : f32\n    %t = math.absf %u : f32\n    %o = arith.addf %t, %c : f32\n    %v = math.rsqrt %o : f32",
        lambda s: 1 / np.sqrt(np.abs(s) + 0.5), 1e-5,
    ),
    "fma": on_sums("%v = math.fma %u, %u, %u : f32", lambda s: s * s + s),
    "a square": on_sums("%c = arith.constant 2 : i32\n    %v = math.fpowi %u, %c : f32, i32", np.square),
    "a cube": on_sums("%c = arith.constant 3 : i64\n    %v = math.fpowi %u, %c : f32, i64", lambda s: s**3, 1e-6),
    "divf": on_sums("%c = arith.constant 8.0 : f32\n    %v = arith.divf %u, %c : f32", lambda s: s / 8),
    "divided by": on_sums("%c = arith.constant 0.5 : f32\n    %a = math.absf %u : f32\n    %t = arith.addf %a, %c : f32\n    %v = arith.divf %c, %t : f32", lambda s: 0.5 / (np.abs(s) + 0.5), 1e-6),
    "maximumf": on_sums("%c = arith.constant 4.0 : f32\n    %v = arith.maximumf %u, %c : f32", lambda s: np.maximum(s, 4)),
    "minimumf": on_sums("%c = arith.constant 4.0 : f32\n    %v = arith.minimumf %u, %c : f32", lambda s: np.minimum(s, 4)),
    "maxnumf of NaN": on_sums("%c = arith.constant 0x7FC00000 : f32\n    %v = arith.maxnumf %c, %u : f32", lambda s: s),
    "maximumf of NaN": on_sums("%c = arith.constant 0x7FC00000 : f32\n    %v = arith.maximumf %c, %u : f32", lambda s: s * np.nan),
    **{
        predicate: compared(predicate, formula)
        for predicate, formula in (
            ("oeq", lambda s: s == 3), ("ogt", lambda s: s > 3), ("oge", lambda s: s >= 3), ("olt", lambda s: s < 3),
            ("ole", lambda s: s <= 3), ("one", lambda s: s != 3), ("ueq", lambda s: s == 3), ("une", lambda s: s != 3),
            ("ord", lambda s: s == s), ("uno", lambda s: s != s),
        )
    },
    "bf16 of tensors": narrowed("bf16", torch.bfloat16),
    "f16 of tensors": narrowed("f16", torch.float16),
    "rounded and widened": Form(
        AB,
        SUM + generic(f"%sum {M}x{N}xf32", [MN], "%u: f32, %w: f32",
                      "%c = arith.constant 0.3 : f32\n    %s = arith.mulf %u, %c : f32\n    %t = arith.truncf %s : f32 to bf16\n"
                      "    %v = arith.extf %t : bf16 to f32\n    linalg.yield %v : f32"),
        f"%r: T[{M}x{N}xf32]", lambda x, y: to_bf16(np.float32(x @ y) * np.float32(0.3)),
    ),
    "sums of bf16": Form(
        f"{AB}, e: T[{M}x{N}xbf16]",
        SUM + f"  %n = arith.truncf %sum : T[{M}x{N}xf32] to T[{M}x{N}xbf16]\n  %s = arith.addf %n, %e : T[{M}x{N}xbf16]\n"
        f"  %r = arith.mulf %s, %e : T[{M}x{N}xbf16]\n",
        f"%r: T[{M}x{N}xbf16]", lambda x, y, e: to_bf16(to_bf16(to_bf16(x @ y) + e) * e),
    ),
    "sums in i32 as f32": Form(
        f"x: T[{M}x{K}xi8], y: T[{N}x{K}xi8], e: T[{N}xf32]",
        filled(element="i32", zero="0") + matmul(f"{M}x{K}xi8", f"{N}x{K}xi8", f"{M}x{N}xi32")
        + generic(f"%sum {M}x{N}xi32; %e {N}xf32", [MN, J], "%u: i32, %f: f32, %w: f32",
                  "%s = arith.sitofp %u : i32 to f32\n    %v = arith.mulf %s, %f : f32\n    linalg.yield %v : f32"),
        f"%r: T[{M}x{N}xf32]", lambda x, y, e: (x @ y.T) * e,
    ),
    "sums in i32 and a summand": Form(
        f"x: T[{M}x{K}xi8], y: T[{N}x{K}xi8], e: T[{N}xi32]",
        filled(element="i32", zero="0") + matmul(f"{M}x{K}xi8", f"{N}x{K}xi8", f"{M}x{N}xi32")
        + generic(f"%sum {M}x{N}xi32; %e {N}xi32", [MN, J], "%u: i32, %f: i32, %w: i32",
                  "%v = arith.addi %u, %f : i32\n    linalg.yield %v : i32", f"%r {M}x{N}xi32"),
        f"%r: T[{M}x{N}xi32]", lambda x, y, e: x @ y.T + e,
    ),
    "sums before and behind": Form(
        AB, SUM + f"  %r = arith.negf %sum : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]; %sum: T[{M}x{N}xf32]", lambda x, y: (-(x @ y), x @ y),
    ),
    "a generic of two results": Form(
        AB,
        SUM + generic(f"%sum {M}x{N}xf32", [MN], "%u: f32, %w: f32, %q: bf16",
                      "%s = arith.addf %u, %u : f32\n    %t = arith.truncf %u : f32 to bf16\n    linalg.yield %s, %t : f32, bf16",
                      f"%r {M}x{N}xf32; %q {M}x{N}xbf16"),
        f"%r#0: T[{M}x{N}xf32]; %r#1: T[{M}x{N}xbf16]", lambda x, y: (2 * (x @ y), x @ y),
    ),
    "the second of two results": Form(
        AB,
        SUM + generic(f"%sum {M}x{N}xf32", [MN], "%u: f32, %w: f32, %q: f32",
                      "%s = arith.addf %u, %u : f32\n    %t = arith.negf %s : f32\n    linalg.yield %s, %t : f32, f32",
                      f"%r {M}x{N}xf32; %q {M}x{N}xf32"),
        f"%r#1: T[{M}x{N}xf32]", lambda x, y: -2 * (x @ y),
    ),
    "a stack and a vector of each matrix": Form(
        f"x: T[{G}x{A}], y: T[{G}x{B}], e: T[{G}x{N}xf32]",
        STACK + f"  %sum = linalg.batch_matmul ins(%x, %y : T[{G}x{A}], T[{G}x{B}]) outs(%init : T[{G}x{M}x{N}xf32]) -> T[{G}x{M}x{N}xf32]\n"
        + generic(f"%sum {G}x{M}x{N}xf32; %e {G}x{N}xf32",
                  [f"affine_map<(b, i, j) -> ({e})>" for e in ("b, i, j", "b, j", "b, i, j")], "%u: f32, %f: f32, %w: f32",
                  "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32", f"%r {G}x{M}x{N}xf32", "parallel parallel parallel"),
        f"%r: T[{G}x{M}x{N}xf32]", lambda x, y, e: x @ y + e[:, None, :],
    ),
    "a stack and one vector for all": Form(
        f"x: T[{G}x{A}], y: T[{G}x{B}], e: T[{M}xf32]",
        STACK + f"  %sum = linalg.batch_matmul ins(%x, %y : T[{G}x{A}], T[{G}x{B}]) outs(%init : T[{G}x{M}x{N}xf32]) -> T[{G}x{M}x{N}xf32]\n"
        + generic(f"%sum {G}x{M}x{N}xf32; %e {M}xf32",
                  [f"affine_map<(b, i, j) -> ({e})>" for e in ("b, i, j", "i", "b, i, j")], "%u: f32, %f: f32, %w: f32",
                  "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32", f"%r {G}x{M}x{N}xf32", "parallel parallel parallel"),
        f"%r: T[{G}x{M}x{N}xf32]", lambda x, y, e: x @ y + e[:, None],
    ),
}  # fmt: skip
FORMS = {**OPERANDS, **EPILOGUES}
REFUSED = {
    "zeros below": (Form(AB, filled(zero="-0.0") + matmul(A, B), OUT, product), "must start as linalg.fill of 0; add C afterwards"),
    "a contraction": (contraction("m, n, k", ("m, k", "k, n", "m, n"), MULTIPLIED), "got loops that sum; write it so, with indexing_maps"),
    "a contraction with its operands exchanged": (contraction("m, n, k", ("m, k", "k, n", "m, n"), TURNED), "got loops that sum; write it so, with indexing_maps"),
    "a contraction of other loops": (contraction(
        "k, n, m", ("m, k", "k, n", "m, n"), MULTIPLIED, loops="reduction parallel parallel"
    ), "got loops that sum; write it so, with indexing_maps"),
    "a contraction of both turned": (contraction(
        "m, n, k", ("k, m", "n, k", "m, n"), MULTIPLIED, lambda x, y: x.T @ y.T, f"{K}x{M}xbf16", f"{N}x{K}xbf16"
    ), "got loops that sum; write it so, with indexing_maps"),
    "a contraction of stacks": (contraction(
        "b, m, n, k", ("b, m, k", "b, k, n", "b, m, n"), MULTIPLIED, product, f"{G}x{A}", f"{G}x{B}",
        "parallel parallel parallel reduction", f"{G}x{M}x{N}xf32",
    ), "got loops that sum; write it so, with indexing_maps"),
    "a contraction that shares B": (contraction(
        "b, m, n, k", ("b, m, k", "k, n", "b, m, n"), MULTIPLIED, product, f"{G}x{A}", B,
        "parallel parallel parallel reduction", f"{G}x{M}x{N}xf32",
    ), "got loops that sum; write it so, with indexing_maps"),
    "a value of each element, turned": (beside(f"{N}x{M}", NM, lambda x, y, e: x @ y + e.T), "must be indexed [], [m], [n] or [m, n], got ['n', 'm']"),
    "a value of each element, transposed": (Form(
        f"{AB}, e: T[{N}x{M}xf32]",
        SUM + f"  %e0 = tensor.empty() : T[{M}x{N}xf32]\n  %t = linalg.transpose ins(%e : T[{N}x{M}xf32])"
        f" outs(%e0 : T[{M}x{N}xf32]) permutation = [1, 0]\n  %r = arith.addf %t, %sum : T[{M}x{N}xf32]\n",
        f"%r: T[{M}x{N}xf32]", lambda x, y, e: x @ y + e.T,
    ), "must be indexed [], [m], [n] or [m, n], got ['n', 'm']"),
    "A once more, turned, as a summand": (Form(
        f"x: T[{K}x{K}xbf16], y: T[{K}x{K}xbf16]",
        filled(f"{K}x{K}") + matmul(f"%x {K}x{K}xbf16", f"%y {K}x{K}xbf16", f"{K}x{K}xf32")
        + generic(f"%sum {K}x{K}xf32; %x {K}x{K}xbf16", [MN, NM], "%u: f32, %e: bf16, %w: f32",
                  "%f = arith.extf %e : bf16 to f32\n    %v = arith.addf %u, %f : f32\n    linalg.yield %v : f32", f"%r {K}x{K}xf32"),
        f"%r: T[{K}x{K}xf32]", lambda x, y: x @ y + x.T,
    ), "must be indexed [], [m], [n] or [m, n], got ['n', 'm']"),
}  # fmt: skip
