"""`tilewright run`: compiles a matmul or loads a bundle, runs it, and compares every element."""

from __future__ import annotations

import argparse
import functools
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import (
    Parser,
    add_json,
    add_pipeline,
    add_problem,
    add_reference,
    add_seed,
    compile_keywords,
    natural,
    positive,
    problem,
    reference_of,
)
from ..command_line.emulator_flags import (
    add_emulator_flags,
    check_sums,
    emulator_options,
    write_report,
)
from ..command_line.isolated import reads_in_child
from ..command_line.output import SUFFIXES, check_place, print_json
from ..command_line.progress import Progress
from ..runs.outcome import Obtained, Outcome

if TYPE_CHECKING:
    from ...compiler.spec import MatmulSpec

NOTHING = "run: K is 0, for which a and b have one column of zeros, as in a call"
EXAMPLES = """examples:
  tilewright run --m 512 --n 768 --k 320
  tilewright run --m 77 --n 33 --k 51 --a-major m --b-major n --seed 3
  tilewright run --m 300 --n 520 --k 136 --stop-after tma-insertion --verbose
  tilewright run --m 256 --n 256 --k 256 --identity a
  tilewright run matmul.zip --json
  tilewright run matmul.zip --reference matmul.mlir
  tilewright run kernel.mlir --m 512 --n 768 --k 320
  tilewright run matmul.zip --device cuda
  tilewright run --m-dynamic 77 --n 768 --k 320
  tilewright run --batch-dynamic 5 --m 96 --n 96 --k 64
  tilewright run --k-dynamic 200 --m 96 --n 72 --a-major m --b-major n
"""
CALLED = {"m": "M", "batch": "batch", "k": "K"}


def add_command(commands: Any) -> None:
    """Add `run` to the command line."""
    parser: Parser = commands.add_parser(
        "run",
        help="compile and run a matmul, and compare every element with its source",
        description="Runs a matmul on random inputs and compares every element with its source,"
        " evaluated in float64. Exit status 1 when one is out of its bound.",
        epilog=EXAMPLES,
    )
    add_problem(parser, "an .mlir file (linalg, or IR after any pass), a .pt2 file, or a bundle")
    add_pipeline(parser)
    reads_in_child(parser)
    group = parser.add_argument_group("run")
    group.add_argument(
        "--m-dynamic",
        type=positive,
        metavar="SIZE",
        help="run a kernel for any M with this many rows, scheduled for --m",
    )
    group.add_argument(
        "--batch-dynamic",
        type=positive,
        metavar="SIZE",
        help="run a kernel for any batch with this many matrices, scheduled for --batch",
    )
    group.add_argument(
        "--k-dynamic",
        type=natural,
        metavar="SIZE",
        help="run a kernel for any K with this K, scheduled for --k",
    )
    group.add_argument(
        "--device", type=_device, default="emulator", help="emulator (the default), cuda or cuda:N"
    )
    add_seed(group)
    group.add_argument(
        "--identity", choices=["a", "b"], help="make this operand an identity matrix"
    )
    add_reference(group)
    group.add_argument("-o", "--output", type=Path, metavar="PATH", help="also write the bundle")
    group.add_argument("-v", "--verbose", action="store_true", help="say what each pass did")
    add_emulator_flags(parser.add_argument_group("emulator"))
    add_json(parser)
    parser.set_defaults(target=None, command=functools.partial(run_command, parser))


def _device(text: str) -> str:
    if not re.fullmatch(r"emulator|cuda(:[0-9]+)?", text):
        raise argparse.ArgumentTypeError(f"must be emulator, cuda or cuda:N, got '{text}'")
    return text


