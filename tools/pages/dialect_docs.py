"""Writes docs/dialects/ from the declarations of the dialects: an index of ops, a page a file.

python -m tilewright.tools.pages.dialect_docs [FOLDER]
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path
from typing import Any, get_args, get_origin

from ...dialects import pipe, sm, tile
from ...dialects.mlir import ext, ir
from ...passes.checks.pipes import pipes
from .docstrings import details, summary
from .op_examples import read_examples, shown
from .page_folder import write_folder

FOLDER = Path("docs/dialects")
EXAMPLES = Path(__file__).parent.parent.parent / FOLDER / "examples"
HEADER = """# The dialects

From linalg to NVVM, a kernel goes through three dialects of this compiler:

- [`tile`](tile.md) describes what one CTA computes on tiles, without barriers and addresses.
  [`normalize`](../passes/normalize.md) and [`tiling`](../passes/tiling.md) make its first ops.
- [`pipe`](pipe.md) describes the bounded queues between the roles of a CTA. The
  [passes](../passes/README.md) from `tma-insertion` to `ping-pong` make its ops.
- [`sm`](sm.md) describes what each thread executes, one op per instruction. The passes from
  [`plan-memory`](../passes/plan-memory.md) to
  [`select-instructions`](../passes/select-instructions.md) make its ops.

