"""The matmul a user asks for, and the linalg module that says the same; imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ...dialects.dtypes import (
    ACCUMULATOR_DTYPES,
    DTYPES,
    FMA,
    OPERAND_DTYPES,
    OUTPUT_DTYPES,
    SCALED_FORMATS,
    blocked_scale_shape,
    mix_refusal,
    output_refusal,
    scaled_mix_refusal,
    size_refusal,
)
from ...dialects.errors import OptionError
from .dual_text import dual_text
from .epilogue import Epilogue
from .grouped import grouped_refusal, grouped_text
from .memory import Stored

EXTENT_MAX = 2**31 - 1
FURTHER_MAX = 8
SPEC_DTYPES = (*OPERAND_DTYPES, *SCALED_FORMATS)
BLOCKED, LINEAR = "blocked", "linear"
OF_BATCHES = ("batch", "a_stacked", "b_stacked")
OF_OUTPUTS = ("further", "neighbours")
OF_SCALES = ("scale_layout",)
OF_GROUPS = ("groups",)
OF_PRODUCTS = ("products",)
ROWS_HINT = 4096
"""The M that a schedule is chosen for where only the launch says one."""
ANY = "?"
OF_GAPS = ("lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c")


@dataclass(frozen=True)
class MatmulSpec:
    """C[M,N] = A[M,K] · B[N,K]ᵀ with static shapes, or of each of `batch` such matrices.

    With `dynamic_m` the kernel takes any M, and each launch says it; `m` is a hint, the M that the
    schedule is chosen for. A dynamic M is that of one matrix, which has K contiguous.

    `a_major` is "k" (A stored M×K) or "m" (stored K×M). `b_major` is "k" (B stored N×K) or "n"
    (stored K×N). C is stored M×N. With a `batch` C is a stack of as many matrices, one after the
    other, and so is each of A and B unless it is one matrix that all share (`a_stacked`,
    `b_stacked`). A batch of 0 means that there is none.

    `lda`, `ldb` and `ldc` are leading dimensions, elements from a stored row to the next, and
    `stride_a`, `stride_b` and `stride_c` the elements from a matrix of a stack to the next. 0 means
    that there is no gap.

    Types have the names of `dialects.dtypes`. Operands of tf32 are f32 in memory, multiplied by a
    tensor core; those of f32 and f64 are multiplied as they are, by the threads' fma. Two types of
    8 bits may differ if both are floats or both are integers. Sums of integers are s32, and so may
    C be; sums of f64 are f64, and so is C.

    `further` are the types of further outputs, each as large as C: the sums converted to that type,
    unless an epilogue makes them. `neighbours` is how many in a row of C an epilogue reduces to one
    element of an output; tiles are whole such groups.
    With `groups` the rows of A and C are cut into as many, by offsets that the kernel takes, and B
    is a stack with a matrix for each.
    With two `products` the kernel takes a second B, as the first, and C is made of A's products
    with both: one times the other, unless an epilogue makes it.

    A and B of `SCALED_FORMATS`, such as mxfp8, have block scales beside them: values are elements
    times scales. `scale_layout` is how they lie, "blocked" or "linear". Raises `OptionError` if the
    matmul cannot be built.
    """

    m: int
    n: int
    k: int
    a_dtype: str = "bf16"
    b_dtype: str = "bf16"
    c_dtype: str = "bf16"
    acc_dtype: str = "f32"
    a_major: str = "k"
    b_major: str = "k"
    batch: int = 0
    a_stacked: bool = True
    b_stacked: bool = True
    further: tuple[str, ...] = ()
    neighbours: int = 0
    scale_layout: str = BLOCKED
    groups: int = 0
    dynamic_m: bool = False
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    stride_a: int = 0
    stride_b: int = 0
    stride_c: int = 0
    products: int = 1

    @staticmethod
    def of_type(m: int, n: int, k: int, dtype: str) -> MatmulSpec:
        """Operands of one type with K contiguous, and a C of the type that goes with it."""
        if dtype not in OPERAND_DTYPES:
            known = ", ".join(OPERAND_DTYPES)
            raise OptionError(f"spec: type must be one of {known}, got {dtype!r}")
        found = DTYPES[dtype]
        return MatmulSpec(m, n, k, dtype, dtype, found.result, found.accumulator)

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            extent = getattr(self, name)
            if type(extent) is not int or not 1 <= extent <= EXTENT_MAX:
                raise OptionError(f"spec: {name} must be 1 to {EXTENT_MAX}, got {extent!r}")
        if type(self.batch) is not int or not 0 <= self.batch <= EXTENT_MAX:
            raise OptionError(f"spec: batch must be 0 to {EXTENT_MAX}, got {self.batch!r}")
        if not (self.a_stacked or self.b_stacked):
            raise OptionError("spec: a or b must be a stack, got none; multiply once")
        self._check("a_dtype", SPEC_DTYPES)
        self._check("b_dtype", SPEC_DTYPES)
        self._check("c_dtype", OUTPUT_DTYPES)
        self._check_further()
        self._check("acc_dtype", ACCUMULATOR_DTYPES)
        self._check("a_major", ("k", "m"))
        self._check("b_major", ("k", "n"))
        self._check("scale_layout", (BLOCKED, LINEAR) if self.is_scaled else (BLOCKED,))
        self._check_types()
        broken = grouped_refusal(
            self.groups, self.batch, self.is_scaled, self.a_major, self.further
        )
        if broken:
            raise OptionError(f"spec: {broken}")
        if self.dynamic_m:
            self._check_dynamic()
        self._check_products()
        if self.is_scaled:
            self._check_scales()
        self._check_memory()
        self._check_bytes()

    @property
    def is_scaled(self) -> bool:
        """Whether A and B have block scales."""
        return self.a_dtype in SCALED_FORMATS

    def _check_products(self) -> None:
        """Of which types and forms a kernel adds up two products."""
        if self.products not in (1, 2):
            raise OptionError(f"spec: products must be 1 or 2, got {self.products!r}")
        wanted = {"groups": 0, "is_scaled": False, "dynamic_m": False, "acc_dtype": "f32"}
        for name, value in wanted.items():
            if self.products == 2 and getattr(self, name) != value:
                rule = f"two products must come with {name.removeprefix('is_')} = {value!r}"
                raise OptionError(f"spec: {rule}, got {getattr(self, name)!r}; multiply twice")

    def _check_dynamic(self) -> None:
        """Of which products a kernel takes any M."""
        wanted = {"a_major": "k", "batch": 0, "groups": 0, "is_scaled": False}
        for name, value in wanted.items():
            if getattr(self, name) != value:
                rule = f"a dynamic m must come with {name.removeprefix('is_')} = {value!r}"
                raise OptionError(f"spec: {rule}, got {getattr(self, name)!r}; give m a number")

    def _check_scales(self) -> None:
        """Whole blocks along K, which is contiguous where several elements share bytes."""
        block = SCALED_FORMATS[self.a_dtype].block
        if self.k % block:
            rule = f"k must be a multiple of the {block} elements that share a scale"
            raise OptionError(f"spec: {rule} in {self.a_dtype}, got {self.k}; pad K")
        for name, major in (("a", self.a_major), ("b", self.b_major)):
            dtype = getattr(self, f"{name}_dtype")
            bits = DTYPES[element_of(dtype)].bits
            if bits < 8 and major != "k":
                rule = f"{name}_major must be 'k' for {dtype}, whose elements share bytes"
                raise OptionError(f"spec: {rule}, got {major!r}; transpose it before the kernel")
            if self.k * bits % 8:
                raise OptionError(f"spec: k must be whole bytes of {dtype}, got {self.k}; pad K")

    def _check_memory(self) -> None:
        """Rows of at least their elements, and matrices that do not share any."""
        for name, stored in self.stored().items():
            leading, step = getattr(self, f"ld{name}"), getattr(self, f"stride_{name}")
            *stack, rows, columns = stored.shape
            if type(leading) is not int or (leading and leading < columns):
                rule = f"ld{name} must be 0, or at least the {columns} elements of a row"
                raise OptionError(f"spec: {rule}, got {leading!r}")
            if type(step) is not int or (step and not (stack and stored.is_apart)):
                rule = f"stride_{name} must be 0, or keep {rows}x{columns} matrices apart"
                raise OptionError(f"spec: {rule}, got {step!r}")
            if (self.is_scaled or self.groups) and not stored.is_dense:
                what = "groups" if self.groups else "operands with block scales"
                rule = f"ld{name} must be 0 for {what}"
                raise OptionError(f"spec: {rule}, got {leading}; copy it before the kernel")

    def _check_bytes(self) -> None:
        for name, stored in self.stored().items():
            dtype = element_of(getattr(self, f"{name}_dtype"))
            extents = stored.shape if stored.is_dense else stored.spanned
            reason = size_refusal(extents, DTYPES[dtype].bytes)
            if reason:
                raise OptionError(f"spec: {name} {reason}")

    def _check_types(self) -> None:
        """What an MMA takes together, and what it gives."""
        a, b = (DTYPES[element_of(dtype)] for dtype in (self.a_dtype, self.b_dtype))
        if {self.a_dtype, self.b_dtype} & SCALED_FORMATS.keys():
            mixed = scaled_mix_refusal(self.a_dtype, self.b_dtype)
        else:
            mixed = mix_refusal(a, b)
        if mixed:
            raise OptionError(f"spec: a_dtype and b_dtype {mixed}")
        if self.acc_dtype != a.accumulator:
            raise OptionError(
                f"spec: acc_dtype must be {a.accumulator} for {a.name}, got {self.acc_dtype}"
            )
        for name, dtype in (("c_dtype", self.c_dtype), *(("further", e) for e in self.further)):
            result = output_refusal(self.acc_dtype, dtype)
            if result:
                raise OptionError(f"spec: {name} {result}")

    def _check_further(self) -> None:
        """Types of C; of a manifest, in whose JSON they are a list, a tuple."""
        if not isinstance(self.further, tuple):
            object.__setattr__(self, "further", tuple(self.further))
        unknown = [each for each in self.further if each not in OUTPUT_DTYPES]
        if unknown:
            known = ", ".join(OUTPUT_DTYPES)
            raise OptionError(f"spec: further must be of {known}, got {unknown[0]!r}")
        if len(self.further) > FURTHER_MAX:
            got = len(self.further)
            raise OptionError(f"spec: further must be at most {FURTHER_MAX} outputs, got {got}")

    def _check(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise OptionError(f"spec: {name} must be one of {', '.join(choices)}, got {value!r}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The sizes of A, B and C, K the last one of A and B however they are stored."""
        matrices = {"a": (self.m, self.k), "b": (self.n, self.k), "c": (self.m, self.n)}
        if self.groups:
            return {**matrices, "b": (self.groups, *matrices["b"])}
        stacked = {"a": self.a_stacked, "b": self.b_stacked, "c": True}
        return {
            name: (self.batch, *sizes) if self.batch and stacked[name] else sizes
            for name, sizes in matrices.items()
        }

    def stored(self) -> dict[str, Stored]:
        """How A, B and C lie: their sizes as they are stored, with what is between rows."""
        shapes = self.shapes()
        turned = {"a": self.a_major == "m", "b": self.b_major == "n", "c": False}
        return {
            name: Stored(
                (*shape[:-2], *(shape[:-3:-1] if turned[name] else shape[-2:])),
                getattr(self, f"ld{name}"),
                getattr(self, f"stride_{name}"),
            )
            for name, shape in shapes.items()
        }

    def arrays(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """What the kernel takes: the element type and the sizes of each array in memory.

        An array of packed elements is one of bytes.
        """
        found = {}
        for name, shape in self.shapes().items():
            dtype = element_of(getattr(self, f"{name}_dtype"))
            k = shape[-1] * DTYPES[dtype].bits // 8 if DTYPES[dtype].bits < 8 else shape[-1]
            found[name] = dtype, (*shape[:-1], k)
        c = found.pop("c")
        if self.groups:
            found["offsets"] = "s32", (self.groups,)
        for name, shape in scale_shapes(self).items():
            found[name] = SCALED_FORMATS[self.a_dtype].scale, shape
        if self.products == 2:
            found["b2"] = found["b"]
        further = {f"c{n}": (dtype, c[1]) for n, dtype in enumerate(self.further, 1)}
        return {**found, "c": c, **further}

    def as_dict(self) -> dict[str, Any]:
        """The fields by name; those of a batch, outputs, linear scales, a dynamic m and gaps where
        they are."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        found["further"] = list(self.further)
        absent = [
            *(OF_BATCHES if not self.batch else ()),
            *(OF_OUTPUTS if not self.further else ()),
            *(OF_SCALES if self.scale_layout == BLOCKED else ()),
            *(OF_GROUPS if not self.groups else ()),
            *(OF_PRODUCTS if self.products == 1 else ()),
            *(() if self.dynamic_m else ("dynamic_m",)),
            *(name for name in OF_GAPS if not found[name]),
        ]
        return {name: value for name, value in found.items() if name not in absent}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The types of all outputs, C's first."""
        return self.c_dtype, *self.further

    def mlir_text(self, epilogue: Epilogue | None = None) -> str:
        """The module that computes this matmul: linalg on tensors, or a `tile.scaled_matmul`.

        epilogue: makes C of the sums, instead of the conversion to C's type.
        """
        reduces = epilogue is not None and any(epilogue.reductions)
        if reduces and (self.groups or self.dynamic_m):
            rule = "reductions are of matrices of known sizes, or stacks"
            raise OptionError(f"spec: {rule}, got groups or any M; reduce outside")
        if self.is_scaled or reduces:
            return product_text(self, epilogue)
        if self.groups:
            return self._grouped_text(epilogue)
        if self.products == 2:
            return dual_text(self, epilogue)
        shapes: dict[str, Any] = dict(self.shapes())
        rows, empty = "", ""
        if self.dynamic_m:
            shapes |= {"a": (ANY, self.k), "c": (ANY, self.n)}
        a = _Operand.of("a", "m", shapes["a"], self.a_dtype, self.a_major, self.batch)
        b = _Operand.of("b", "n", shapes["b"], self.b_dtype, self.b_major, self.batch)
        if self.dynamic_m:
            empty, rows = "%rows", "%at = arith.constant 0 : index\n  "
            rows += f"%rows = tensor.dim %a, %at : {a.stored}\n  "
        sums = DTYPES[self.acc_dtype].mlir
        sizes = "x".join(map(str, shapes["c"]))
        accumulator = f"tensor<{sizes}x{sums}>"
        elements = [DTYPES[dtype].mlir for dtype in self.outputs]
        types = [f"tensor<{sizes}x{element}>" for element in elements]
        taken = ""
        if epilogue is None:
            made = [self._conversion(f"tensor<{sizes}x", *each) for each in enumerate(self.outputs)]
            conversion = "\n  ".join(line for lines, _ in made for line in lines)
            result = ", ".join(name for _, name in made)
        else:
            conversion = epilogue.generic(shapes["c"], sums, elements)
            result = ", ".join(epilogue.results("%c"))
            taken = "".join(f", {each}" for each in epilogue.arguments())
        op = "batch_matmul" if self.batch else "matmul"
        gaps = {name: stored.layout for name, stored in self.stored().items()}
        returned = _returned([types[0] + gaps["c"], *types[1:]])
        function = f"""
func.func @matmul(%a: {a.stored}{gaps["a"]}, %b: {b.stored}{gaps["b"]}{taken}) -> {returned} {{
  {rows}%zero = arith.constant {"0" if sums == "i32" else "0.0"} : {sums}
  %empty = tensor.empty({empty}) : {accumulator}
  %init = linalg.fill ins(%zero : {sums}) outs(%empty : {accumulator}) -> {accumulator}
  {a.extension}{b.extension}%sum = linalg.{op}
    indexing_maps = [{a.map}, {b.map}, {_map(self.batch, "mn")}]
    ins({a.name}, {b.name} : {a.type}, {b.type}) outs(%init : {accumulator}) -> {accumulator}
  {conversion}
  return {result} : {", ".join(types)}
}}
"""
        if DTYPES[self.a_dtype].operand_kind != FMA:
            return function
        return f'module attributes {{tile.mma_unit = "{FMA}"}} {{{function}}}\n'

    def _grouped_text(self, epilogue: Epilogue | None) -> str:
        """The module of a `tile.grouped_matmul`."""
        stored = {**self.shapes(), "offsets": (self.groups,)}
        if self.b_major == "n":
            stored["b"] = (self.groups, self.k, self.n)
        dtypes = {"a": self.a_dtype, "b": self.b_dtype, "c": self.c_dtype, "offsets": "s32"}
        types = {name: _tensor([*stored[name]], DTYPES[dtypes[name]].mlir) for name in stored}
        elements = DTYPES[self.acc_dtype].mlir, DTYPES[self.c_dtype].mlir
        text = grouped_text(types, self.b_major, epilogue, elements)
        if DTYPES[self.a_dtype].operand_kind != FMA:
            return text
        return f'module attributes {{tile.mma_unit = "{FMA}"}} {{{text}}}\n'

    def _conversion(self, shape: str, number: int, wanted: str) -> tuple[list[str], str]:
        """The ops that make an output of the sums, tensors of `shape`, and the result's name."""
        lines, name, dtype = [], "%sum", DTYPES[self.acc_dtype].mlir
        mark = number or ""
        if dtype == "i32" and wanted != "s32":
            lines.append(f"%float{mark} = arith.sitofp {name} : {shape}i32> to {shape}f32>")
            name, dtype = f"%float{mark}", "f32"
        if dtype == "f32" and wanted != "f32":
            element = DTYPES[wanted].mlir
            lines.append(f"%c{mark} = arith.truncf {name} : {shape}f32> to {shape}{element}>")
            name = f"%c{mark}"
        return lines, name


@dataclass(frozen=True)
class _Operand:
    """Text about an operand: its name and type as linalg.matmul takes it, its indexing map, the
    type of the argument, and the op that makes the one of the other."""

    name: str
    type: str
    map: str
    stored: str
    extension: str = ""

    @staticmethod
    def of(
        name: str, axis: str, sizes: tuple[Any, ...], dtype: str, major: str, batch: int
    ) -> _Operand:
        """Operand `name` of sizes (M or N, K), or those of a stack; `axis` is "m" or "n"."""
        *stack, mn, k = sizes
        shape, axes = ([mn, k], axis + "k") if major == "k" else ([k, mn], "k" + axis)
        element = DTYPES[dtype]
        stored = _tensor([*stack, *shape], "i8" if element.is_integer else element.mlir)
        value, extension, type_ = f"%{name}", "", stored
        if element.is_integer:
            type_ = _tensor([*stack, *shape], "i32")
            cast = "extui" if element.name == "u8" else "extsi"
            extension = f"{value}_wide = arith.{cast} {value} : {stored} to {type_}\n  "
            value = f"{value}_wide"
        if batch and not stack:
            matrix, type_ = type_, _tensor([batch, *shape], type_[:-1].split("x")[-1])
            extension += f"%{name}_init = tensor.empty() : {type_}\n  "
            extension += f"%{name}_all = linalg.broadcast ins({value} : {matrix}) "
            extension += f"outs(%{name}_init : {type_}) dimensions = [0]\n  "
            value = f"%{name}_all"
        return _Operand(value, type_, _map(batch, axes), stored, extension)


def element_of(dtype: str) -> str:
    """The type of an operand's elements: of a format with block scales the one they scale."""
    return SCALED_FORMATS[dtype].element if dtype in SCALED_FORMATS else dtype


def scale_shapes(spec: MatmulSpec) -> dict[str, tuple[int, ...]]:
    """The arrays of the scales of A and B, if they have some."""
    if not spec.is_scaled:
        return {}
    blocks = spec.k // SCALED_FORMATS[spec.a_dtype].block
    found: dict[str, tuple[int, ...]] = {}
    for name, (*stack, rows, _) in spec.shapes().items():
        linear = spec.scale_layout == LINEAR
        shape = (rows, blocks) if linear else blocked_scale_shape(rows, blocks)
        found[f"{name}_scales"] = (*stack, *shape)
    return {name: found[name] for name in ("a_scales", "b_scales")}


def product_text(spec: MatmulSpec, epilogue: Epilogue | None) -> str:
    """The module of a `tile.scaled_matmul`, or of a `tile.matmul`, where linalg has no op."""
    shapes = {**spec.shapes(), **scale_shapes(spec)}
    dtypes = {name: element_of(getattr(spec, f"{name}_dtype")) for name in "ab"} | {
        "c": spec.c_dtype
    }
    op, block, inputs = "matmul", "", ["a", "b"]
    if spec.is_scaled:
        found = SCALED_FORMATS[spec.a_dtype]
        dtypes |= dict.fromkeys(("a_scales", "b_scales"), found.scale)
        op, block = "scaled_matmul", f", block = {found.block} : i64"
        inputs += ["a_scales", "b_scales"]
    majors = {"a": spec.a_major, "b": spec.b_major}
    for name in "ab":
        if majors[name] != "k":
            shapes[name] = _turned(shapes[name])
    types = {name: _tensor([*shapes[name]], DTYPES[each].mlir) for name, each in dtypes.items()}
    elements = [DTYPES[dtype].mlir for dtype in spec.outputs]
    made = epilogue or _converted(elements)
    outputs = [types["c"], *_kept_types(spec, made, elements[1:])]
    lines = [
        f'%c{number} = "tile.kept"(%c) {{number = {number - 1} : i64}} : ({types["c"]}) -> {each}'
        for number, each in enumerate(outputs[1:], 1)
    ]
    names = ", ".join(["%c", *(f"%c{number}" for number in range(1, len(outputs)))])
    lines.append(f"return {names} : {', '.join(outputs)}")
    arguments = ", ".join([*(f"%{name}: {types[name]}" for name in inputs), *made.arguments()])
    stored = ", ".join(
        f'{name}_major = "{"k" if major == "k" else "mn"}"' for name, major in majors.items()
    )
    body = "\n  ".join(lines)
    return f"""
func.func @matmul({arguments}) -> {_returned(outputs)} {{
  %c = "tile.{op}"({", ".join(f"%{name}" for name in inputs)}) ({{
  {made.region("f32", elements, spec.neighbours)}
  }}) {{{stored}{block}}}
    : ({", ".join(types[name] for name in inputs)}) -> {types["c"]}
  {body}
}}
"""


def _kept_types(spec: MatmulSpec, made: Epilogue, elements: list[str]) -> list[str]:
    """The types of outputs behind C: of a reduction one column for each group."""
    *rows, columns = spec.shapes()["c"]
    kinds = made.reductions or ("",) * len(elements)
    widths = [-(-columns // spec.neighbours) if kind else columns for kind in kinds]
    return [_tensor([*rows, width], each) for width, each in zip(widths, elements, strict=True)]


def _converted(elements: list[str]) -> Epilogue:
    """The sums in each of these types."""
    names = [f"%y{number}" if element != "f32" else "%x" for number, element in enumerate(elements)]
    lines = [
        f"{name} = arith.truncf %x : f32 to {element}"
        for name, element in zip(names, elements, strict=True)
        if name != "%x"
    ]
    return Epilogue("%x", (), tuple(lines), names[0], tuple(names[1:]))


def _returned(types: list[str]) -> str:
    return types[0] if len(types) == 1 and "{" not in types[0] else f"({', '.join(types)})"


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    *stack, rows, columns = shape
    return (*stack, columns, rows)


def _tensor(shape: list[Any], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _map(batch: int, axes: str) -> str:
    """The indexing map of what is indexed by axes of m, n and k, in a stack of matrices by that."""
    first = 1 if batch else 0
    dims = [f"d{'mnk'.index(axis) + first}" for axis in axes]
    loops = ", ".join(f"d{number}" for number in range(3 + first))
    return f"affine_map<({loops}) -> ({', '.join(['d0'] * first + dims)})>"