def run_command(parser: Parser, options: argparse.Namespace) -> int:
    """Run as the options say; 0 when every element is within its bound."""
    from ...runtime.launch.devices import open_device

    how = emulator_options(parser, options)
    device = open_device(options.device)
    options.chip, options.target = options.target, options.target or device.target
    if options.output is not None:
        from ...compiler.bundle_writer import check_replaceable

        _check_bundle_name(parser, options.output)
        check_place(options.output, bundle=True)
        check_replaceable(options.output)
    outcome = _run(device, parser, options, how)
    write_report(outcome.report, options.report_json)
    if options.json:
        print_json(_as_dict(outcome, options))
    else:
        from ..runs.report import print_outcome

        print_outcome(outcome, options)
    return 0 if outcome.comparison.passed else 1


def _check_bundle_name(parser: Parser, path: Path) -> None:
    """Refuse a name by which `tilewright compile` writes something else."""
    if SUFFIXES.get(path.suffix, "bundle") != "bundle":
        rule = "-o must name a folder or a .zip, which a bundle is"
        parser.error(f"{rule}, got {path}; `tilewright compile -o {path}` writes that")


def _run(device: Any, parser: Parser, options: argparse.Namespace, how: dict[str, Any]) -> Outcome:
    from ..runs.inputs import place_tensors
    from ..runs.references import compare_with

    passes: list[tuple[str, float, str]] = []
    with Progress("loading") as progress:
        obtained = _obtain(parser, options, passes, progress)
        obtained = _sized(obtained, options, parser)
        bundle, reference = obtained.bundle, obtained.reference
        check_sums(parser, options, bundle.ptx)
        progress.update("making inputs")
        tensors = reference.tensors(bundle.manifest, options.seed, options.identity)
        if options.k_dynamic == 0:
            _clear_operands(bundle.manifest, tensors)
            obtained.remarks.append(NOTHING)
        placed = place_tensors(tensors, device.place)
        progress.update(f"running on the {device.name}")
        started = time.perf_counter()
        report = device.launch(bundle, placed, options.seed, **how)
        run_seconds = time.perf_counter() - started
        progress.update("comparing with the reference")
        on_gpu = device.place != "cpu" or how.get("fp8_sums") == "hopper"  # which has its limits
        back = place_tensors(placed, "cpu")
        comparison = compare_with(reference, bundle.manifest, back, on_gpu)
    return Outcome(obtained, comparison, report, run_seconds, passes)


