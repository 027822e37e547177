"""`tilewright explain swizzle`: layouts of an operand tile in shared memory; which is chosen.

An atom is the pattern that repeats: 8 rows of 16, 32, 64 or 128 bytes. A chunk is 16 bytes of one
row, which stay together; chunks of an atom are numbered along the rows, one row after the other.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .arguments import Parser, add_json
from .explain_layout import add_picture, bits_of, terminal_width
from .output import check_place, print_json, write_text

if TYPE_CHECKING:
    from ..dialects.layout import TileLayout
    from .grids import Grid

EXAMPLES = """examples:
  tilewright explain swizzle --tile 64x64 --type bf16 --major k
  tilewright explain swizzle --tile 128x32 --type e4m3 --major k --swizzle 32B
  tilewright explain swizzle --tile 64x64 --type bf16 --major mn --all
"""
COLUMNS = ("swizzle", "atom", "matrix read", "row write", "global request", "")
CHUNK_BYTES, LINE_BYTES, BANK_BYTES, EXTENT_MAX = 16, 128, 4, 1 << 20


def add_subject(subjects: Any) -> None:
    """Add `swizzle` to what can be explained."""
    parser: Parser = subjects.add_parser(
        "swizzle",
        help="layouts of an operand tile in shared memory, and the one that is chosen",
        description="Prints, for each swizzle, how many passes an 8x8 matrix takes to be read and a"
        " row to be written, how many bytes of global memory are asked for at once, and which is"
        " chosen; then where the chunks of an atom lie. Those of one matrix are marked: what"
        " ldmatrix reads at once.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--tile", required=True, metavar="MNxK", help="extents, as 64x64")
    parser.add_argument("--type", required=True, help="element type: bf16, e4m3, tf32, …")
    parser.add_argument("--major", default="k", help="contiguous axis: k or mn (default k)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--swizzle", help="draw this one: none, 32B, 64B, 128B (default: chosen)")
    shown.add_argument("--all", action="store_true", help="draw all that fit")
    add_picture(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_swizzle_command, parser))


def explain_swizzle_command(parser: Parser, options: argparse.Namespace) -> int:
    """Print the table and the drawings."""
    check_place(options.svg)
    layouts = _layouts(parser, options)
    from ..dialects.layout import widest_swizzle

    chosen = widest_swizzle(next(iter(layouts.values())))
    grids = [atom_grid(layouts[name]) for name in _to_draw(parser, options, layouts, chosen)]
    if options.svg:
        if len(grids) != 1:
            parser.error("--svg draws one swizzle, got --all; name it with --swizzle")
        write_text(grids[0].svg(), options.svg)
    if options.json:
        listed = [describe(layout) for layout in layouts.values()]
        print_json({"ok": True, "chosen": chosen, "swizzles": listed})
        return 0
    from .tables import print_table

    print_table(list(COLUMNS), [_row(layout, chosen) for layout in layouts.values()], width=150)
    for grid in grids:
        print()
        print(*grid.lines(terminal_width()), sep="\n")
    return 0


def describe(layout: TileLayout) -> dict[str, Any]:
    """The figures of one layout; `refused` says why it can't hold the tile.

    Conflicts are passes over the 32 banks: of the 8 chunks of one 8x8 matrix, and of up to 8
    neighbouring chunks of a row.
    """
    from ..dialects.layout import core_matrix_conflicts, row_conflicts

    refusal = layout.fits()
    found: dict[str, Any] = {"swizzle": layout.swizzle, "refused": refusal}
    if refusal is None:
        found |= {
            "atom": [8, layout.span_bytes],
            "matrix_read_passes": core_matrix_conflicts(layout),
            "row_write_passes": row_conflicts(layout),
            "global_request_bytes": layout.span_bytes,
        }
    return found


def _row(layout: TileLayout, chosen: str) -> list[str]:
    found = describe(layout)
    if found["refused"]:
        return [layout.swizzle, "", "", "", "", f"refused: {found['refused']}"]
    rows, width = found["atom"]
    atom = f"{rows}x{width}B" if layout.major == "k" else f"{width}Bx{rows}"
    best = "chosen: the widest that fits asks for most at once" * (layout.swizzle == chosen)
    reads, writes = (_passes(found[name]) for name in ("matrix_read_passes", "row_write_passes"))
    return [layout.swizzle, atom, reads, writes, f"{width} bytes", best]


def _passes(count: int) -> str:
    return "1 pass" if count == 1 else f"{count} passes"


def atom_grid(layout: TileLayout) -> Grid:
    """The lines of 128 bytes that the first atom takes, and which chunk lies in which banks."""
    from .grids import Cell, Grid

    per_row = layout.span_bytes // CHUNK_BYTES
    places = {}
    for row in range(8):
        for unit in range(per_row):
            along = unit * CHUNK_BYTES // layout.element_bytes
            mn, k = (row, along) if layout.major == "k" else (along, row)
            places[layout.byte_address(mn, k)] = Cell(str(row * per_row + unit), unit, unit == 0)
    lines = range(0, 8 * layout.span_bytes, LINE_BYTES)
    banks = LINE_BYTES // BANK_BYTES
    each = CHUNK_BYTES // BANK_BYTES
    return Grid(
        f"swizzle {layout.swizzle}, {layout.major}-major: chunks of an atom by bytes and banks",
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
    from ..dialects.layout import SWIZZLES, TileLayout

    mn, k = map(int, found.groups())
    return {name: TileLayout(mn, k, bits // 8, options.major, name) for name in SWIZZLES}


def _to_draw(
    parser: Parser, options: argparse.Namespace, layouts: dict[str, TileLayout], chosen: str
) -> Iterator[str]:
    wanted = options.swizzle or chosen
    if wanted not in layouts:
        parser.error(f"--swizzle must be one of {', '.join(layouts)}, got {wanted!r}")
    refusal = layouts[wanted].fits()
    if refusal is not None and not options.all:
        parser.error(f"--tile: swizzle {wanted}: {refusal}")
    fitting = (name for name, layout in layouts.items() if layout.fits() is None)
    return fitting if options.all else iter([wanted])
