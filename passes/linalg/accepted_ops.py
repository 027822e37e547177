"""The ops and attributes of linalg, arith, math, tensor and func that `normalize` accepts.

The list is closed. An op or an attribute that is not in it is refused where it stands, also in code
that nothing uses. Every op in the list is pure, so ops without users may be erased. An attribute is
either read, or there is a reason why it may be ignored: it is a licence, which makes some results
poison or allows other ones, and a kernel need not make use of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...dialects.epilogue import SCALAR_OPS, scalar_types
from ...dialects.mlir import arith, ir
from ...dialects.tile_types import dynamic_dims
from ..argument_layouts import LAYOUT_ATTRIBUTE
from ..base import (
    MATH_ATTRIBUTE,
    MMA_ATTRIBUTE,
    MULTIPLE_ATTRIBUTE,
    ROWS_ATTRIBUTE,
    TARGET_ATTRIBUTE,
    attributes_of,
    operations,
    refused,
)

EMPTY_LISTS = ("arg_attrs", "res_attrs")
PAGE = "docs/passes/normalize.md"
SHOWN_CHARACTERS = 80


class Use(NamedTuple):
    """What becomes of an attribute, in words; `only` is the one value it may have, if there is one,
    as MLIR numbers and as it names it."""

    words: str
    only: tuple[int, str] | None = None


Attributes = Mapping[str, Use]

READ = Use("read")
LICENCE = Use("ignored, a licence")
FASTMATH: Attributes = {"fastmath": LICENCE}
ROUNDING: Attributes = {
    "roundingmode": Use("must be `to_nearest_even`", (0, "to_nearest_even")),
}
SEGMENTS: Attributes = {"operandSegmentSizes": READ}
VISIBILITY: Attributes = {"sym_visibility": Use("ignored: it says who may call the function")}
LAYOUTS = Use(f"`{LAYOUT_ATTRIBUTE}` is read, any other refused")

EPILOGUE_OPS: dict[str, Attributes] = {
    **dict.fromkeys(SCALAR_OPS, FASTMATH),
    "arith.addi": {"overflowFlags": LICENCE},
    "arith.cmpf": {"predicate": READ, **FASTMATH},
    "arith.constant": {"value": READ},
    "arith.extf": FASTMATH,
    "arith.sitofp": ROUNDING,
    "arith.truncf": {**ROUNDING, **FASTMATH},
    "math.fpowi": FASTMATH,
    "math.powf": FASTMATH,
}
STRUCTURE_OPS: dict[str, Attributes] = {
    "func.func": {
        "sym_name": READ,
        "function_type": READ,
        "arg_attrs": LAYOUTS,
        "res_attrs": LAYOUTS,
        **VISIBILITY,
    },
    "func.return": {},
    "linalg.batch_matmul": {"indexing_maps": READ, **SEGMENTS},
    "linalg.broadcast": {"dimensions": READ},
    "linalg.fill": SEGMENTS,
    "linalg.generic": {
        "indexing_maps": READ,
        "iterator_types": READ,
        "doc": Use("ignored: a comment"),
        **SEGMENTS,
    },
    "linalg.matmul": {
        "indexing_maps": READ,
        "cast": Use("ignored: the op's region says it, and is read"),
        **SEGMENTS,
    },
    "linalg.transpose": {"permutation": READ},
    "linalg.yield": {},
    "tensor.collapse_shape": {"reassociation": READ},
    "tensor.dim": {},
    "tensor.empty": {},
    "tensor.expand_shape": {"reassociation": READ, "static_output_shape": READ},
    "tensor.extract_slice": {
        "static_offsets": READ,
        "static_sizes": READ,
        "static_strides": READ,
        **SEGMENTS,
    },
}
OPERAND_OPS: dict[str, Attributes] = {
    "arith.extsi": {},
    "arith.extui": {"nneg": LICENCE},
    "arith.muli": {"overflowFlags": LICENCE},
}
OPS = {**STRUCTURE_OPS, **OPERAND_OPS, **EPILOGUE_OPS}
MODULE: Attributes = {
    TARGET_ATTRIBUTE: READ,
    MMA_ATTRIBUTE: READ,
    MATH_ATTRIBUTE: READ,
    ROWS_ATTRIBUTE: READ,
    MULTIPLE_ATTRIBUTE: READ,
    "sym_name": Use("ignored: the module's name"),
    **VISIBILITY,
}


def check_accepted(module: ir.Module) -> None:
    """Refuse the first op, attribute or tensor type that does not stand here."""
    check_attributes(module.operation, MODULE)
    for op in operations(module.operation):
        name = op.operation.name
        if name not in OPS:
            rule = f"not one of the ops that a kernel is made of ({PAGE})"
            raise refused(op, f"{rule}; compute it outside the kernel")
        check_attributes(op, OPS[name])
        for value in (*_arguments(op), *op.operation.results):
            _check_type(op, value.type)


def read_attributes(op: Any) -> dict[str, ir.Attribute]:
    """The op's attributes without those that are ignored."""
    known = OPS[op.operation.name]
    return {name: value for name, value in attributes_of(op).items() if known[name] == READ}


