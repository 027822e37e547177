"""`tilewright opt`: runs passes on an .mlir file, or only verifies it, and prints the IR."""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from ..command_line.arguments import Parser, add_json
from ..command_line.isolated import reads_in_child
from ..command_line.loaded_files import add_load
from ..command_line.output import check_place, print_json, write_text

EXAMPLES = """examples:
  tilewright opt matmul.mlir                                        parse, verify and print
  tilewright opt matmul.mlir --passes normalize
  tilewright opt matmul.mlir --passes 'normalize,tiling{tile=128x64x64},tma-insertion'
  tilewright opt matmul.mlir --passes normalize,tiling --target sm_90a
  tilewright opt - --passes normalize < matmul.mlir
  tilewright opt matmul.mlir --load my_pass.py --passes 'tiling,tma-insertion,my-pass'
  tilewright opt --list-passes
"""


def add_command(commands: Any) -> None:
    """Add `opt` to the command line."""
    parser: Parser = commands.add_parser(
        "opt",
        help="run passes on an .mlir file",
        description="Runs passes on an .mlir file and prints the IR they leave; without --passes,"
        " the IR of the file itself, verified.",
        epilog=EXAMPLES,
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="an .mlir file, or - for stdin")
    parser.add_argument("--passes", metavar="TEXT", help="passes and options, as 'a{x=1},b'")
    parser.add_argument(
        "--target", metavar="CHIP", help="chip for the passes (default: the file's, else sm_100a)"
    )
    add_load(parser)
    parser.add_argument(
        "--long", action="store_true", help="print types in full, and MLIR's own names of values"
    )
    parser.add_argument("--list-passes", action="store_true", help="list the passes and exit")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="where to write the IR (default stdout)"
    )
    reads_in_child(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(opt_command, parser))


def opt_command(parser: Parser, options: argparse.Namespace) -> int:
    """Run the passes and print the IR."""
    if options.list_passes:
        names = ("file", "passes", "target", "output", "long")
        given = [name for name in names if getattr(options, name)]
        if given:
            parser.error(f"--list-passes must come alone, got {', '.join(given)}")
        return _list_passes(options.json)
    if options.file is None:
        parser.error("FILE must be given, got none")
    if options.target is not None and options.passes is None:
        parser.error(f"--target must come with --passes, which read it, got {options.target} alone")
    if options.load and options.passes is None:
        parser.error(f"--load must come with --passes, got {options.load[0]} alone")
    check_place(options.output)
    result, remarks = _transform(options)
    for remark in remarks:
        print(remark, file=sys.stderr)
    if options.json:
        found = {"passes": options.passes, "remarks": remarks, "text": result}
        print_json({"ok": True, **found})
    if not options.json or options.output:
        write_text(result, options.output)
    return 0


def _transform(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The IR after the passes, and the remarks they made."""
    from ...compiler.importers.mlir_files import read_mlir, read_stdin
    from ...compiler.pipeline import PassLog, checked_text, run_passes_on_text

    text = read_stdin() if options.file == "-" else read_mlir(Path(options.file))
    if options.passes is None:
        return checked_text(text, options.file, options.long), []
    log = PassLog()
    how = {"target": options.target, "long": options.long}
    result = run_passes_on_text(text, options.file, options.passes, log, **how)
    return result, log.remarks


def _list_passes(as_json: bool) -> int:
    from ...compiler.pipeline import pass_table

    table = pass_table()
    if as_json:
        print_json({"ok": True, "passes": table})
    else:
        _print_passes(table)
    return 0


def _print_passes(table: list[dict[str, Any]]) -> None:
    from ..command_line.tables import print_table

    rows = [[row["name"], row["summary"], ", ".join(row["options"])] for row in table]
    print_table(["pass", "what it does", "options"], rows)
