"""`tilewright explain swizzle`: layouts of an operand tile in shared memory; which is chosen.

An atom is the pattern that repeats: 8 rows of 16, 32, 64 or 128 bytes. A chunk is 16 bytes of one
row, which stay together; chunks of an atom are numbered along the rows, one row after the other.
Beside the swizzles stands the linear layout, whose rows follow each other as those of a matrix in
global memory may.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import Parser, add_json
from ..command_line.output import check_place, print_json, write_text
from .fragments import add_picture, bits_of, terminal_width

if TYPE_CHECKING:
    from ...dialects.layout import TileLayout
    from ..drawing.grids import Grid

EXAMPLES = """examples:
  tilewright explain swizzle --tile 64x64 --type bf16 --major k
  tilewright explain swizzle --tile 128x32 --type e4m3 --major k --swizzle 32B
  tilewright explain swizzle --tile 8x16 --type bf16 --swizzle linear
  tilewright explain swizzle --tile 64x64 --type bf16 --major mn --all
"""
COLUMNS = ("swizzle", "atom", "matrix read", "row write", "global request", "")
ORDER_COLUMNS = ("order of atoms", "first column at [B]", "first row at [B]", "")
ATOM_ROWS, CHUNK_BYTES, LINE_BYTES, BANK_BYTES, EXTENT_MAX = 8, 16, 128, 4, 1 << 20
DRAWN_BYTES_MAX = 1024  # of a row of the linear layout: 64 lines for eight rows
SHOWN_ATOMS = 4
CHOSEN = "chosen: the widest that fits asks for most at once"
PLAIN = "threads read it, MMAs have no descriptor for it"


def add_subject(subjects: Any) -> None:
    """Add `swizzle` to what can be explained."""
    parser: Parser = subjects.add_parser(
        "swizzle",
        help="layouts of an operand tile in shared memory, and the one that is chosen",
        description="Prints, for each swizzle, how many passes an 8x8 matrix takes to be read and a"
        " row to be written, how many bytes of global memory are asked for at once, and which is"
        " chosen; then where the chunks of an atom lie, and the atoms of the tile. Chunks of one"
        " matrix are marked: what ldmatrix reads at once.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--tile", required=True, metavar="MNxK", help="extents, as 64x64")
    parser.add_argument("--type", required=True, help="element type: bf16, e4m3, tf32, …")
    parser.add_argument("--major", default="k", help="contiguous axis: k or mn (default k)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--swizzle", help="linear, none, 32B, 64B or 128B: draw it (default: chosen)"
    )
    shown.add_argument("--all", action="store_true", help="draw all that fit")
    add_picture(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_swizzle_command, parser))


def explain_swizzle_command(parser: Parser, options: argparse.Namespace) -> int:
    """Print the table and the drawings."""
    check_place(options.svg)
    layouts = _layouts(parser, options)
    from ...dialects.layout import widest_swizzle

    chosen = widest_swizzle(layouts["none"])
    drawn = list(_to_draw(parser, options, layouts, chosen))
    grids = [atom_grid(layouts[name]) for name in drawn]
    if options.svg:
        if len(grids) != 1:
            parser.error("--svg draws one swizzle, got --all; name it with --swizzle")
        write_text(grids[0].svg(), options.svg)
    if options.json:
        listed = [describe(layout) for layout in layouts.values()]
        print_json({"ok": True, "chosen": chosen, "swizzles": listed})
        return 0
    from ..command_line.tables import print_table

    print_table(list(COLUMNS), [_row(layout, chosen) for layout in layouts.values()], width=150)
    for name, grid in zip(drawn, grids, strict=True):
        print()
        print(*grid.lines(terminal_width()), sep="\n")
        _print_orders(layouts[name])
    return 0


def describe(layout: TileLayout) -> dict[str, Any]:
    """The figures of one layout; `refused` says why it can't hold the tile.

    Conflicts are passes over the 32 banks: of the 8 chunks of one 8x8 matrix, and of up to 8
    neighbouring chunks of a row.
    """
    from ...dialects.layout import core_matrix_conflicts, row_conflicts

    refusal = _refusal(layout)
    found: dict[str, Any] = {"swizzle": layout.swizzle, "refused": refusal}
    if refusal is None:
        found |= {
            "atom": None if _is_linear(layout) else [ATOM_ROWS, layout.span_bytes],
            "matrix_read_passes": core_matrix_conflicts(layout),
            "row_write_passes": row_conflicts(layout),
            "global_request_bytes": min(LINE_BYTES, layout.span_bytes),
            "atom_orders": [] if _is_linear(layout) else atom_orders(layout),
        }
    return found


def atom_orders(layout: TileLayout) -> list[dict[str, Any]]:
    """Both orders of the tile's atoms: how many bytes lie from one to the next along MN and K.

    Column-major puts those along MN next to each other, row-major those along K. `used` says
    which of the two the layout has; with one column or row of atoms the orders are the same.
    """
    steps = (ATOM_ROWS, layout.span) if layout.major == "k" else (layout.span, ATOM_ROWS)
    rows, columns = layout.mn // steps[0], layout.k // steps[1]
    size = ATOM_ROWS * layout.span_bytes
    orders = {"column-major": (size, rows * size), "row-major": (columns * size, size)}
    first = {
        (mn, k): layout.byte_address(mn * steps[0], k * steps[1])
        for mn, k in ((0, min(1, columns - 1)), (min(1, rows - 1), 0))
    }
    return [
        {
            "order": name,
            "atoms": [rows, columns],
            "step_bytes": [along_mn, along_k],
            "used": all(at == mn * along_mn + k * along_k for (mn, k), at in first.items()),
        }
        for name, (along_mn, along_k) in orders.items()
    ]


def _print_orders(layout: TileLayout) -> None:
    """Where the atoms of the tile begin in both orders, if the orders differ."""
    orders = [] if _is_linear(layout) else atom_orders(layout)
    if not orders or 1 in orders[0]["atoms"]:
        return
    from ..command_line.tables import print_table

    print_table(list(ORDER_COLUMNS), [_order_row(order) for order in orders], width=150)


def _order_row(order: dict[str, Any]) -> list[str]:
    places = [
        ", ".join(str(at * step) for at in range(min(count, SHOWN_ATOMS)))
        + ", …" * (count > SHOWN_ATOMS)
        for count, step in zip(order["atoms"], order["step_bytes"], strict=True)
    ]
    return [order["order"], *places, "as tilewright lays them" * order["used"]]


def _is_linear(layout: TileLayout) -> bool:
    from ...dialects.layout import LINEAR

    return layout.swizzle == LINEAR


def _refusal(layout: TileLayout) -> str | None:
    """Why the layout can't hold the tile; ldmatrix reads rows of 16 bytes, eight at a time."""
    row = layout.contiguous * layout.element_bytes
    if not _is_linear(layout):
        return layout.fits()
    if row % CHUNK_BYTES:
        return f"contiguous extent must be a multiple of {CHUNK_BYTES} bytes, got {row} bytes"
    if layout.rows % ATOM_ROWS:
        return f"rows must be a multiple of {ATOM_ROWS}, got {layout.rows}"
    return None