def table() -> str:
    """The list as a table in Markdown, for the page of `normalize`."""
    rows = [f"| `{name}` | {_types(name)} | {_cell(OPS[name])} |" for name in sorted(OPS)]
    return "\n".join(["| op | in an epilogue, of | attributes |", "|---|---|---|", *rows])


def _types(name: str) -> str:
    return ", ".join(scalar_types(name)) if name in EPILOGUE_OPS else ""


def _cell(attributes: Attributes) -> str:
    return "; ".join(f"`{name}`: {use.words}" for name, use in attributes.items()) or "none"


def _arguments(op: Any) -> list[ir.Value]:
    """The arguments of an op's blocks."""
    blocks = [block for region in op.operation.regions for block in region]
    return [argument for block in blocks for argument in block.arguments]


def check_attributes(op: Any, known: Attributes) -> None:
    """Refuse an attribute of the op that is not among the known ones, or has no value of theirs."""
    for name, value in attributes_of(op).items():
        if name in EMPTY_LISTS and _is_empty(value):
            continue
        if name not in known:
            takes = ", ".join(known) or "none"
            got = f"{name} = {_shortened(value)}"
            raise refused(op, f"attributes must be {takes}, got {got}; remove it")
        only = known[name].only
        if only is not None and ir.IntegerAttr(value).value != only[0]:
            raise refused(op, f"{name} must be {only[1]}, got {_mode(value)}")


def _is_empty(value: ir.Attribute) -> bool:
    """Whether it is an array of empty dictionaries, as arguments have that have no attributes."""
    if not isinstance(value, ir.ArrayAttr):
        return False
    return len(value) > 0 and all(isinstance(e, ir.DictAttr) and len(e) == 0 for e in value)


def _mode(value: ir.Attribute) -> str:
    return arith.RoundingMode(ir.IntegerAttr(value).value).name


def _shortened(value: ir.Attribute) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def _check_type(op: Any, type_: ir.Type) -> None:
    """Tensors must be ranked, and mean no more than their shape and elements say.

    Their first dim may be dynamic, of a matrix or of a stack, and of a stack the second one, too;
    of operands that have M contiguous the last one is the rows.
    """
    if not isinstance(type_, ir.ShapedType):
        return
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is not None:
        raise refused(op, f"values must be scalars or tensors without an encoding, got {type_}")
    if type_.has_static_shape:
        return
    of_rows = [[0], [0, 1]], [[1], [0, 2]]
    if type_.rank > 3 or dynamic_dims(type_) not in (*of_rows[0], of_rows[1][type_.rank == 3]):
        rule = "shapes must be static and positive, but for a stack's length and rows of matrices"
        raise refused(op, f"{rule}, got {type_}")
