"""The text of the module that computes a spec: linalg on tensors, or an op of `tile`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dialects.dtypes import DTYPES, SPLIT_MMAS, mma_unit_of
from ...dialects.errors import OptionError
from ...dialects.mma_units import ADDED
from .epilogue import Epilogue, ops_of
from .grouped import grouped_text
from .kernel_name import kernel_name
from .problem import ANY, TWO_LEVEL, Problem, element_of
from .product_text import product_text

ROWS, MATRICES = "rows", "matrices"
"""What the text calls sizes that a launch says."""


def module_text(spec: Problem, epilogue: Epilogue | None) -> str:
    """The module that computes this matmul: linalg on tensors, or an op of `tile`.

    epilogue: makes C of the sums, instead of the conversion to C's type.
    """
    text, said = _module_text(spec, epilogue), []
    unit = mma_unit_of(DTYPES[element_of(spec.a_dtype)])
    if spec.sums == TWO_LEVEL:
        said.append(f'tile.mma_unit = "{ADDED}"')
    elif unit in SPLIT_MMAS.values() or (unit and not _is_product(spec, epilogue)):
        said.append(f'tile.mma_unit = "{unit}"')
    if spec.most_m:
        said.append(f"tile.rows = [{spec.least_m}, {spec.most_m}]")
    if spec.multiple_m:
        said.append(f"tile.rows_multiple = {spec.multiple_m}")
    return f"module attributes {{{', '.join(said)}}} {{{text}}}\n" if said else text


def _module_text(spec: Problem, epilogue: Epilogue | None) -> str:
    """The text in the form that has an op for the product: linalg where it has one, else tile."""
    reduces = _reduces(epilogue)
    if reduces and spec.groups:
        rule = "reductions are of matrices, or stacks"
        raise OptionError(f"spec: {rule}, got groups; reduce outside")
    if _is_product(spec, epilogue):
        return product_text(spec, epilogue)
    if spec.groups:
        return _grouped_text(spec, epilogue)
    return _linalg_text(spec, epilogue)


def _linalg_text(spec: Problem, epilogue: Epilogue | None) -> str:
    """The module of a `linalg.matmul`, or of a `linalg.batch_matmul`, and what follows it."""
    shapes = {name: spec.open_shape(name, shape) for name, shape in spec.shapes().items()}
    stack = shapes["c"][:-2]
    a = _Operand.of("a", "m", shapes["a"], spec.a_dtype, spec.a_major, stack)
    b = _Operand.of("b", "n", shapes["b"], spec.b_dtype, spec.b_major, stack)
    stored = {"a": a.stored, "b": b.stored}
    rows, empty = _open_sizes({"a": shapes["a"], "b": shapes["b"]}, stored, spec.a_major)
    sums = DTYPES[spec.acc_dtype].mlir
    sizes = "x".join(map(str, shapes["c"]))
    accumulator = f"tensor<{sizes}x{sums}>"
    elements = [DTYPES[dtype].mlir for dtype in spec.outputs]
    types = [f"tensor<{sizes}x{element}>" for element in elements]
    if epilogue is None:
        conversion, result, taken = *_converted(spec, f"tensor<{sizes}x"), ""
    else:
        conversion = epilogue.generic(shapes["c"], sums, elements)
        result = ", ".join(epilogue.results("%c"))
        taken = "".join(f", {each}" for each in epilogue.arguments())
    op = "batch_matmul" if spec.batch else "matmul"
    gaps = {name: stored.layout for name, stored in spec.stored().items()}
    arguments = f"%a: {a.stored}{gaps['a']}, %b: {b.stored}{gaps['b']}{taken}"
    returned = _returned([types[0] + gaps["c"], *types[1:]])
    return f"""