def _row(layout: TileLayout, chosen: str) -> list[str]:
    found = describe(layout)
    if found["refused"]:
        return [layout.swizzle, "", "", "", "", f"refused: {found['refused']}"]
    says = CHOSEN * (layout.swizzle == chosen) or PLAIN * (
        _is_linear(layout) and layout.span_bytes > CHUNK_BYTES
    )
    reads, writes = (_passes(found[name]) for name in ("matrix_read_passes", "row_write_passes"))
    request = f"{found['global_request_bytes']} bytes"
    return [layout.swizzle, _atom(layout), reads, writes, request, says]


def _atom(layout: TileLayout) -> str:
    if _is_linear(layout):
        return "-"
    width = layout.span_bytes
    return f"{ATOM_ROWS}x{width}B" if layout.major == "k" else f"{width}Bx{ATOM_ROWS}"


def _passes(count: int) -> str:
    return "1 pass" if count == 1 else f"{count} passes"


def atom_grid(layout: TileLayout) -> Grid:
    """The lines of 128 bytes that the first atom takes, and which chunk lies in which banks.

    Of the linear layout it is the first eight rows.
    """
    from ..drawing.grids import Cell, Grid

    per_row = layout.span_bytes // CHUNK_BYTES
    places = {}
    for row in range(ATOM_ROWS):
        for unit in range(per_row):
            along = unit * CHUNK_BYTES // layout.element_bytes
            mn, k = (row, along) if layout.major == "k" else (along, row)
            places[layout.byte_address(mn, k)] = Cell(str(row * per_row + unit), unit, unit == 0)
    lines = range(0, ATOM_ROWS * layout.span_bytes, LINE_BYTES)
    banks = LINE_BYTES // BANK_BYTES
    each = CHUNK_BYTES // BANK_BYTES
    of = "eight rows" if _is_linear(layout) else "an atom"
    return Grid(
        f"swizzle {layout.swizzle}, {layout.major}-major: chunks of {of} by bytes and banks",
        [[places[line + byte] for byte in range(0, LINE_BYTES, CHUNK_BYTES)] for line in lines],
        [str(line) for line in lines],
        [f"{bank}-{bank + each - 1}" for bank in range(0, banks, each)],
    )


def _layouts(parser: Parser, options: argparse.Namespace) -> dict[str, TileLayout]:
    """One for each swizzle; a usage error for a tile or an axis that cannot be."""
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", options.tile)
    if not found or max(map(int, found.groups())) > EXTENT_MAX:
        parser.error(
            f"--tile must be two extents up to {EXTENT_MAX}, as 64x64, got {options.tile!r}"
        )
    if options.major not in ("k", "mn"):
        parser.error(f"--major must be k or mn, got {options.major!r}")
    bits = bits_of(parser, options.type)
    if bits > 32:
        parser.error(f"--type must be that of an operand, got {options.type}")
    from ...dialects.layout import LINEAR, SWIZZLES, TileLayout

    mn, k = map(int, found.groups())
    names = (LINEAR, *SWIZZLES)
    return {name: TileLayout(mn, k, bits // 8, options.major, name) for name in names}


def _to_draw(
    parser: Parser, options: argparse.Namespace, layouts: dict[str, TileLayout], chosen: str
) -> Iterator[str]:
    wanted = options.swizzle or chosen
    if wanted not in layouts:
        parser.error(f"--swizzle must be one of {', '.join(layouts)}, got {wanted!r}")
    refusals = {name: _undrawable(layout) for name, layout in layouts.items()}
    if refusals[wanted] is not None and not options.all:
        parser.error(f"--tile: swizzle {wanted}: {refusals[wanted]}")
    fitting = (name for name, refusal in refusals.items() if refusal is None)
    return fitting if options.all else iter([wanted])


def _undrawable(layout: TileLayout) -> str | None:
    """Why there is no drawing: the layout can't hold the tile, or its rows are too long."""
    if layout.span_bytes <= DRAWN_BYTES_MAX:
        return _refusal(layout)
    rows = f"rows that are drawn must be of up to {DRAWN_BYTES_MAX} bytes"
    return f"{rows}, got {layout.span_bytes}; take fewer elements"
