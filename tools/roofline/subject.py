"""`tilewright explain roofline`: what kernels compute and move, beside the ceilings of the chip."""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import (
    Parser,
    add_json,
    add_problem,
    add_schedule,
    natural,
    problem,
    spec_of,
)
from ..command_line.isolated import reads_in_child
from ..command_line.output import check_place, print_json, write_text
from ..command_line.progress import Progress
from ..layouts.fragments import add_picture

if TYPE_CHECKING:
    from ...compiler.spec import MatmulSpec
    from ...runtime.bundles.bundle import Bundle
    from .model import Counts, Roofline

EXAMPLES = """examples:
  tilewright explain roofline --m 512 --n 512 --k 512 --preset v2a
  tilewright explain roofline --m 512 --n 512 --k 512 --presets v1a,v2a,v5 --svg ladder.svg
  tilewright explain roofline --m 512 --n 512 --k 512 --ladder --times measured.json
  tilewright explain roofline --m 4096 --n 4096 --k 4096 --presets v1a,v5 --scale --published
  tilewright explain roofline matmul.zip --json
  tilewright explain roofline kernel.ptx --launch launch.json --gpu rtx4090
  tilewright explain roofline kernel.ptx --launch launch.json --target sm_90a
"""
WIDTH = 150
MAX_TIMES_BYTES = 1 << 20
PTX_SUFFIX = ".ptx"
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)


def add_subject(subjects: Any) -> None:
    """Add `roofline` to what can be explained."""
    parser: Parser = subjects.add_parser(
        "roofline",
        help="operations and bytes of a kernel by level, beside what the chip can do",
        description="Runs kernels on the emulator, which counts their operations and the bytes that"
        " each level of memory moves, and says what they take at least and what limits them.",
        epilog=EXAMPLES,
    )
    add_problem(parser, "an .mlir or .pt2 file, a bundle, or PTX with --launch")
    group = parser.add_argument_group("kernels")
    add_schedule(group)
    group.add_argument("--ladder", action="store_true", help="every preset of the chip")
    group.add_argument("--presets", metavar="A,B", help="these presets, on one picture")
    group.add_argument("--launch", type=Path, metavar="LAUNCH.json", help="how to launch PTX")
    group.add_argument(
        "--scale",
        action="store_true",
        help="run two clusters and scale what they do, where all do the same",
    )
    group.add_argument("--seed", type=natural, default=0, metavar="N", help="fixes inputs")
    parser.add_argument(
        "--times", type=Path, metavar="FILE.json", help="measured microseconds by kernel or preset"
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="beside the speeds that the presets' sources measured, at their shape",
    )
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        help="hold kernels to this GPU: b200, h200, a100, rtx4090, … (default: the target's)",
    )
    add_picture(parser)
    reads_in_child(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_roofline_command, parser))


def explain_roofline_command(parser: Parser, options: argparse.Namespace) -> int:
    """Count, and print or draw."""
    check_place(options.svg)
    _check_flags(parser, options)
    from .model import rooflines_of

    names = _names(options)
    times = _times(options, names)
    with Progress("loading the compiler") as progress:
        counts = list(_counts(parser, options, names, progress))
        kernels = rooflines_of(counts, times, _gpu_of(options))
        for kernel in kernels:
            _ = kernel.unit  # that it has one is checked before anything is written
    if options.svg:
        from .plot import draw

        write_text(draw(_title(options, kernels), kernels), options.svg)
    if options.json:
        print_json({"ok": True, "scaled": options.scale, **_as_dict(kernels)})
        return 0
    if len(kernels) == 1:
        _print_one(kernels[0])
    else:
        _print_ladder(kernels)
    if options.scale:
        print("counted on the first and the last cluster and scaled: all clusters do the same")
    return 0


