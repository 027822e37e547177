"""Bodies of linalg.generic for random modules: graphs of scalar ops."""

from __future__ import annotations

from typing import Any

CONSTANTS = {
    "f32": ("0.0", "-0.0", "1.0", "-2.5", "0.1", "3.14159265", "1.0e-8", "65504.0", "3.0e38",
            "1.0e-40", "0x7F800000", "0xFF800000", "0x7FC00000", "-7.7e-3"),
    "bf16": ("0.0", "-0.0", "1.0", "-2.5", "0.1", "3.0e38", "0x7F80", "0xFF80", "0x7FC0", "0x0001"),
    "f16": ("0.0", "-0.0", "1.0", "-2.5", "0.1", "65504.0", "0x7C00", "0xFC00", "0x7E00", "0x0001"),
    "i32": ("0", "1", "-1", "2147483647", "-2147483648", "12345"),
}  # fmt: skip
UNARY = ("arith.negf", "math.absf", "math.exp", "math.exp2", "math.tanh", "math.erf", "math.sqrt",
         "math.rsqrt", "math.log", "math.log2", "math.log10", "math.log1p", "math.floor",
         "math.ceil", "math.trunc", "math.round", "math.roundeven")  # fmt: skip
BINARY = ("arith.addf", "arith.addf", "arith.subf", "arith.mulf", "arith.mulf", "arith.divf",
          "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")  # fmt: skip
PREDICATES = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
              "une", "uno", "true", "false")  # fmt: skip
STEPS = ("unary", "binary", "binary", "binary", "select", "fma", "narrow", "power")
FLOATS = ("f32", "bf16", "f16")
MODES = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")


class Body:
    """The scalar ops of a linalg.generic: a graph in which values are used more than once.

    `writer` writes the module: it draws, names values and says what shall be odd.
    """

    def __init__(self, writer: Any, values: list[tuple[str, str]]):
        self.writer, self.draw = writer, writer.draw
        self.values = values
        self.lines: list[str] = []

    def text(self) -> str:
        return "\n".join(f"    {line}" for line in self.lines)

    def emit(self, element: str, text: str) -> str:
        name = self.writer.name()
        self.lines.append(f"{name} = {text}")
        self.values.append((name, element))
        return name

    def result(self, first: tuple[str, str], element: str) -> str:
        """A value of the wanted type that depends on `first`."""
        if element == "i32":
            return self.integers(first)
        work = "f32" if self.draw.random() < 0.7 else element
        value = self.converted(first, work)
        for _ in range(self.draw.choice((0, 1, 2, 3, 5))):
            value = self.step(value, work)
        return self.converted((value, work), element)

    def integers(self, first: tuple[str, str]) -> str:
        value = first[0]
        known = [name for name, kind in self.values if kind == "i32"]
        for _ in range(self.draw.choice((1, 2))):
            value = self.emit("i32", f"arith.addi {value}, {self.draw.choice(known)} : i32")
        return value

    def converted(self, value: tuple[str, str], element: str) -> str:
        name, source = value
        if source == element:
            return name
        if source == "i32":
            single = self.emit("f32", f"arith.sitofp {name} : i32 to f32")
            return self.converted((single, "f32"), element)
        if element == "f32":
            return self.emit("f32", f"arith.extf {name} : {source} to f32")
        if source != "f32":
            return self.converted((self.converted(value, "f32"), "f32"), element)
        mode = f" {self.draw.choice(MODES)}" if self.writer.is_odd("mode") else ""
        return self.emit(element, f"arith.truncf {name}{mode} : f32 to {element}")

    def another(self, element: str) -> str:
        """Any value of the graph, or a constant, as `element`."""
        if self.draw.random() < 0.4:
            value = self.draw.choice(CONSTANTS[element])
            return self.emit(element, f"arith.constant {value} : {element}")
        return self.converted(self.draw.choice(self.values), element)

    def step(self, value: str, element: str) -> str:
        kind = self.draw.choice(STEPS)
        licence = " fastmath<fast>" if self.writer.is_odd("licence") else ""
        if kind == "unary":
            op = "math.atan" if self.writer.is_odd("op") else self.draw.choice(UNARY)
            return self.emit(element, f"{op} {value}{licence} : {element}")
        if kind == "binary":
            both = [value, self.another(element)]
            self.draw.shuffle(both)
            op = self.draw.choice(BINARY)
            return self.emit(element, f"{op} {', '.join(both)}{licence} : {element}")
        if kind == "fma":
            three = [value, self.another(element), self.another(element)]
            self.draw.shuffle(three)
            return self.emit(element, f"math.fma {', '.join(three)} : {element}")
        if kind == "narrow":
            kind = self.draw.choice(FLOATS[1:])
            return self.converted((self.converted((value, element), kind), kind), element)
        if kind == "power":
            exponent = self.draw.choice((1, 2, 3, 4, 8, 9))
            count = self.emit("index", f"arith.constant {exponent} : i32")
            self.values.pop()
            return self.emit(element, f"math.fpowi {value}, {count} : {element}, i32")
        return self.selected(value, element)

    def selected(self, value: str, element: str) -> str:
        truth = self.writer.name()
        predicate = self.draw.choice(PREDICATES)
        left, right = value, self.another(element)
        self.lines.append(f"{truth} = arith.cmpf {predicate}, {left}, {right} : {element}")
        both = [value, self.another(element)]
        self.draw.shuffle(both)
        return self.emit(element, f"arith.select {truth}, {', '.join(both)} : {element}")


def after_sums(writer: Any, m: int, n: int, c: str) -> tuple[str, str]:
    """Arguments as long as a row or a column of C, or as large as it, and one generic of a random
    body that makes C of them and of the sums."""
    draw, shapes = writer.draw, {"m": f"{m}", "n": f"{n}", "m, n": f"{m}x{n}"}
    read = [(draw.choice(tuple(shapes)), draw.choice(FLOATS)) for _ in range(draw.randint(0, 2))]
    inputs = [(f"%i{at}", f"tensor<{shapes[axes]}x{kind}>") for at, (axes, kind) in enumerate(read)]
    body = Body(writer, [("%v", "f32"), *[(f"%b{at}", kind) for at, (_, kind) in enumerate(read)]])
    result = body.result(("%v", "f32"), c)
    maps = [f"affine_map<(m, n) -> ({axes})>" for axes in ("m, n", *(a for a, _ in read), "m, n")]
    names = ", ".join(("%sum", *(name for name, _ in inputs)))
    types = ", ".join((f"tensor<{m}x{n}xf32>", *(type_ for _, type_ in inputs)))
    scalars = "".join(f", %b{at}: {kind}" for at, (_, kind) in enumerate(read))
    made = f"tensor<{m}x{n}x{c}>"
    ops = f"""
  %e = tensor.empty() : {made}
  %c = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = ["parallel", "parallel"]}} ins({names} : {types}) outs(%e : {made}) {{
  ^bb0(%v: f32{scalars}, %o: {c}):
{body.text()}
    linalg.yield {result} : {c}
  }} -> {made}"""
    return "".join(f", {name}: {type_}" for name, type_ in inputs), ops