The page of a dialect lists its ops with a formula for each. There is also a page for each file of
`dialects/`: [by subject](#by-subject), [by name](#by-name). A simple kernel needs only
[tile/program.md](tile/program.md), [tile/loads.md](tile/loads.md) and [pipe.md](pipe.md). The rules
between the ops of a program are the [protocol of pipes](protocol.md).

The signature of an op has its operands in parentheses, its attributes in braces, its results after
the arrow, and its regions in parentheses at the end. `?` marks what is optional, `*` what may be
repeated, `any` a type that the op's verifier or its pass checks. An example in MLIR's generic form
follows. It is taken from a compiled kernel and complete: `tilewright opt` parses and verifies it.
Operands of the op are arguments of a function, or results of the ops before it.
"""
FOOTER = "Written by `python -m tilewright.tools.pages.dialect_docs`; a test compares them."
DIALECTS = ((tile, tile.Tile), (pipe, pipe.Pipe), (sm, sm.Sm))
WIDTH = 96
JOINED = "\N{NO-BREAK SPACE}"  # between a name and its type, so that no line ends there
MARKS = {"optional": "?", "variadic": "*"}
BUILTIN = {
    ir.ArrayAttr: "array",
    ir.F32Type: "f32",
    ir.IndexType: "index",
    ir.IntegerAttr: "integer",
    ir.MemRefType: "memref",
    ir.RankedTensorType: "tensor",
    ir.StringAttr: "string",
    ir.TypeAttr: "type",
    ir.VectorType: "vector",
}


def render_all() -> dict[str, str]:
    """Every page by its path in the folder."""
    pages = {"README.md": _index(), "protocol.md": _protocol()}
    for module, dialect in DIALECTS:
        types = [_type(type_) for type_ in dialect.types]
        for file, operations in _by_file(dialect.operations, module):
            described = types if file is module else []
            described = [*described, *map(_operation, operations)]
            pages[_page(file)] = _joined(_title(file), _module_text(file), *described, FOOTER)
        own = _page(module)
        pages.setdefault(own, _joined(_title(module), _module_text(module), *types, FOOTER))
    return pages


def _joined(*parts: str) -> str:
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _index() -> str:
    """The ops by the file that declares them, and by name."""
    files = [each for module, d in DIALECTS for each in _by_file(d.operations, module)]
    subjects = [f"| [{_path(file)}]({_page(file)}) | {_cell(summary(file))} |" for file, _ in files]
    ops = sorted((each for _, found in files for each in found), key=lambda op: op.OPERATION_NAME)
    names = [f"| [`{op.OPERATION_NAME}`]({_place(op)}) | {_cell(summary(op))} |" for op in ops]
    return _joined(
        HEADER,
        _table("By subject", ("file", "its ops"), subjects),
        _table("By name", ("op", "what it does"), names),
        FOOTER,
    )


def _table(title: str, columns: tuple[str, str], rows: list[str]) -> str:
    return "\n".join([f"## {title}\n", "| " + " | ".join(columns) + " |", "|---|---|", *rows])


def _cell(text: str) -> str:
    """A text that ends no cell of a table, not even in code."""
    return text.replace("|", "\\|")


def _protocol() -> str:
    return _joined("# The protocol of pipes", _module_text(pipes), FOOTER)


def _title(module: Any) -> str:
    namespaces = {home: f"The `{dialect.DIALECT_NAMESPACE}` dialect" for home, dialect in DIALECTS}
    return f"# {namespaces.get(module) or _path(module)}"


def _by_file(operations: list[Any], module: Any) -> list[tuple[Any, list[Any]]]:
    """The files with their ops, the dialect's own file first: the order of imports is chance."""
    names = sorted(
        {each.__module__ for each in operations}, key=lambda n: (n != module.__name__, n)
    )
    return [
        (sys.modules[name], [each for each in operations if each.__module__ == name])
        for name in names
    ]


def _within(module: Any) -> str:
    """A module's path in `dialects/`, without its ending."""
    return module.__name__.partition(".dialects.")[2].replace(".", "/")


def _path(module: Any) -> str:
    return f"dialects/{_within(module)}.py"


def _page(module: Any) -> str:
    return f"{_within(module)}.md"


def _place(operation: Any) -> str:
    """Where an op stands: its page and its heading, as GitHub names it."""
    anchor = operation.OPERATION_NAME.replace(".", "")
    return f"{_page(sys.modules[operation.__module__])}#{anchor}"


def _module_text(module: Any) -> str:
    return "\n\n".join([summary(module), *details(module)])


def _type(type_: Any) -> str:
    parameters = ", ".join(field.name.removesuffix("_attr") for field in type_._fields)
    return f"## `!{type_.type_name}<{parameters}>`\n\n{inspect.getdoc(type_)}"


def _operation(operation: Any) -> str:
    name = operation.OPERATION_NAME
    form = f"```text\n{_signature(name, operation._fields)}\n```\n\n" if operation._fields else ""
    example = read_examples(EXAMPLES).get(name)
    shown_example = f"\n\n```mlir\n{shown(example)}\n```" if example else ""
    return f"## `{name}`\n\n{form}{inspect.getdoc(operation)}{shown_example}"


def _signature(name: str, fields: list[ext.FieldDef]) -> str:
    operands, attributes, results, regions = ext.partition_fields(fields)
    parts = [f"{name}({_listed(operands)})" if operands else name]
    parts += [f"{{{_listed(attributes)}}}"] if attributes else []
    parts += [f"-> {_listed(results)}"] if results else []
    parts += [f"({', '.join(each.name for each in regions)})"] if regions else []
    lines = textwrap.wrap(" ".join(parts), WIDTH, subsequent_indent="    ")
    return "\n".join(lines).replace(JOINED, " ")


def _listed(fields: Any) -> str:
    return ", ".join(
        f"{each.name}{MARKS.get(str(each.variadicity), '')}:{JOINED}{_constraint(each.constraint)}"
        for each in fields
    )


def _constraint(constraint: Any) -> str:
    """A type as it is printed in IR."""
    if constraint is Any:
        return "any"
    if constraint in BUILTIN:
        return BUILTIN[constraint]
    if get_origin(constraint) is ir.IntegerType:
        return f"i{get_args(constraint)[0]}"
    if hasattr(constraint, "type_name"):
        return f"!{constraint.type_name}"
    return " or ".join(_constraint(each) for each in get_args(constraint))


if __name__ == "__main__":
    sys.exit(write_folder(render_all, FOLDER))