def _check_flags(parser: Parser, options: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    several = "--ladder" if options.ladder else "--presets" if options.presets is not None else None
    one = {"FILE": options.file, "--preset": options.preset, "--pipeline": options.pipeline}
    given = [name for name, value in one.items() if value is not None]
    if options.ladder and options.presets is not None:
        parser.error("--ladder must come without --presets, which names some of its rungs")
    if several and given:
        parser.error(f"{several} must come with spec flags alone, got {', '.join(given)}")
    is_ptx = options.file is not None and options.file.suffix == PTX_SUFFIX
    if is_ptx and options.launch is None:
        parser.error(f"{options.file} must come with --launch LAUNCH.json, got none")
    if options.launch is not None and not is_ptx:
        parser.error("--launch must come with a FILE of PTX, whose name ends in .ptx")
    if options.scale and is_ptx:
        parser.error("--scale must come with a kernel of this compiler, got PTX")
    compiled = [name for name in given if name != "FILE"]
    if options.published and (options.times or options.gpu or not several):
        parser.error("--published must come with --presets or --ladder, no --times and no --gpu")
    if is_ptx and compiled:
        parser.error(f"PTX is compiled already and must come without {', '.join(compiled)}")


def _names(options: argparse.Namespace) -> list[str]:
    """What the kernels are called, in the order of the picture."""
    if options.ladder or options.presets is not None:
        from ..ladder.steps import preset_names

        return preset_names(options.presets, options.target or "sm_100a")
    if options.file is not None:
        return [options.file.stem]
    return [options.preset or "kernel"]


def _times(options: argparse.Namespace, names: list[str]) -> dict[str, float]:
    """Measured microseconds by name: those of a file, of the presets' sources, or none."""
    if options.published:
        shape = (options.m, options.n, options.k)
        return published_times(names, shape, options.target or "sm_100a")
    return {} if options.times is None else read_times(options.times, names)


def published_times(names: list[str], shape: tuple[int, ...], target: str) -> dict[str, float]:
    """The published times of presets on a chip; CompileError for another shape."""
    from ...dialects.errors import CompileError
    from ..ladder.published import PUBLISHED

    found = {name: PUBLISHED[name] for name in names if name in PUBLISHED}
    found = {name: each for name, each in found.items() if each.series.chip == target}
    for name, each in found.items():
        if each.series.shape != shape:
            measured, got = ("×".join(map(str, extents)) for extents in (each.series.shape, shape))
            rule = f"--published: {name} was measured at {measured}, got {got}"
            raise CompileError(f"{rule}; take its shape, with --scale")
    return {name: each.us for name, each in found.items()}


def read_times(path: Path, names: list[str]) -> dict[str, float]:
    """Microseconds by name, from a file of strangers; CompileError says what is wrong with it."""
    from ...dialects.errors import CompileError
    from ...runtime.regular_files import UnfitFile, read_regular
    from ...runtime.strict_json import parse_json

    try:
        times = parse_json(read_regular(path, MAX_TIMES_BYTES))
    except (UnfitFile, ValueError) as error:
        rule = f"must be a JSON file of at most {MAX_TIMES_BYTES} bytes, got: {error}"
        raise CompileError(f"{path}: {rule}; check it") from error
    if not isinstance(times, dict):
        raise CompileError(
            f"{path}: must be an object of microseconds by name, got another value; name each"
        )
    for name, value in times.items():
        if name not in names:
            known = ", ".join(names)
            raise CompileError(f"{path}: names must be of {known}, got {name[:60]!r}; drop it")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < 1e12:
            raise CompileError(
                f"{path}: {name}: must be microseconds above 0, got {value!r:.60}; drop it"
            )
    return times


# -- counting --------------------------------------------------------------------------------


def _counts(
    parser: Parser, options: argparse.Namespace, names: list[str], progress: Progress
) -> Iterator[Counts]:
    if options.launch is not None:
        progress.update("running the kernel")
        yield _counts_of_ptx(parser, options, names[0])
        return
    from ...compiler.schedule.chips.ceilings import ceilings_of

    several = options.ladder or options.presets is not None
    source = spec_of(options, parser) if several else _source(parser, options)
    for name in names:
        progress.update(f"{name}: compiling and running")
        preset = name if several else options.preset
        bundle = _bundle(source, options, preset)
        ceilings_of(bundle.manifest["target"], options.gpu)  # refused before it is run
        yield _counts_of_bundle(name, bundle, options.seed, options.scale)


def _source(parser: Parser, options: argparse.Namespace) -> MatmulSpec | Path:
    source = problem(options, parser)
    given = [f"--{name}" for name in ("target", "preset", "pipeline") if getattr(options, name)]
    if given and _is_bundle(source):
        parser.error(f"a bundle is compiled already and must come without {', '.join(given)}")
    return source


def _is_bundle(source: MatmulSpec | Path) -> bool:
    from ...compiler.importers.file_kinds import EXPORTED
    from ...runtime.bundles.bundle import is_bundle

    return isinstance(source, Path) and source.suffix != EXPORTED and is_bundle(source)


def _bundle(source: MatmulSpec | Path, options: argparse.Namespace, preset: str | None) -> Bundle:
    from ...runtime.bundles.bundle import read_bundle

    if isinstance(source, Path) and _is_bundle(source):
        return _of_one_size(read_bundle(source), source)
    from ...compiler.bundle_writer import as_bundle
    from ...compiler.driver import compile_matmul

    how = dict(target=options.target, pipeline=options.pipeline, preset=preset)
    return as_bundle(compile_matmul(source, allow_spills=True, **how))


def _of_one_size(bundle: Bundle, path: Path) -> Bundle:
    from ...runtime.bundles.sizes import is_dynamic
    from ...runtime.errors import LaunchError

    if is_dynamic(bundle.manifest):
        rule = "must be of known sizes, whose tiles can be counted"
        raise LaunchError(f"{path}: {rule}, got a kernel for any; compile it for one")
    return bundle


def _counts_of_bundle(name: str, bundle: Bundle, seed: int, scaled: bool) -> Counts:
    from math import prod

    from ...runtime.launch.devices import open_device
    from ..runs.references import OfManifest
    from .model import counts_of
    from .scale import scaled_counts

    manifest = bundle.manifest
    tensors = OfManifest().tensors(manifest, seed)
    ctas, how = prod(manifest["grid"]), {"check": "off", "profile": True}
    if scaled:
        return scaled_counts(name, bundle, tensors, how)
    report = open_device("emulator").launch(bundle, tensors, seed, **how)
    return counts_of(name, manifest["target"], ctas, report.profile)


def _counts_of_ptx(parser: Parser, options: argparse.Namespace, name: str) -> Counts:
    from math import prod

    from ...compiler.schedule.chips.ceilings import ceilings_of
    from ...dialects.target import GPUS
    from ...runtime.launch_files.description import read_launch_file, triple
    from ...runtime.launch_files.options import RunOptions
    from ...runtime.launch_files.running import run_once
    from .model import counts_of

    problem(options, parser)
    how = RunOptions(profile=True, check="off")
    grid = prod(triple(read_launch_file(options.launch)["grid"]))
    named = GPUS.get(options.target)
    target = named.chip if named else options.target or _target_of(options.file)
    ceilings_of(target, _gpu_of(options))
    report = run_once(options.file, options.launch, options.seed, how).report
    assert report.profile is not None
    return counts_of(name, target, grid, report.profile)


def _gpu_of(options: argparse.Namespace) -> str | None:
    """The GPU that kernels are held to: the one that is named, or that the target is."""
    from ...dialects.target import GPUS

    named = GPUS.get(options.target)
    return options.gpu or (named.gpu if named else None) or None


def _target_of(path: Path) -> str:
    """The chip that PTX is for: that of its `.target`."""
    from ...runtime.launch_files.running import read_ptx

    found = _TARGET.search(read_ptx(path))
    return found[1] if found else "sm_100a"


# -- printing --------------------------------------------------------------------------------


def _title(options: argparse.Namespace, kernels: list[Roofline]) -> str:
    ceilings = kernels[0].ceilings
    chip = ceilings.chip if _gpu_of(options) is None else ceilings.gpu
    if options.m is None:
        return f"{kernels[0].counts.name} on {chip}"
    return f"{options.m}×{options.n}×{options.k} on {chip}"


def _as_dict(kernels: list[Roofline]) -> dict[str, Any]:
    ceilings = kernels[0].ceilings
    compute = {" ".join(key): each.as_dict() for key, each in ceilings.compute.items()}
    memory = {level: each.as_dict() for level, each in ceilings.memory.items()}
    return {
        "target": kernels[0].counts.target,
        "gpu": ceilings.gpu,
        "multiprocessors": ceilings.multiprocessors,
        "ceilings": {"compute": compute, "memory": memory},
        "kernels": [kernel.as_dict() for kernel in kernels],
    }


def _print_one(kernel: Roofline) -> None:
    from ..command_line.tables import print_table

    counts, seconds = kernel.counts, kernel.seconds
    print(f"kernel     {counts.name}, {counts.target}, {counts.ctas} CTAs")
    for (unit, type_), count in sorted(counts.operations.items()):
        print(f"operations {count} by {unit}, {type_}")
    unit = " ".join(kernel.unit)
    rate = f"{kernel.peak / 1e12:.4g} TFLOP/s"
    rows = [[unit, "", "", "", rate, f"{1e6 * seconds[unit]:.3g}"]]
    for level in kernel.levels:
        rate = f"{kernel.ceilings.memory[level] / 1e12:.3g} TB/s"
        amounts = [str(counts.asked[level]), str(counts.moved[level])]
        intensity = f"{kernel.intensity(level):.4g}"
        rows.append([level, *amounts, intensity, rate, f"{1e6 * seconds[level]:.3g}"])
    columns = ("", "asked [B]", "moved [B]", "intensity [1/B]", "ceiling", "at least [us]")
    print_table(columns, rows, width=WIDTH)
    print(f"limit      {kernel.limit}: at least {kernel.at_least_us:.3g} us{_measured(kernel)}")
    print("\n".join(_notes([kernel])))


def _measured(kernel: Roofline) -> str:
    if kernel.measured_us is None:
        return ""
    share = kernel.at_least_us / kernel.measured_us
    return f"; measured {kernel.measured_us:g} us, which is {share:.0%} of the limit's speed"


def _print_ladder(kernels: list[Roofline]) -> None:
    from ..command_line.tables import print_table

    levels = list(dict.fromkeys(level for each in kernels for level in each.levels))
    columns = ["kernel", "CTAs []", "operations []", *(f"{level} [1/B]" for level in levels)]
    columns += ["limit", "at least [us]", "measured [us]"]
    rows = []
    for each in kernels:
        row = [each.counts.name, str(each.counts.ctas), str(each.operations)]
        row += [f"{each.intensity(n):.4g}" if n in each.levels else "-" for n in levels]
        measured = "-" if each.measured_us is None else f"{each.measured_us:g}"
        rows.append([*row, each.limit, f"{each.at_least_us:.3g}", measured])
    print_table(columns, rows, width=WIDTH)
    print("\n".join(_notes(kernels)))


def _notes(kernels: list[Roofline]) -> Iterator[str]:
    """What the ceilings are and where they are from."""
    ceilings = kernels[0].ceilings
    fewest = min(each.counts.ctas for each in kernels)
    note = f"the ceilings are those of the whole chip ({ceilings.gpu})"
    if fewest < ceilings.multiprocessors:
        note += f": {fewest} CTAs use {fewest} of {ceilings.multiprocessors} multiprocessors"
    yield note
    for unit, type_ in dict.fromkeys(each.unit for each in kernels):
        figure = ceilings.rate(unit, type_)
        assert figure is not None
        yield f"{unit} {type_}: {figure / 1e12:.4g} TFLOP/s: {figure.source}"
    for level in dict.fromkeys(level for each in kernels for level in each.levels):
        figure = ceilings.memory[level]
        yield f"{level}: {figure / 1e12:.3g} TB/s: {figure.source}"
