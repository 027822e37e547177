"""The text of a `tile.grouped_matmul`, which linalg cannot express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.dtypes import BLOCKWISE_FORMS, OPERAND_FORMATS
from ...runtime.group_sizes import FAR
from .epilogue import Epilogue
from .problem import EXTENT_MAX, Problem

GROUPS_MAX = 2**16


def grouped_refusal(spec: Problem) -> str | None:
    """Why a spec can't have so many groups of rows, or of K."""
    groups, axis, gathered = spec.groups, spec.group_axis, spec.gathered
    if type(groups) is not int or not 0 <= groups <= GROUPS_MAX:
        return f"groups must be 0 to {GROUPS_MAX}, got {groups!r}; multiply in several calls"
    if type(gathered) is not int or not 0 <= gathered <= EXTENT_MAX:
        return f"gathered must be 0 to {EXTENT_MAX}, got {gathered!r}"
    if gathered and not (groups and axis == "m"):
        return f"gathered must be 0 where no rows are grouped, got {gathered}; take one group"
    if spec.ordered and not (groups and axis == "k"):
        return f"ordered must be False where no K is grouped, got {spec.ordered!r}; leave it out"
    if not groups:
        return None
    if (extent := getattr(spec, axis)) > FAR:
        rule = f"{axis} must be at most {FAR} where it is grouped"
        return f"{rule}, got {extent}; multiply in several calls"
    if spec.batch:
        return f"batch must be 0 where rows are grouped, got {spec.batch}; group the rows of all"
    has_scales = spec.is_scaled or spec.is_blockwise
    if (has_scales and (axis == "k" or gathered)) or (spec.products == 2 and axis == "k"):
        what = "two products" if spec.products == 2 else "scales of blocks"
        got = "gathered rows" if gathered else "groups of K"
        return f"{what} must be of groups of rows that follow one another, got {got}; copy the rows"
    if spec.is_blockwise and spec.a_scales != BLOCKWISE_FORMS[0]:
        rule = f"a_scales must be {BLOCKWISE_FORMS[0]}, since groups begin at any row"
        return f"{rule}, got {spec.a_scales}; repeat them"
    if spec.is_scaled and OPERAND_FORMATS[spec.a_dtype].rows > 1:
        rule = "a_dtype must have scales of single rows where rows are grouped"
        return f"{rule}, got {spec.a_dtype}; repeat them"
    majors = spec.a_major, spec.b_major
    if axis == "k" and majors != ("m", "n"):
        rule = "a_major and b_major must be 'm' and 'n' where K is grouped"
        return f"{rule}, got {majors[0]!r} and {majors[1]!r}; pass copies with K as rows"
    if axis == "m" and majors[0] != "k":
        rule = "a_major must be 'k' where rows are grouped"
        return f"{rule}, got {majors[0]!r}; pass a contiguous copy"
    return None


def grouped_text(
    name: str,
    types: Mapping[str, str],
    majors: tuple[str, str],
    epilogue: Epilogue | None,
    elements: Sequence[str],
) -> str:
    """The module of the op, in a function of this name: types of the tensors a, b, offsets, c, of
    rows or order where there are, and of sums and all outputs. An output after c has c's sizes.
    """
    sums, c, *further = elements
    made = epilogue or _conversion(sums, elements[1:])
    inputs = ("a", "b", "offsets", *(name for name in ("rows", "order") if name in types))
    op = {"rows": "gathered", "order": "ordered"}.get(inputs[-1], "grouped")
    a_major, b_major = ("k" if major == "k" else "mn" for major in majors)
    arguments = ", ".join([*(f"%{name}: {types[name]}" for name in inputs), *made.arguments()])
    sizes = types["c"].removesuffix(f"{c}>")
    outputs = [types["c"], *(f"{sizes}{each}>" for each in further)]
    kept = "\n  ".join(
        f'%c{number} = "tile.kept"(%c) {{number = {number - 1} : i64}} : ({types["c"]}) -> {each}'
        for number, each in enumerate(outputs[1:], 1)
    )
    names = ", ".join(["%c", *(f"%c{number}" for number in range(1, len(outputs)))])
    returned = f"({', '.join(outputs)})" if further else types["c"]
    return f"""
func.func @{name}({arguments}) -> {returned} {{
  %c = "tile.{op}_matmul"({", ".join(f"%{name}" for name in inputs)}) ({{
  {made.region(sums, elements[1:])}
  }}) {{a_major = "{a_major}", b_major = "{b_major}"}}
    : ({", ".join(types[name] for name in inputs)}) -> {types["c"]}
  {kept}
  return {names} : {", ".join(outputs)}
}}
"""


def _conversion(sums: str, outputs: Sequence[str]) -> Epilogue:
    """The sums in the type of each output."""
    lines, name = [], "%x"
    if sums == "i32" and any(each != "i32" for each in outputs):
        lines.append("%f = arith.sitofp %x : i32 to f32")
    names = []
    for number, each in enumerate(outputs):
        name = "%x" if each == sums or sums == "f32" else "%f"
        if each not in (sums, "f32"):
            lines.append(f"%y{number} = arith.truncf {name} : f32 to {each}")
            name = f"%y{number}"
        names.append(name)
    return Epilogue("%x", (), tuple(lines), names[0], tuple(names[1:]))
