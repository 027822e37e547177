"""How forms of linalg are written: a text and its formula in numpy.

A form is what stands in a function of the tensors `arguments`, and the formula of these arrays in
float64. `T[8x24xbf16]` stands for `tensor<8x24xbf16>`, and u8 for an i8 that is extended without a
sign. Where the formula rounds between the sums and the result, it says so; the result is rounded to
its type once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

M, N, K, G = 8, 40, 24, 3
MN, NM, OF_ROW, OF_COLUMN, NONE = (
    f"affine_map<(i, j) -> ({dims})>" for dims in ("i, j", "j, i", "i", "j", "")
)

A, B, C = "A", "B", "C"
SHAPES = {
    "A": f"{M}x{K}xbf16",
    "B": f"{K}x{N}xbf16",
    "C": f"{M}x{N}xf32",
    "Aw": f"{M}x{K}xf32",
    "Bw": f"{K}x{N}xf32",
    "Ci": f"{M}x{N}xi32",
    "Ch": f"{M}x{N}xbf16",
    "Th": f"{N}x{K}xbf16",
    "Tw": f"{N}x{K}xf32",
    "Ct": f"{N}x{M}xf32",
    "S": f"{K}x{K}xbf16",
    "Sw": f"{K}x{K}xf32",
    "GC": f"{G}x{M}x{N}xf32",
    "GA": f"{G}x{M}x{K}xbf16",
    "GB": f"{G}x{K}x{N}xbf16",
}
"""Short names of shapes with their elements: w is wide, h is half, t or T is transposed."""


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
        return re.sub(r"T\[([^\]]*)\]", r"tensor<\1>", spelled_out(text)).replace("xu8>", "xi8>")


def spelled_out(text: str) -> str:
    """Text with the shapes that short names stand for."""
    return re.sub(r"T\[(\w+)\]", lambda found: f"T[{SHAPES.get(found[1], found[1])}]", text)


def filled(
    shape: str = f"{M}x{N}", element: str = "f32", zero: str = "0.0", name: str = "init"
) -> str:
    """Zeros to sum into."""
    made = f"T[{shape}x{element}]"
    return f"""
  %zero_{name} = arith.constant {zero} : {element}
  %empty_{name} = tensor.empty() : {made}
  %{name} = linalg.fill ins(%zero_{name} : {element}) outs(%empty_{name} : {made}) -> {made}
"""


def matmul(
    a: str, b: str, c: str = "C", how: str = "", init: str = "init", name: str = "sum"
) -> str:
    """A linalg.matmul of %x and %y, or of others that are named with their types."""
    x, y = (
        each if each.startswith("%") else f"%{n} {each}"
        for n, each in zip("xy", (a, b), strict=True)
    )
    (xn, xt), (yn, yt) = x.split(" "), y.split(" ")
    if SHAPES.get(yt, yt).startswith(f"{N}x{K}x") and "maps" not in how:
        maps = indexing_maps("m, k", "n, k", "m, n")
        how = f"{maps} {{cast = #linalg.type_fn<{how}>}}" if how else maps
    taken = f"ins({xn}, {yn} : T[{xt}], T[{yt}])"
    return f"  %{name} = linalg.matmul {how} {taken} outs(%{init} : T[{c}]) -> T[{c}]\n"


def indexing_maps(*maps: str, dims: str = "m, n, k") -> str:
    """The attribute of an op that multiplies."""
    told = [f"affine_map<({dims}) -> ({each})>" for each in maps]
    return f"indexing_maps = [{', '.join(told)}]"


AB = "x: T[A], y: T[B]"
SUM = filled() + matmul(A, B)
OUT = "%sum: T[C]"


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
    results: str = "%r C",
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
    how = f"indexing_maps = [{', '.join(of_outputs)}], iterator_types = [{kinds}]"
    return f"""{empties}  {lefts} = linalg.generic {{{how}}}
    ins({", ".join(names)} : {told}) outs({", ".join(places)} : {shapes}) {{
  ^bb0({block}):
    {body}
  }} -> {given}
"""


def on_sums(body: str, formula: Callable[[np.ndarray], Any], relative: float = 0.0) -> Form:
    """What a generic body makes of each sum %u, as %v."""
    made = generic("%sum C", [MN], "%u: f32, %w: f32", f"{body}\n    linalg.yield %v : f32")
    return Form(AB, SUM + made, "%r: T[C]", lambda x, y: formula(x @ y), relative)


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
        f"%sum C; %e {of_shape}",
        [MN, map_],
        f"%u: f32, %e_: {element}, %w: f32",
        f"{body.replace('%e,', '%e_,').replace('%e ', '%e_ ')}\n    linalg.yield %v : f32",
    )
    return Form(f"{AB}, e: T[{of_shape}]", SUM + made, "%r: T[C]", formula)


def tensor_op(op: str, formula: Callable[..., Any], relative: float = 0.0) -> Form:
    """An elementwise op on whole tensors."""
    line = f"  %r = {op} : T[C]\n"
    return Form(AB, SUM + line, "%r: T[C]", lambda x, y: formula(x @ y), relative)


def contraction(
    order: str,
    maps: tuple[str, str, str],
    body: str,
    formula: Callable[..., Any] = product,
    a: str = A,
    b: str = B,
    loops: str = "parallel parallel reduction",
    c: str = "C",
) -> Form:
    """A product as a linalg.generic."""
    maps_ = [f"affine_map<({order}) -> ({each})>" for each in maps]
    shape = SHAPES.get(c, c).removesuffix("xf32")
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
PERMUTED = MULTIPLIED.replace("%f, %g", "%g, %f").replace("%s, %t", "%t, %s")
STACK = filled(f"{G}x{M}x{N}")


def stacked(
    a: str, b: str, how: str, formula: Callable[..., Any], before: str = "", arguments: str = ""
) -> Form:
    c = "GC"
    x, y = (each if " " in each else f"%{n} {each}" for n, each in zip("xy", (a, b), strict=True))
    (xn, xt), (yn, yt) = x.split(" "), y.split(" ")
    taken = f"ins({xn}, {yn} : T[{xt}], T[{yt}])"
    line = f"  %sum = linalg.batch_matmul {how} {taken} outs(%init : T[{c}]) -> T[{c}]\n"
    given = arguments or f"x: T[{xt}], y: T[{yt}]"
    return Form(given, before + STACK + line, f"%sum: T[{c}]", formula)


def rounded(values: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """Rounded to a type and back."""
    return torch.from_numpy(values).float().to(dtype).double().numpy()


def to_bf16(values: np.ndarray) -> np.ndarray:
    return rounded(values, torch.bfloat16)


def narrowed(dtype: str, kind: torch.dtype) -> Form:
    """Sums in another type, as ops on tensors have it."""
    line = f"  %r = arith.truncf %sum : T[C] to T[{M}x{N}x{dtype}]\n"
    return Form(AB, SUM + line, f"%r: T[{M}x{N}x{dtype}]", lambda x, y: rounded(x @ y, kind))


def compared(predicate: str, formula: Callable[[np.ndarray], np.ndarray]) -> Form:
    body = f"""%c = arith.constant 3.0 : f32
    %t = arith.cmpf {predicate}, %u, %c : f32
    %v = arith.select %t, %u, %c : f32"""
    return on_sums(body, lambda s: np.where(formula(s), s, 3.0))


def along(*maps: str, dims: str = "b, i, j") -> list[str]:
    """The maps of a linalg.generic of stacks."""
    return [f"affine_map<({dims}) -> ({each})>" for each in maps]


ADDED = "%v = arith.addf %u, %f : f32\n    linalg.yield %v : f32"