func.func @{kernel_name(spec, ops_of(epilogue))}({arguments}) -> {returned} {{
  {rows}%zero = arith.constant {"0" if sums == "i32" else "0.0"} : {sums}
  %empty = tensor.empty({empty}) : {accumulator}
  %init = linalg.fill ins(%zero : {sums}) outs(%empty : {accumulator}) -> {accumulator}
  {a.extension}{b.extension}%sum = linalg.{op}
    indexing_maps = [{a.map}, {b.map}, {_map(spec.batch, "mn")}]
    ins({a.name}, {b.name} : {a.type}, {b.type}) outs(%init : {accumulator}) -> {accumulator}
  {conversion}
  return {result} : {", ".join(types)}
}}
"""


def _open_sizes(
    shapes: dict[str, tuple[Any, ...]], types: dict[str, str], a_major: str
) -> tuple[str, str]:
    """The ops that ask tensors for sizes that a launch says, those of C, and their names."""
    lines, names = [], []
    of_stack = next((name for name, shape in shapes.items() if shape[:-2] == (ANY,)), None)
    if of_stack:
        lines += ["%first = arith.constant 0 : index"]
        lines += [f"%{MATRICES} = tensor.dim %{of_stack}, %first : {types[of_stack]}"]
        names += [f"%{MATRICES}"]
    if shapes["a"][-2] == ANY:
        axis = len(shapes["a"]) - (2 if a_major == "k" else 1)
        lines += [f"%at = arith.constant {axis} : index"]
        lines += [f"%{ROWS} = tensor.dim %a, %at : {types['a']}"]
        names += [f"%{ROWS}"]
    return "".join(f"{line}\n  " for line in lines), ", ".join(names)


def _reduces(epilogue: Epilogue | None) -> bool:
    return epilogue is not None and any(epilogue.reductions)


def _is_product(spec: Problem, epilogue: Epilogue | None) -> bool:
    """Whether no linalg says it, but an op of `tile`."""
    several = spec.products == 2 or _reduces(epilogue) or bool(spec.quantized)
    return several or spec.is_scaled or spec.is_blockwise or spec.has_weights


def _grouped_text(spec: Problem, epilogue: Epilogue | None) -> str:
    """The module of a `tile.grouped_matmul`."""
    shapes = {name: spec.open_shape(name, shape) for name, shape in spec.shapes().items()}
    stored: dict[str, tuple[int | str, ...]] = {**shapes, "offsets": (spec.groups,)}
    if spec.gathered:
        stored["rows"] = (spec.m,)
    if spec.ordered:
        stored["order"] = (spec.groups,)
    if spec.a_major == "m":
        stored["a"] = stored["a"][::-1]
    if spec.b_major == "n":
        stored["b"] = (*stored["b"][:-2], *stored["b"][:-3:-1])
    dtypes = {"a": spec.a_dtype, "b": spec.b_dtype, "c": spec.c_dtype}
    types = {
        name: _tensor([*stored[name]], DTYPES[dtypes.get(name, "s32")].mlir) for name in stored
    }
    elements = [DTYPES[dtype].mlir for dtype in (spec.acc_dtype, *spec.outputs)]
    return grouped_text(
        kernel_name(spec, ops_of(epilogue)), types, (spec.a_major, spec.b_major), epilogue, elements
    )


def _converted(spec: Problem, shape: str) -> tuple[str, str]:
    """The ops that make all outputs of the sums, and the names of their results."""
    made = [_conversion(spec, shape, *each) for each in enumerate(spec.outputs)]
    lines = "\n  ".join(line for lines, _ in made for line in lines)
    return lines, ", ".join(name for _, name in made)


def _conversion(spec: Problem, shape: str, number: int, wanted: str) -> tuple[list[str], str]:
    """The ops that make an output of the sums, tensors of `shape`, and the result's name."""
    lines, name, dtype = [], "%sum", DTYPES[spec.acc_dtype].mlir
    mark = number or ""
    if dtype == "i32" and wanted != "s32":
        lines.append(f"%float{mark} = arith.sitofp {name} : {shape}i32> to {shape}f32>")
        name, dtype = f"%float{mark}", "f32"
    if dtype == "f32" and wanted != "f32":
        element = DTYPES[wanted].mlir
        lines.append(f"%c{mark} = arith.truncf {name} : {shape}f32> to {shape}{element}>")
        name = f"%c{mark}"
    return lines, name


class _Operand(NamedTuple):
    """Text about an operand: its name and type as linalg.matmul takes it, its indexing map, the
    type of the argument, and the op that makes the one of the other."""

    name: str
    type: str
    map: str
    stored: str
    extension: str = ""

    @staticmethod
    def of(
        name: str, axis: str, sizes: tuple[Any, ...], dtype: str, major: str, of_c: tuple[Any, ...]
    ) -> _Operand:
        """Operand `name` of sizes (M or N, K), or those of a stack; `axis` is "m" or "n", `of_c`
        how many matrices C is a stack of."""
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
        if of_c and not stack:
            matrix, type_ = type_, _tensor([*of_c, *shape], type_[:-1].split("x")[-1])
            opened = [f"%{MATRICES}"] if ANY in of_c else []
            empty = ", ".join(opened + [f"%{ROWS}"] * (mn == ANY))
            extension += f"%{name}_init = tensor.empty({empty}) : {type_}\n  "
            extension += f"%{name}_all = linalg.broadcast ins({value} : {matrix}) "
            extension += f"outs(%{name}_init : {type_}) dimensions = [0]\n  "
            value = f"%{name}_all"
        return _Operand(value, type_, _map(len(of_c), axes), stored, extension)


def _returned(types: list[str]) -> str:
    return types[0] if len(types) == 1 and "{" not in types[0] else f"({', '.join(types)})"


def _tensor(shape: list[Any], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _map(batch: int, axes: str) -> str:
    """The indexing map of what is indexed by axes of m, n and k, in a stack of matrices by that."""
    first = 1 if batch else 0
    dims = [f"d{'mnk'.index(axis) + first}" for axis in axes]
    loops = ", ".join(f"d{number}" for number in range(3 + first))
    return f"affine_map<({loops}) -> ({', '.join(['d0'] * first + dims)})>"
