"""Text of linalg that multiplies elements by the scales of their blocks, in several forms."""

from dataclasses import dataclass

ELEMENTS = {
    "mxfp8": "f8E4M3FN", "mxfp8_e5m2": "f8E5M2", "mxfp6": "f6E2M3FN", "mxfp6_e3m2": "f6E3M2FN",
    "mxfp4": "f4E2M1FN", "nvfp4": "f4E2M1FN", "1x128": "f8E4M3FN", "128x128": "f8E4M3FN",
}  # fmt: skip
FORMS = ("fused", "products", "broadcast")
"""One linalg.generic of everything; elements times scales, then linalg.matmul; the same of scales
that are broadcast first."""


@dataclass(frozen=True)
class Side:
    """An operand: its name, its axis, and what its arguments are."""

    name: str
    axis: str
    format: str
    rows: int
    k: int
    major: str
    layout: str

    @property
    def block(self):
        return 16 if self.format == "nvfp4" else 128 if "128" in self.format else 32

    @property
    def shared_rows(self):
        return 128 if self.format == "128x128" else 1

    @property
    def stored(self):
        shape = [self.rows, self.k] if self.major == "k" else [self.k, self.rows]
        return f"tensor<{shape[0]}x{shape[1]}x{ELEMENTS[self.format]}>"

    @property
    def place(self):
        return f"({self.axis}, k)" if self.major == "k" else f"(k, {self.axis})"

    @property
    def scale(self):
        return "f8E4M3FN" if self.format == "nvfp4" else "f8E8M0FNU"

    @property
    def scales(self):
        blocks = self.k // self.block
        rows = -(-self.rows // self.shared_rows)
        linear, atoms = f"{rows}x{blocks}", f"{-(-self.rows // 128)}x{-(-blocks // 4)}x32x4x4"
        return f"tensor<{linear if self.layout == 'linear' else atoms}x{self.scale}>"

    @property
    def scale_place(self):
        r, kb = self.axis, f"k floordiv {self.block}"
        if self.layout == "linear":
            return f"({r if self.shared_rows == 1 else f'{r} floordiv 128'}, {kb})"
        across = f"k floordiv {4 * self.block}"
        return f"({r} floordiv 128, {across}, {r} mod 32, ({r} floordiv 32) mod 4, ({kb}) mod 4)"

    def number(self, element, scale):
        """The lines of a body that make %<name> of an element and its scale."""
        wide = f"%{self.name}_u = arith.extf {scale} : {self.scale} to f32"
        if self.scale == "f8E4M3FN":  # a tensor core reads no sign
            wide = wide.replace("_u =", "_v =") + f"\n    %{self.name}_u = math.absf %{self.name}_v"
            wide += " : f32"
        return f"""%{self.name}_x = arith.extf {element} : {ELEMENTS[self.format]} to f32
    {wide}
    %{self.name}_p = arith.mulf %{self.name}_x, %{self.name}_u : f32"""

    def wide(self, form):
        """Ops that make %w<name> [rows, k] of the arguments."""
        n, plain, wide = self.name, f"affine_map<({self.axis}, k) -> ", f"{self.rows}x{self.k}"
        scales, type_, at, ops = f"%s{n}", self.scales, self.scale_place, ""
        if form == "broadcast":
            scales, type_ = f"%t{n}", f"tensor<{wide}x{self.scale}>"
            ops = f"""
  %e{n} = tensor.empty() : {type_}
  %t{n} = linalg.generic {{indexing_maps = [{plain}{at}>, {plain}({self.axis}, k)>],
    iterator_types = ["parallel", "parallel"]}} ins(%s{n} : {self.scales}) outs(%e{n} : {type_}) {{
  ^bb0(%s: {self.scale}, %o: {self.scale}):
    linalg.yield %s : {self.scale}
  }} -> {type_}"""
            at = f"({self.axis}, k)"
        return f"""{ops}
  %f{n} = tensor.empty() : tensor<{wide}xf32>
  %w{n} = linalg.generic {{indexing_maps = [{plain}{self.place}>, {plain}{at}>,
      {plain}({self.axis}, k)>], iterator_types = ["parallel", "parallel"]}}
    ins(%{n}, {scales} : {self.stored}, {type_}) outs(%f{n} : tensor<{wide}xf32>) {{
  ^bb0(%x: {ELEMENTS[self.format]}, %s: {self.scale}, %o: f32):
    {self.number("%x", "%s")}
    linalg.yield %{n}_p : f32
  }} -> tensor<{wide}xf32>"""


def scaled_text(
    m, n, k, a="mxfp8", b="", *, form="fused", layout="blocked", c="f32", a_major="k", b_major="k",
    after=("", ""),
):  # fmt: skip
    """The module of C[m,n] = (a · scales)[m,k] · (b · scales)[n,k]ᵀ in a form of `FORMS`; `after`:
    further arguments, and ops that make %c of %sum."""
    one = Side("a", "m", a, m, k, a_major, layout)
    other = Side("b", "n", b or a, n, k, b_major, layout)
    sums = f"tensor<{m}x{n}xf32>"
    body = _fused(one, other, sums) if form == "fused" else _steps(one, other, sums, form)
    more, result = after
    if c != "f32" and not result:
        result = f"\n  %c = arith.truncf %sum : {sums} to tensor<{m}x{n}x{c}>"
    arguments = f"%a: {one.stored}, %b: {other.stored}, %sa: {one.scales}, %sb: {other.scales}"
    arguments += more
    return f"""func.func @f({arguments}) -> tensor<{m}x{n}x{c}> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}{body}{result}
  return {"%c" if result else "%sum"} : tensor<{m}x{n}x{c}>
}}
"""


def _fused(one, other, sums):
    loops = "affine_map<(m, n, k) -> "
    maps = ",\n    ".join(
        f"{loops}{place}>"
        for place in (one.place, one.scale_place, other.place, other.scale_place, "(m, n)")
    )
    return f"""
  %sum = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel", "reduction"]}}
    ins(%a, %sa, %b, %sb : {one.stored}, {one.scales}, {other.stored}, {other.scales})
    outs(%init : {sums}) {{
  ^bb0(%x: {ELEMENTS[one.format]}, %s: {one.scale},
       %y: {ELEMENTS[other.format]}, %t: {other.scale}, %o: f32):
    {one.number("%x", "%s")}
    {other.number("%y", "%t")}
    %p = arith.mulf %a_p, %b_p : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  }} -> {sums}"""


def _steps(one, other, sums, form):
    loops = "affine_map<(m, n, k) -> "
    return f"""{one.wide(form)}{other.wide(form)}
  %sum = linalg.matmul indexing_maps = [{loops}(m, k)>, {loops}(n, k)>, {loops}(m, n)>]
    ins(%wa, %wb : tensor<{one.rows}x{one.k}xf32>, tensor<{other.rows}x{one.k}xf32>)
    outs(%init : {sums}) -> {sums}"""
