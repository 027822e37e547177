"""Random modules of linalg on tensors, fixed by a seed: one product and what is done with it.

Operands come through transposes, maps and casts, the epilogue is a random graph of tensor ops and
of scalar ops in generic bodies, and one module in seven has something odd in it that a compiler
must refuse or honour: rounding modes, strange maps, side effects, attributes, licences.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from random_bodies import BINARY, CONSTANTS, FLOATS, MODES, UNARY, Body, after_sums
from scaled_linalg import ELEMENTS, FORMS, scaled_text

TARGETS = ("sm_100a", "sm_100a", "sm_90a")
EXTENTS = (1, 2, 3, 7, 8, 13, 16, 17, 24, 32, 33, 40)
DEPTHS = (1, 5, 8, 16, 17, 32, 40, 64, 72)
OPERANDS = (
    *("f16 f16", "bf16 bf16", "f16 f16", "bf16 bf16", "f32 f32", "i8 i8", "i8 i8"),
    *("f16 f16", "bf16 bf16", "i8 i8", "f32 f32", "f16 f16", "bf16 bf16", "i8 i8"),
    *("f8E4M3FN f8E4M3FN", "f8E5M2 f8E4M3FN", "f8E4M3FN f8E5M2", "f16 bf16", "f32 f16"),
)
WIDER = {"f8E4M3FN": ("f16", "f32"), "f8E5M2": ("f16", "bf16", "f32"), "f16": ("f32",),
         "bf16": ("f32",)}  # fmt: skip
ODD = ("mode", "map", "side effect", "attribute", "licence", "op", "fill", "empty", "unused")


@dataclass(frozen=True)
class Tensor:
    """A value of the module: its name, the axes of its dimensions ("mn", "m", …), its elements."""

    name: str
    axes: str
    element: str


@dataclass(frozen=True)
class Problem:
    """A module's text, and how it is to be compiled."""

    text: str
    target: str


