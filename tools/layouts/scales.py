"""`tilewright explain scales`: a block-scaled matrix in memory, and a drawing of a scale atom."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import Parser, add_json, positive
from ..command_line.output import check_place, print_json, write_text
from .fragments import add_picture, terminal_width

if TYPE_CHECKING:
    from ..drawing.grids import Cell, Grid

EXAMPLES = """examples:
  tilewright explain scales --format nvfp4 --rows 300 --k 1024
  tilewright explain scales --format mxfp8 --svg atom.svg
  tilewright explain scales --format mxfp8 --copy 64x128b.warpx2::01_23
"""
COPIES = {"32x128b.warpx4": 1, "64x128b.warpx2::01_23": 2}
"""Shapes of tcgen05.cp for scales, and how many different groups of lanes they fill."""
LANES, QUARTERS, BLOCKS = 32, 4, 4
GAP = "…"


def add_subject(subjects: Any) -> None:
    """Add `scales` to what can be explained."""
    parser: Parser = subjects.add_parser(
        "scales",
        help="a block-scaled matrix in memory, and where its scales lie",
        description="Prints how a matrix of a block-scaled format lies in memory and which MMA"
        " takes it; then an atom of 128 rows x 4 scales: in global and shared memory, whose bytes"
        " are the same, and in tensor memory behind a tcgen05.cp.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--format", required=True, help="mxfp8, mxfp6, mxfp4, nvfp4, …")
    parser.add_argument("--rows", type=positive, default=128, help="rows, M or N (default 128)")
    parser.add_argument("--k", type=positive, default=128, help="elements along K (default 128)")
    parser.add_argument(
        "--copy",
        default="32x128b.warpx4",
        help="shape of the tcgen05.cp that is drawn: 32x128b.warpx4 (default) or"
        " 64x128b.warpx2::01_23, for B of a pair with M = 128",
    )
    add_picture(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_scales_command, parser))


def explain_scales_command(parser: Parser, options: argparse.Namespace) -> int:
    """Print the figures and the drawings."""
    check_place(options.svg)
    if options.copy not in COPIES:
        parser.error(f"--copy must be {' or '.join(COPIES)}, got {options.copy!r}")
    from ...runtime.scales.explain import describe, explain
    from ..drawing.grids import stacked

    described = describe(options.format, options.rows, options.k)
    grids = [memory_grid(options.copy), tensor_memory_grid(options.copy)]
    if options.svg:
        write_text(stacked(grids), options.svg)
    if options.json:
        print_json({"ok": True, **described})
        return 0
    print(explain(options.format, options.rows, options.k))
    for grid in grids:
        print()
        print(*grid.lines(terminal_width()), sep="\n")
    return 0


def memory_grid(copy: str) -> Grid:
    """Global and shared memory: lines of 16 bytes, as tcgen05.cp reads them."""
    from ..drawing.grids import Grid

    lines = _shown(LANES * COPIES[copy])
    cells = [_line(line, copy) for line in lines]
    return Grid(
        "global and shared memory, by bytes: r.k is the scale k of row r",
        cells,
        [GAP if line is None else str(16 * line) for line in lines],
        [str(byte) for byte in range(16)],
    )


def tensor_memory_grid(copy: str) -> Grid:
    """Tensor memory: lanes, and columns of four bytes."""
    from ..drawing.grids import Grid

    lanes = [lane for quarter in range(QUARTERS) for lane in _shown(LANES, quarter * LANES)]
    per_group = LANES * QUARTERS // COPIES[copy]
    sources = [None if lane is None else lane // per_group * LANES + lane % LANES for lane in lanes]
    return Grid(
        f"tensor memory behind tcgen05.cp.{copy}, by lanes and by bytes of columns",
        [_line(source, copy) for source in sources],
        [GAP if lane is None else str(lane) for lane in lanes],
        [f"c+{byte // 4}" + f".{byte % 4}" for byte in range(16)],
    )


def _shown(count: int, first: int = 0) -> list[int | None]:
    """The first and the last of each 32 lines; None stands for those between."""
    starts = range(first, first + count, LANES)
    return [line for start in starts for line in (start, start + 1, None, start + LANES - 1)]


def _line(line: int | None, copy: str) -> list[Cell]:
    """The 16 scales of a line, which go to one lane: four words of four scales of a row."""
    from ..drawing.grids import Cell

    if line is None:
        return [Cell(GAP, group=7) for _ in range(16)]
    first, lane = line // LANES * LANES * QUARTERS, line % LANES
    rows = [first + lane + LANES * word for word in range(QUARTERS)]
    group = line // LANES * QUARTERS
    return [
        Cell(f"{row}.{k}", group + word) for word, row in enumerate(rows) for k in range(BLOCKS)
    ]
