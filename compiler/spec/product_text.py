"""The module of an op of `tile` where linalg has none: two products of one A, products with block
scales, and outputs that are reduced or have scales of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.dtypes import DTYPES, OPERAND_FORMATS
from .epilogue import Epilogue, ops_of
from .kernel_name import kernel_name
from .problem import Problem, element_of, scale_shapes
from .quantized_text import quantize_line, scales_of_c

Inputs = dict[str, str]


def product_text(spec: Problem, epilogue: Epilogue | None) -> str:
    """What a spec computes; without an epilogue the sums, of two products one times the other."""
    op, inputs, attributes = _op_of(spec)
    elements = [DTYPES[dtype].mlir for dtype in spec.computed]
    made = epilogue or (_product(elements) if spec.products == 2 else _converted(elements))
    shape = spec.open_shape("c", spec.shapes()["c"])
    c = _tensor(shape, DTYPES[element_of(spec.c_dtype)].mlir)
    outputs = [c, *_kept_types(spec, made, elements[1:])]
    layouts = {name: stored.layout for name, stored in spec.stored().items()}
    layouts["b2"] = layouts["b"]
    taken = [f"%{name}: {type_}{layouts.get(name, '')}" for name, type_ in inputs.items()]
    kept = [
        f'%c{number} = "tile.kept"(%c) {{number = {number - 1} : i64}} : ({c}) -> {each}'
        for number, each in enumerate(outputs[1:], 1)
    ]
    name = kernel_name(spec, ops_of(epilogue))
    arguments = ", ".join([*taken, *made.arguments()])
    names = ", ".join(["%c", *(f"%c{number}" for number in range(1, len(outputs)))])
    body = "\n  ".join([*kept, f"return {names} : {', '.join(outputs)}"])
    return f"""
func.func @{name}({arguments}) -> {_returned(outputs, layouts["c"])} {{
  %c = "tile.{op}"({", ".join(f"%{name}" for name in inputs)}) ({{
  {made.region("f32", elements, spec.neighbours, quantize_line(spec, made.result))}
  }}) {{{", ".join(attributes)}}}
    : ({", ".join(inputs.values())}) -> {c}
  {body}
}}
"""


def _op_of(spec: Problem) -> tuple[str, Inputs, list[str]]:
    """The op's name, the types of what it multiplies, and its attributes."""
    inputs = {
        name: _tensor(spec.open_stored(name), DTYPES[element_of(dtype)].mlir)
        for name, dtype in (("a", spec.a_dtype), ("b", spec.b_dtype))
    }
    majors = {name: getattr(spec, f"{name}_major") for name in "ab"}
    ends = {"offsets": _tensor((spec.groups,), "i32")} if spec.groups else {}
    ends |= {"rows": _tensor((spec.m,), "i32")} if spec.gathered else {}
    grouped = "gathered_" if spec.gathered else "grouped_" if spec.groups else ""
    if spec.products == 2:
        inputs["b2"], majors["b2"] = inputs["b"], majors["b"]
    attributes = [
        f'{name}_major = "{"k" if major == "k" else "mn"}"' for name, major in majors.items()
    ]
    if spec.is_blockwise:
        for name, shape in scale_shapes(spec).items():
            inputs[name] = _tensor(shape, "f32")
        attributes += [f'{name}_form = "{getattr(spec, f"{name}_scales")}"' for name in "ab"]
        return f"{grouped}blockwise_matmul", {**inputs, **ends}, attributes
    if spec.has_weights:
        return _weights(spec, inputs, attributes)
    if not spec.is_scaled:
        name = f"{grouped}dual_matmul" if spec.products == 2 else "matmul"
        return name, {**inputs, **ends}, attributes
    found = OPERAND_FORMATS[spec.a_dtype]
    for name, shape in scale_shapes(spec).items():
        inputs[name] = _tensor(shape, DTYPES[found.scale].mlir)
    return (
        f"{grouped}scaled_matmul",
        {**inputs, **ends},
        [*attributes, f"block = {found.block} : i64"],
    )


def _weights(spec: Problem, inputs: Inputs, attributes: list[str]) -> tuple[str, Inputs, list[str]]:
    """The op and operands of narrow weights, with scales and zero points if they have any."""
    found = {name: spec.arrays()[name] for name in ("scales", "zeros") if name in spec.arrays()}
    inputs |= {name: _tensor(shape, DTYPES[dtype].mlir) for name, (dtype, shape) in found.items()}
    given = [1, 1, int("scales" in found), int("zeros" in found)]
    sizes = f"operandSegmentSizes = array<i32: {', '.join(map(str, given))}>"
    return "weight_matmul", inputs, [*attributes, f"group = {spec.group_size} : i64", sizes]


def _kept_types(spec: Problem, made: Epilogue, elements: list[str]) -> list[str]:
    """The types of outputs after C: of a reduction one column for each group."""
    *rows, columns = spec.open_shape("c", spec.shapes()["c"])
    assert isinstance(columns, int)  # the first dim alone is open
    kinds = made.reductions or ("",) * len(elements)
    widths = [-(-columns // spec.neighbours) if kind else columns for kind in kinds]
    found = [_tensor([*rows, width], each) for width, each in zip(widths, elements, strict=True)]
    return [*found, *scales_of_c(spec)]


def _converted(elements: list[str]) -> Epilogue:
    """The sums in each of these types."""
    names = [f"%y{number}" if element != "f32" else "%x" for number, element in enumerate(elements)]
    lines = [
        f"{name} = arith.truncf %x : f32 to {element}"
        for name, element in zip(names, elements, strict=True)
        if name != "%x"
    ]
    return Epilogue("%x", (), tuple(lines), names[0], tuple(names[1:]))


def _product(elements: list[str]) -> Epilogue:
    """The sums of b times those of b2, in each type."""
    lines, names = ["%p = arith.mulf %x, %y : f32"], []
    for number, element in enumerate(elements):
        narrow = element != "f32"
        lines += [f"%r{number} = arith.truncf %p : f32 to {element}"] if narrow else []
        names.append(f"%r{number}" if narrow else "%p")
    return Epilogue("%x", (), tuple(lines), names[0], tuple(names[1:]), (), "%y")


def _returned(types: list[str], layout: str) -> str:
    first, *others = types
    return f"({', '.join([first + layout, *others])})" if others or layout else first


def _tensor(shape: Sequence[int | str], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"
