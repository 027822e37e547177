"""`tilewright compile`: a matmul to MLIR, LLVM IR, PTX, a listing of SASS, cubin or a bundle."""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from ..command_line.arguments import (
    Parser,
    add_json,
    add_pipeline,
    add_problem,
    compile_keywords,
    problem,
)
from ..command_line.ir_diff import ir_diff
from ..command_line.isolated import reads_in_child
from ..command_line.output import SUFFIXES, check_place, print_json, write_bytes, write_text
from ..command_line.progress import Progress
from ..explain.chosen import chosen_line, compile_taken
from ..explain.rows import said_multiple, said_ranges, shared_size

EXAMPLES = """examples:
  tilewright compile --m 512 --n 768 --k 320                        PTX on stdout
  tilewright compile --m 512 --n 768 --k 320 -o matmul.zip          a bundle
  tilewright compile --m dynamic --n 768 --k 320 -o any.zip         a kernel for any M
  tilewright compile --batch dynamic --m 96 --n 768 --k 320 -o any.zip      for any batch
  tilewright compile --k dynamic --m 768 --n 3072 --a-major m --b-major n -o any.zip    for any K
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


def add_command(commands: Any) -> None:
    """Add `compile` to the command line."""
    parser: Parser = commands.add_parser(
        "compile",
        help="compile a matmul",
        description="Compiles a matmul, from an .mlir or .pt2 file or from spec flags.",
        epilog=EXAMPLES,
    )
    help_ = "an .mlir file (linalg, or IR after any pass), or a .pt2 file of torch.export"
    add_problem(parser, help_, dynamic=True)
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
    _check_unread(parser, options)
    _check_output(options)
    source = problem(options, parser)
    kernels = _compile(source, options)
    compiled = kernels[-1]
    options.target = options.target or compiled.target
    as_chosen = compiled.chosen and not compiled.given_up
    if options.verbose and as_chosen and len(kernels) == 1:
        print(f"schedule: {chosen_line(source, options)}", file=sys.stderr)
    _tell_remarks(kernels)
    text = _deliver(kernels, options)
    if options.json:
        print_json(_summary(kernels, options, text))
    return 0


def _check_output(options: argparse.Namespace) -> None:
    """Refuse a place that can't be written, before time is spent."""
    is_bundle = options.emit == "bundle"
    check_place(options.output, bundle=is_bundle)
    if is_bundle:
        from ...compiler.bundle_writer import check_replaceable

        check_replaceable(options.output)


def _check_unread(parser: Parser, options: argparse.Namespace) -> None:
    """Refuse flags of what is made after the kind that is asked for."""
    flags = {"--allow-spills": options.allow_spills, "--origins": options.origins}
    of_text = {"mlir": set(), "llvm": {"--origins"}, "ptx": {"--origins"}}
    read = of_text.get(options.emit, {*flags})
    unread = [name for name, given in flags.items() if given and name not in read]
    if unread:
        parser.error(f"--emit {options.emit} must come without {', '.join(unread)}, read later")


def _kind(output: Path | None) -> str:
    """What a file of that name holds."""
    return "ptx" if output is None else SUFFIXES.get(output.suffix, "ptx")


def _compile(source: Any, options: argparse.Namespace) -> list[Any]:
    """The kernel, or those that share all M in a bundle of a source of any M."""
    with Progress("loading the compiler") as progress:
        from ...compiler.buckets import compile_buckets
        from ...compiler.driver import compile_matmul

        progress.update("compiling")
        keywords = compile_keywords(options)
        several = _is_by_rows(source, options)
        before = _before(source, options) if options.print_diff and not several else ""

        def begin(bucket: Any) -> None:
            nonlocal before
            before = _before(source, options) if options.print_diff else ""
            shown = options.verbose or options.print_after_all or options.print_diff
            spec = bucket.spec
            if (spec.most_m or spec.dynamic_batch or spec.dynamic_k) and shown:
                of = said_multiple(spec)
                ranges = said_ranges(bucket.ranges) + (f", {of}" if of else "")
                print(f"{shared_size(spec)} {ranges}", file=sys.stderr)

        def observe(event: Any) -> None:
            nonlocal before
            if not (options.print_after_all or options.print_diff):
                progress.update(f"compiling, after {event.name}")
            if options.verbose:
                print(f"{event.name}: {event.summary}", file=sys.stderr)
            if options.print_after_all:
                print(f"// ---- after {event.name} ----\n{event.ir()}", file=sys.stderr)
            if options.print_diff:
                after = event.ir()
                print(ir_diff(before, after, event.name), end="", file=sys.stderr)
                before = after

        keywords |= {"observer": observe, "until": UNTIL[options.emit]}
        if several:
            return compile_buckets(source, begin=begin, **_without_schedule(keywords))
        return [compile_taken(compile_matmul, source, keywords)]


def _is_by_rows(source: Any, options: argparse.Namespace) -> bool:
    """Whether kernels of chosen schedules share the rows of a bundle for any M, or batch."""
    if options.emit != "bundle" or options.pipeline or options.preset or options.stop_after:
        return False
    if not isinstance(source, Path):
        return bool(source.open_sizes)
    from ...compiler.buckets import has_any_size

    return has_any_size(source, options.target)


def _without_schedule(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in keywords.items() if name not in ("pipeline", "preset")}


def _before(source: Any, options: argparse.Namespace) -> str:
    from ...compiler.driver import imported_ir

    return imported_ir(source, options.target)


def _tell_remarks(kernels: list[Any]) -> None:
    for remark in dict.fromkeys(remark for each in kernels for remark in each.remarks):
        print(remark, file=sys.stderr)


def _deliver(kernels: list[Any], options: argparse.Namespace) -> str | None:
    """Write the result; the text instead, where --json is to carry it."""
    compiled = kernels[-1]
    if options.emit == "bundle":
        from ...compiler.bundle_writer import write_several

        write_several(options.output, kernels)
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
        from ...compiler.sass_listing import sass_listing

        return sass_listing(compiled.assembled.cubin)
    return getattr(compiled, {"mlir": "mlir", "llvm": "llvm_ir", "ptx": "ptx"}[kind])


def _summary(kernels: list[Any], options: argparse.Namespace, text: str | None) -> dict[str, Any]:
    compiled = kernels[-1]
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
    if len(kernels) > 1:
        summary["manifests"] = [each.manifest for each in kernels]
    return summary
