"""`tilewright compile`: a matmul to MLIR, LLVM IR, PTX, a listing of SASS, cubin or a bundle."""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from .arguments import Parser, add_json, add_pipeline, add_problem, compile_keywords, problem
from .chosen import chosen_line
from .ir_diff import ir_diff
from .isolated import reads_in_child
from .output import check_place, print_json, write_bytes, write_text
from .progress import Progress

EXAMPLES = """examples:
  tilewright compile --m 512 --n 768 --k 320                        PTX on stdout
  tilewright compile --m 512 --n 768 --k 320 -o matmul.zip          a bundle
  tilewright compile --m dynamic --n 768 --k 320 -o any.zip         a kernel for any M
  tilewright compile --m 77 --n 33 --k 51 --stop-after tiling --emit mlir
  tilewright compile matmul.mlir --print-after-all -o matmul.cubin
  tilewright compile --m 512 --n 768 --k 320 --origins -o k.sass    a listing that names ops
  tilewright compile kernel.mlir --pipeline pipelining{stages=3},warp-specialization
"""
UNTIL = {
    "mlir": "mlir",
    "llvm": "llvm",
    "ptx": "ptx",
    "sass": "cubin",
    "cubin": "cubin",
    "bundle": "cubin",
}
BINARY = ("cubin", "bundle")
SUFFIXES = {
    ".mlir": "mlir",
    ".ll": "llvm",
    ".ptx": "ptx",
    ".sass": "sass",
    ".cubin": "cubin",
    ".zip": "bundle",
}


def add_command(commands: Any) -> None:
    """Add `compile` to the command line."""
    parser: Parser = commands.add_parser(
        "compile",
        help="compile a matmul",
        description="Compiles a matmul, from an .mlir or .pt2 file or from spec flags.",
        epilog=EXAMPLES,
    )
    add_problem(
        parser, "an .mlir file, linalg or what passes left of it, or a .pt2 of torch", dynamic=True
    )
    add_pipeline(parser)
    reads_in_child(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--emit", choices=list(UNTIL), help="what to write (default: by PATH's suffix, else ptx)"
    )
    group.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="where to write it (default stdout)"
    )
    group.add_argument(
        "--print-after-all", action="store_true", help="print the IR to stderr after each pass"
    )
    group.add_argument(
        "--print-diff", action="store_true", help="print to stderr what each pass changed in the IR"
    )
    group.add_argument(
        "-v", "--verbose", action="store_true", help="say on stderr what each pass did"
    )
    add_json(parser)
    parser.set_defaults(command=functools.partial(compile_command, parser))


def compile_command(parser: Parser, options: argparse.Namespace) -> int:
    """Compile as the options say and write the result."""
    options.emit = options.emit or _kind(options.output)
    if options.emit in BINARY and options.output is None:
        parser.error(f"--emit {options.emit} must come with -o PATH, got none")
    check_place(options.output, bundle=options.emit == "bundle")
    source = problem(options, parser)
    compiled = _compile(source, options)
    options.target = compiled.target
    if options.verbose and compiled.chosen:
        print(f"schedule: {chosen_line(source, options)}", file=sys.stderr)
    _tell_remarks(compiled)
    text = _deliver(compiled, options)
    if options.json:
        print_json(_summary(compiled, options, text))
    return 0


def _kind(output: Path | None) -> str:
    """What a file of that name holds."""
    return "ptx" if output is None else SUFFIXES.get(output.suffix, "ptx")


def _compile(source: Any, options: argparse.Namespace) -> Any:
    with Progress("loading the compiler") as progress:
        from ..compiler.driver import compile_matmul

        progress.update("compiling")
        keywords = compile_keywords(options)
        before = _before(source, options) if options.print_diff else ""

        def observe(event: Any) -> None:
            nonlocal before
            progress.update(f"compiling, after {event.name}")
            if options.verbose:
                print(f"{event.name}: {event.summary}", file=sys.stderr)
            if options.print_after_all:
                print(f"// ---- after {event.name} ----\n{event.ir()}", file=sys.stderr)
            if options.print_diff:
                after = event.ir()
                print(ir_diff(before, after, event.name), end="", file=sys.stderr)
                before = after

        return compile_matmul(source, observer=observe, until=UNTIL[options.emit], **keywords)


def _before(source: Any, options: argparse.Namespace) -> str:
    from ..compiler.driver import imported_ir

    return imported_ir(source, options.target)


def _tell_remarks(compiled: Any) -> None:
    for remark in compiled.remarks:
        print(remark, file=sys.stderr)


def _deliver(compiled: Any, options: argparse.Namespace) -> str | None:
    """Write the result; the text instead, where --json is to carry it."""
    if options.emit == "bundle":
        from ..compiler.bundle_writer import write_bundle

        cubin = compiled.assembled.cubin
        write_bundle(options.output, compiled.manifest, compiled.ptx, cubin)
        return None
    if options.emit == "cubin":
        write_bytes(compiled.assembled.cubin, options.output)
        return None
    text = _text(compiled, options.emit)
    if options.json and options.output is None:
        return text
    write_text(text, options.output)
    return None


def _text(compiled: Any, kind: str) -> str:
    if kind == "sass":
        from ..compiler.sass_listing import sass_listing

        return sass_listing(compiled.assembled.cubin)
    return getattr(compiled, {"mlir": "mlir", "llvm": "llvm_ir", "ptx": "ptx"}[kind])


def _summary(compiled: Any, options: argparse.Namespace, text: str | None) -> dict[str, Any]:
    summary = {
        "ok": True,
        "emit": options.emit,
        "output": str(options.output) if options.output else None,
        "text": text,
        "stages_seconds": dict(compiled.stages),
        "remarks": list(compiled.remarks),
    }
    if UNTIL[options.emit] == "cubin":
        summary["manifest"] = compiled.manifest
    return summary