def _clear_operands(manifest: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Zeros in A and B, whose one column along K stands for none."""
    from ...runtime.bundles.manifest import operands

    for operand in operands(manifest):
        tensors[operand["name"]].zero_()


def _obtain(
    parser: Parser,
    options: argparse.Namespace,
    passes: list[tuple[str, float, str]],
    progress: Progress,
) -> Obtained:
    """The kernel to run and what to hold it to: of a bundle, or compiled."""
    from ...compiler.importers.file_kinds import EXPORTED
    from ...runtime.bundles.bundle import is_bundle, read_bundle
    from ..runs.references import of_kernel

    _hint_sizes(options)
    asked = reference_of(options, parser)
    file: Path | None = options.file
    if file is not None and file.suffix != EXPORTED and (file.suffix == ".zip" or is_bundle(file)):
        _refuse_compilation(parser, options)
        problem(options, parser, allows_spec=True)
        bundle = read_bundle(file)
        _refuse_another_chip(parser, options, bundle.manifest["target"])
        return Obtained(bundle, of_kernel(asked))
    return _compile(parser, options, asked, passes, progress)


def _hint_sizes(options: argparse.Namespace) -> None:
    """Sizes to choose a schedule for, where the flags say only those to run."""
    from ...compiler.spec import BATCH_HINT, DEPTH_HINT, ROWS_HINT

    if options.m_dynamic and options.file is None and options.m is None:
        options.m = ROWS_HINT
    if options.batch_dynamic and options.file is None and options.batch is None:
        options.batch = BATCH_HINT
    if options.k_dynamic is not None and options.file is None and options.k is None:
        options.k = DEPTH_HINT


def _compile(
    parser: Parser,
    options: argparse.Namespace,
    asked: MatmulSpec | Path | None,
    passes: list[tuple[str, float, str]],
    progress: Progress,
) -> Obtained:
    """The kernel of a spec or a file; `asked` is what a kernel that comes in is held to."""
    from ...compiler.bundle_writer import as_bundle
    from ...compiler.driver import compile_matmul
    from ..runs.references import of_kernel, of_source

    source = problem(options, parser, allows_spec=True)
    opened = {f"dynamic_{name}": getattr(options, f"{name}_dynamic") for name in CALLED}
    sizes = [max(1, size) for size in opened.values() if size is not None]
    if sizes and not isinstance(source, Path):
        source = replace(source, **{name: size is not None for name, size in opened.items()})

    def observe(event: Any) -> None:
        passes.append((event.name, event.seconds, event.summary))
        progress.update(f"compiling, after {event.name}")

    compiled = compile_matmul(source, observer=observe, **compile_keywords(options))
    options.target = options.chip or compiled.target
    if compiled.level is None and asked is not None:
        parser.error("a reference must come with a kernel; the source is its own")
    reference = of_source(source, sizes) if compiled.level is None else of_kernel(asked)
    bundle = as_bundle(compiled, options.output)
    as_chosen = compiled.chosen and not compiled.given_up
    return Obtained(bundle, reference, list(compiled.remarks), as_chosen)


def _sized(obtained: Obtained, options: argparse.Namespace, parser: Parser) -> Obtained:
    """The kernel for the M and batch to run, where it takes any."""
    from ...runtime.bundles.sizes import size_names

    own = size_names(obtained.bundle.manifest)
    for name, called in CALLED.items():
        flag, given = f"--{name}-dynamic", getattr(options, f"{name}_dynamic")
        if name in own and given is None:
            parser.error(f"a kernel for any {called} must come with {flag}, got none")
        if name not in own and given is not None:
            rule = f"{flag} must come with a kernel for any {called}"
            parser.error(f"{rule}, got {given} for one of one {called}")
    sizes = [max(1, getattr(options, f"{name}_dynamic")) for name in own]
    return replace(obtained, bundle=obtained.bundle.at(*sizes)) if sizes else obtained


def _refuse_compilation(parser: Parser, options: argparse.Namespace) -> None:
    flags = {"--pipeline": options.pipeline, "--preset": options.preset, "--load": options.load}
    flags |= {"--stop-after": options.stop_after, "--math": options.math, "-o": options.output}
    flags |= {"--allow-spills": options.allow_spills, "--origins": options.origins}
    given = [flag for flag, value in flags.items() if value not in (None, False)]
    if given:
        parser.error(f"a bundle is compiled already and must come without {', '.join(given)}")


def _refuse_another_chip(parser: Parser, options: argparse.Namespace, compiled: str) -> None:
    """Refuse a chip that is asked for and is not that of a bundle."""
    from ...dialects.target import find_target

    if options.chip is not None and find_target(options.chip).chip != compiled:
        rule = f"a bundle of {compiled} must come without another --target"
        parser.error(f"{rule}, got {options.chip}")


def _as_dict(outcome: Outcome, options: argparse.Namespace) -> dict[str, Any]:
    manifest = outcome.bundle.manifest
    return {
        "ok": outcome.comparison.passed,
        "device": options.device,
        "seed": options.seed,
        "bundle": str(outcome.bundle.path) if outcome.bundle.path else None,
        "spec": manifest["spec"],
        "pipeline": manifest["pipeline"],
        "resources": manifest["resources"],
        "passes": [
            {"name": name, "seconds": seconds, "summary": summary}
            for name, seconds, summary in outcome.passes
        ],
        "remarks": outcome.obtained.remarks,
        "reference": outcome.obtained.reference.said,
        "comparison": outcome.comparison.as_dict(),
        "run_seconds": outcome.run_seconds,
        "report": outcome.report.as_dict(),
    }