class Writer:
    """Writes one module."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.count = 0
        m, n = self.draw.choice(EXTENTS), self.draw.choice(EXTENTS)
        if self.draw.random() < 0.5:
            n = m
        self.extents = {"m": m, "n": n, "k": self.draw.choice(DEPTHS)}
        self.target = self.draw.choice(TARGETS)
        self.odd = self.draw.choice(ODD) if self.draw.random() < 0.15 else ""

    def problem(self) -> Problem:
        """The whole module."""
        result = self.stored(self.epilogue(self.product()))
        names = ", ".join(self.arguments)
        body = "\n".join(f"  {line}" for line in self.lines)
        type_ = self.type(result)
        text = (
            f"func.func @f({names}) -> {type_} {{\n{body}\n  return {result.name} : {type_}\n}}\n"
        )
        return Problem(text, self.target)

    # what every part uses

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def is_odd(self, kind: str) -> bool:
        """Whether this is the odd thing of the module, which happens once."""
        if self.odd != kind or not self.chance(0.6):
            return False
        self.odd = ""
        return True

    def shape(self, axes: str) -> str:
        return "".join(f"{self.extents[axis]}x" for axis in axes)

    def type(self, tensor: Tensor) -> str:
        return f"tensor<{self.shape(tensor.axes)}{tensor.element}>"

    def emit(self, axes: str, element: str, text: str) -> Tensor:
        made = Tensor(self.name(), axes, element)
        self.lines.append(f"{made.name} = {text}")
        return made

    def argument(self, axes: str, element: str) -> Tensor:
        made = Tensor(f"%a{len(self.arguments)}", axes, element)
        text = f"{made.name}: {self.type(made)}"
        again = [each for each in self.arguments if each.endswith(text.partition(":")[2])]
        if again and self.chance(0.2):
            return Tensor(self.draw.choice(again).partition(":")[0], axes, element)
        self.arguments.append(text)
        return made

    def empty(self, axes: str, element: str) -> Tensor:
        return self.emit(axes, element, f"tensor.empty() : tensor<{self.shape(axes)}{element}>")

    def constant(self, element: str) -> str:
        name, value = self.name(), self.draw.choice(CONSTANTS[element])
        self.lines.append(f"{name} = arith.constant {value} : {element}")
        return name

    # the product

    def product(self) -> Tensor:
        elements = self.draw.choice(OPERANDS).split()
        unsigned = self.draw.choice(("", "", "cast_unsigned", "cast_signed"))
        sides = [self.operand("m", elements[0]), self.operand("n", elements[1])]
        if sides[0].element[0] == "f" != sides[1].element[0]:
            sides = [self.widened(side, "f32") for side in sides]
        element = "i32" if elements[0][0] == "i" else "f32"
        maps = [self.draw.choice((side.axes, side.axes)) for side in sides]
        out = "nm" if self.chance(0.1) else "mn"
        zero = "0" if element == "i32" else "0.0"
        if self.is_odd("fill"):
            zero = self.draw.choice(("1", "-1")) + ("" if element == "i32" else ".0")
        fill = self.name()
        self.lines.append(f"{fill} = arith.constant {zero} : {element}")
        into = self.filled(out, element, fill)
        return self.multiplied(sides, maps, into, out, element, unsigned)

    def filled(self, axes: str, element: str, value: str) -> Tensor:
        into = self.empty(axes, element)
        if self.is_odd("empty"):
            return into
        text = f"linalg.fill ins({value} : {element}) outs({into.name} : {self.type(into)})"
        return self.emit(axes, element, f"{text} -> {self.type(into)}")

    def multiplied(self, sides, maps, into, out, element, cast) -> Tensor:
        maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(axes)})>" for axes in (*maps, out))
        attributes = f"indexing_maps = [{maps}]"
        plain = [side.axes for side in sides] == ["mk", "kn"] and out == "mn"
        if plain and self.chance(0.7):
            attributes = ""
        if cast:
            attributes += f" {{cast = #linalg.type_fn<{cast}>}}"
        if self.is_odd("attribute"):
            attributes += " {strange = 3 : i32}"
        op = "linalg.contract" if self.chance(0.04) and not plain else "linalg.matmul"
        ins = ", ".join(side.name for side in sides)
        types = ", ".join(self.type(side) for side in sides)
        text = f"{op} {attributes} ins({ins} : {types})"
        text += f" outs({into.name} : {self.type(into)}) -> {self.type(into)}"
        return self.emit(out, element, text)

    def operand(self, axis: str, element: str) -> Tensor:
        """A function argument, through up to three transposes and casts."""
        axes = self.draw.choice((axis + "k", "k" + axis))
        if self.chance(0.9) and self.wants_k(element):
            axes = axis + "k"
        value = self.argument(axes, element)
        for _ in range(self.draw.choice((0, 0, 1, 1, 2, 3))):
            value = self.draw.choice((self.transposed, self.cast, self.generic_cast))(value)
        if value.element in ("i8", "i16") and self.chance(0.5):
            value = self.cast(value, "i32")
        return value

    def wants_k(self, element: str) -> bool:
        """Whether the MMA reads such operands only with K contiguous."""
        return element == "f32" or (self.target == "sm_90a" and element[1] == "8")

    def transposed(self, value: Tensor) -> Tensor:
        turns = len(value.axes) == 2 and self.chance(0.8)
        axes = value.axes[::-1] if turns else value.axes
        into = self.empty(axes, value.element)
        order = [1, 0] if turns else list(range(len(axes)))
        text = f"linalg.transpose ins({value.name} : {self.type(value)})"
        text += f" outs({into.name} : {self.type(into)}) permutation = {order}"
        return self.emit(axes, value.element, text)

    def cast_op(self, element: str, target: str = "") -> tuple[str, str]:
        """An extension of an operand, and what it gives."""
        if element[0] == "i":
            wide = target or ("i32" if element == "i16" else self.draw.choice(("i16", "i32")))
            return self.draw.choice(("arith.extsi", "arith.extui")), wide
        return "arith.extf", target or self.draw.choice(WIDER[element])

    def cast(self, value: Tensor, target: str = "") -> Tensor:
        if value.element in ("f32", "i32"):
            return value
        op, element = self.cast_op(value.element, target)
        wide = f"tensor<{self.shape(value.axes)}{element}>"
        return self.emit(value.axes, element, f"{op} {value.name} : {self.type(value)} to {wide}")

    def widened(self, value: Tensor, element: str) -> Tensor:
        return value if value.element == element else self.cast(value, element)

    def generic_cast(self, value: Tensor) -> Tensor:
        """A linalg.generic that casts, and may transpose by either map."""
        if value.element in ("f32", "i32"):
            return self.transposed(value)
        op, element = self.cast_op(value.element)
        turns = self.chance(0.5)
        axes = value.axes[::-1] if turns else value.axes
        loops = axes if self.chance(0.5) else value.axes
        into = self.empty(axes, element)
        maps = ", ".join(self.map(loops, each) for each in (value.axes, axes))
        u, v, w = self.name(), self.name(), self.name()
        return self.emit(
            axes,
            element,
            f"""linalg.generic {{indexing_maps = [{maps}],
    iterator_types = ["parallel", "parallel"]}}
    ins({value.name} : {self.type(value)}) outs({into.name} : {self.type(into)}) {{
  ^bb0({u}: {value.element}, {v}: {element}):
    {w} = {op} {u} : {value.element} to {element}
    linalg.yield {w} : {element}
  }} -> {self.type(into)}""",
        )

    def map(self, loops: str, axes: str) -> str:
        dims = [f"d{loops.index(axis)}" for axis in axes]
        if dims and self.is_odd("map"):
            dims[0] = self.draw.choice(("d0", "0", f"d{len(loops) - 1}"))
        every = ", ".join(f"d{i}" for i in range(len(loops)))
        return f"affine_map<({every}) -> ({', '.join(dims)})>"

    # the epilogue

    def epilogue(self, product: Tensor) -> Tensor:
        value, pool = product, [product]
        for _ in range(self.draw.choice((0, 1, 1, 2, 3, 4))):
            value = self.step(value, pool)
            pool.append(value)
        if self.is_odd("side effect"):
            self.lines.append("%truth = arith.constant true")
            self.lines.append('cf.assert %truth, "never"')
        if self.is_odd("unused"):
            self.generic(product, pool)
        return value

    def step(self, value: Tensor, pool: list[Tensor]) -> Tensor:
        kind = self.draw.choice(("generic", "generic", "generic", "op", "op", "turn", "convert"))
        if kind == "generic":
            return self.generic(value, pool)
        if kind == "op":
            return self.elementwise(value, pool)
        if kind == "turn" and self.chance(0.5):
            return self.transposed(value)
        return self.convert(value)

    def stored(self, value: Tensor) -> Tensor:
        """As a tensor that may be returned: [m, n], unless the odd case."""
        if value.axes != "mn" and not self.chance(0.1):
            value = self.transposed_to(value)
        return self.convert(value) if self.chance(0.4) else value

    def transposed_to(self, value: Tensor) -> Tensor:
        into = self.empty("mn", value.element)
        text = f"linalg.transpose ins({value.name} : {self.type(value)})"
        text += f" outs({into.name} : {self.type(into)}) permutation = [1, 0]"
        return self.emit("mn", value.element, text)

    def convert(self, value: Tensor, target: str = "") -> Tensor:
        element = target or self.draw.choice(FLOATS)
        if value.element == element:
            return value
        wide = f"tensor<{self.shape(value.axes)}{element}>"
        mode = f" {self.draw.choice(MODES)}" if self.is_odd("mode") else ""
        op = self.conversion(value.element, element)
        mode = mode if op == "arith.truncf" else ""
        if op is None:
            return self.convert(self.convert(value, "f32"), element)
        text = f"{op} {value.name}{mode} : {self.type(value)} to {wide}"
        return self.emit(value.axes, element, text)

    def conversion(self, source: str, target: str) -> str | None:
        if source == "i32":
            return "arith.sitofp" if target == "f32" or self.chance(0.3) else None
        if target == "f32":
            return "arith.extf"
        return "arith.truncf" if source == "f32" else None

    def other(self, axes: str, element: str, pool: list[Tensor]) -> Tensor:
        """Another tensor of the same shape and elements: residual, constant, or an earlier one."""
        earlier = [each for each in pool if (each.axes, each.element) == (axes, element)]
        kind = self.draw.choice(("argument", "constant", "earlier", "row"))
        if kind == "earlier" and earlier:
            return self.draw.choice(earlier)
        if kind == "constant":
            value = self.draw.choice(CONSTANTS[element])
            type_ = f"tensor<{self.shape(axes)}{element}>"
            return self.emit(axes, element, f"arith.constant dense<{value}> : {type_}")
        if kind == "row":
            return self.broadcast(axes, element)
        return self.argument(axes, element)

    def broadcast(self, axes: str, element: str) -> Tensor:
        kept = self.draw.randrange(2)
        vector = self.argument(axes[kept], element)
        if element in FLOATS and self.chance(0.4):
            vector = self.convert(self.argument(axes[kept], self.draw.choice(FLOATS)), element)
        into = self.empty(axes, element)
        text = f"linalg.broadcast ins({vector.name} : {self.type(vector)})"
        text += f" outs({into.name} : {self.type(into)}) dimensions = [{1 - kept}]"
        return self.emit(axes, element, text)

    def elementwise(self, value: Tensor, pool: list[Tensor]) -> Tensor:
        """One op on tensors."""
        type_ = self.type(value)
        if value.element == "i32":
            other = self.other(value.axes, "i32", pool)
            op = "arith.subi" if self.is_odd("op") else "arith.addi"
            return self.emit(value.axes, "i32", f"{op} {value.name}, {other.name} : {type_}")
        licence = " fastmath<nnan,contract>" if self.is_odd("licence") else ""
        if self.chance(0.4):
            op = "math.atan" if self.is_odd("op") else self.draw.choice(UNARY)
            return self.emit(value.axes, value.element, f"{op} {value.name}{licence} : {type_}")
        both = [value.name, self.other(value.axes, value.element, pool).name]
        self.draw.shuffle(both)
        op = self.draw.choice(BINARY)
        text = f"{op} {', '.join(both)}{licence} : {type_}"
        return self.emit(value.axes, value.element, text)

    def generic(self, value: Tensor, pool: list[Tensor]) -> Tensor:
        """A linalg.generic of up to four inputs, with a random graph of scalar ops."""
        inputs = [value]
        for _ in range(self.draw.choice((0, 0, 1, 2, 3))):
            inputs.append(self.generic_input(value, pool))
        self.draw.shuffle(inputs)
        loops = value.axes if self.chance(0.8) else value.axes[::-1]
        out = value.axes if self.chance(0.85) else value.axes[::-1]
        element = self.draw.choice(FLOATS)
        if value.element == "i32" and self.chance(0.3):
            element = "i32"
        into = self.empty(out, element)
        maps = ", ".join(self.map(loops, each.axes) for each in (*inputs, into))
        scalars = [(self.name(), each.element) for each in inputs]
        kind = self.draw.choice(("f32", "bf16", "i32"))
        outer = [(self.constant(kind), kind)]
        arguments = ", ".join(f"{name}: {kind}" for name, kind in scalars)
        last = self.name()
        body = Body(self, [*scalars, *outer] if element != "i32" else scalars)
        used = next(scalar for scalar, each in zip(scalars, inputs, strict=True) if each is value)
        result = body.result(used, element)
        names = ", ".join(each.name for each in inputs)
        types = ", ".join(self.type(each) for each in inputs)
        return self.emit(
            out,
            element,
            f"""linalg.generic {{indexing_maps = [{maps}],
    iterator_types = ["parallel", "parallel"]}}
    ins({names} : {types}) outs({into.name} : {self.type(into)}) {{
  ^bb0({arguments}, {last}: {element}):
{body.text()}
    linalg.yield {result} : {element}
  }} -> {self.type(into)}""",
        )

    def generic_input(self, value: Tensor, pool: list[Tensor]) -> Tensor:
        axes = self.draw.choice((value.axes, value.axes[::-1], value.axes[0], value.axes[1]))
        known = [each for each in pool if each.axes == axes]
        if known and self.chance(0.4):
            return self.draw.choice(known)
        element = "i32" if value.element == "i32" and self.chance(0.6) else self.draw.choice(FLOATS)
        return self.argument(axes, element)


def random_problem(seed: int) -> Problem:
    """The module of a seed; one in ten multiplies by scales of blocks."""
    return scaled_problem(seed) if seed % 10 == 9 else Writer(seed).problem()


def scaled_problem(seed: int) -> Problem:
    """A product of elements and scales of any formats that go together, in any form; as often as
    not with what follows."""
    draw = random.Random(f"scaled {seed}")
    a = draw.choice(tuple(ELEMENTS))
    b = draw.choice([each for each in ELEMENTS if (each == "nvfp4") == (a == "nvfp4")])
    coarse = "128" in f"{a} {b}"  # whose scales are in no atoms
    block = 16 if a == "nvfp4" else 128 if coarse else 32
    m, n, k = (draw.randint(1, 150), draw.randint(1, 60), block * draw.randint(1, 260 // block))
    majors = [draw.choice("kkm") if each.startswith("mxfp8") else "k" for each in (a, b)]
    how = {"form": draw.choice(FORMS), "layout": draw.choice(("blocked", "linear"))}
    how |= {"layout": "linear"} if coarse else {}
    c = draw.choice(("f32", "bf16", "f16"))
    b_major = "n" if majors[1] == "m" else "k"
    after = after_sums(Writer(seed), m, n, c) if draw.random() < 0.5 else ("", "")
    text = scaled_text(m, n, k, a, b, c=c, a_major=majors[0], b_major=b_major, after=after, **how)
    return Problem(text, "sm_100a")
