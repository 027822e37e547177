"""`tilewright explain layout`: which thread holds which elements of an instruction's operand."""

from __future__ import annotations

import argparse
import functools
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import Parser, add_json
from ..command_line.output import check_place, print_json, write_text

if TYPE_CHECKING:
    from ...dialects.fragments import Fragment
    from ..drawing.grids import Grid

EXAMPLES = """examples:
  tilewright explain layout --atom m16n8k16 --operand a --type bf16
  tilewright explain layout --atom m64n32k16 --operand d --type f32 --svg d.svg
  tilewright explain layout --atom ldmatrix.x4.trans --type f16
  tilewright explain layout --atom 16x256b.x2 --type f32
"""
F64 = ("f64", 64)


def add_subject(subjects: Any) -> None:
    """Add `layout` to what can be explained."""
    parser: Parser = subjects.add_parser(
        "layout",
        help="thread-value layout of an instruction's operand",
        description="Prints which value of which thread each element of an operand is, as layouts"
        " from (thread, value) to the element and back, and as a table.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--atom",
        required=True,
        help="mma.sync: m16n8k16, m8n8k4; wgmma: m64n64k16; ldmatrix.x4, stmatrix.x2.trans;"
        " tcgen05.ld: 32x32b.x8, 16x256b.x2",
    )
    parser.add_argument("--operand", help="of an MMA: a, b, c or d; C lies as D does")
    parser.add_argument("--type", required=True, help="element type: bf16, f32, e4m3, f64, …")
    add_picture(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_layout_command, parser))


def add_picture(parser: Parser) -> None:
    """Add the option of a drawing."""
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a drawing to FILE")


def explain_layout_command(parser: Parser, options: argparse.Namespace) -> int:
    """Print the layouts and the table."""
    check_place(options.svg)
    from ...dialects.fragments import find_fragment

    bits = bits_of(parser, options.type)
    operand = "d" if options.operand == "c" else options.operand  # they lie alike
    _check_type(parser, operand, options.type)
    fragment = find_fragment(options.atom, operand, bits)
    grid = fragment_grid(fragment)
    if options.svg:
        write_text(grid.svg(), options.svg)
    if options.json:
        print_json({"ok": True, **describe(fragment)})
        return 0
    for name, value in describe(fragment).items():
        print(f"{name.replace('_', ' '):11} {_words(value)}")
    print()
    print(*grid.lines(terminal_width()), sep="\n")
    return 0


def terminal_width() -> int:
    """Columns of the terminal; as many as a fragment needs where output goes elsewhere."""
    shown = os.isatty(1) or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if shown else 10_000


def describe(fragment: Fragment) -> dict[str, Any]:
    """The fragment's figures and layouts, by name."""
    return {
        "fragment": fragment.name,
        "shape": list(fragment.shape),
        "bits": fragment.bits,
        "threads": fragment.threads,
        "values": fragment.values,
        "registers": fragment.registers,
        "layout": str(fragment.layout),
        "inverse": str(fragment.by_axis()),
    }


def fragment_grid(fragment: Fragment) -> Grid:
    """T5V2 where an element is the third value of thread 5; one colour for each thread."""
    from ..drawing.grids import Cell, Grid

    rows, columns = fragment.shape
    owners = [[fragment.owner(row, column) for column in range(columns)] for row in range(rows)]
    return Grid(
        f"{fragment.name}: T thread, V value",
        [[Cell(f"T{thread}V{value}", thread) for thread, value in row] for row in owners],
        [str(row) for row in range(rows)],
        [str(column) for column in range(columns)],
    )


def _check_type(parser: Parser, operand: str | None, name: str) -> None:
    """A usage error for a type that no MMA takes as that operand."""
    from ...runtime.element_types import DTYPES

    inputs = [each for each, dtype in DTYPES.items() if dtype.operand_kind] + [F64[0]]
    legal = {"a": inputs, "b": inputs, "d": ["f16", "f32", "s32", F64[0]]}.get(
        operand or "", [name]
    )
    if name not in legal:
        parser.error(f"--type of operand {operand} must be one of {', '.join(legal)}, got {name!r}")


def bits_of(parser: Parser, name: str) -> int:
    """Bits of an element type; a usage error for one that is not known."""
    from ...runtime.element_types import ITEM_BYTES

    known = {**{each: 8 * size for each, size in ITEM_BYTES.items()}, F64[0]: F64[1]}
    if name not in known:
        parser.error(f"--type must be one of {', '.join(known)}, got {name!r}")
    return known[name]


def _words(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)
