"""`tilewright explain schedule --pipeline TEXT`: the estimate of a given pipeline."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from ..command_line.arguments import Parser
from ..command_line.output import print_json
from ..command_line.progress import Progress

if TYPE_CHECKING:
    from ...compiler.schedule.estimates.costs import Estimate
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import Target

INPUTS = ("random", "quiet", "sustained")


def add_pipeline_flags(parser: Parser) -> None:
    """What to estimate in place of a choice, and how it is run."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--pipeline", metavar="TEXT", help="estimate what these passes make, as 'a{x=1},b'"
    )
    which.add_argument("--preset", metavar="NAME", help="estimate a named pipeline")
    parser.add_argument(
        "--inputs",
        choices=INPUTS,
        help="operands and length of a run: any bits (random), few that change (quiet), any bits"
        " for seconds (sustained); with --pipeline or --preset, of tensor memory",
    )
    parser.add_argument(
        "--columns", type=int, metavar="N", help="of tensor memory that a CTA takes, with the same"
    )


def is_asked(parser: Parser, options: argparse.Namespace) -> bool:
    """Whether a pipeline is to be estimated; the flags that go with it need it."""
    named = options.pipeline is not None or options.preset is not None
    if not named and (options.inputs or options.columns is not None):
        parser.error("--inputs and --columns must come with --pipeline or --preset")
    return named


def explain_estimate(options: argparse.Namespace, spec: MatmulSpec, target: Target) -> int:
    """Print what the kernel of a pipeline is expected to take."""
    found = _estimated(options, spec, target)
    if options.json:
        print_json({"ok": True, "target": target.chip, "estimate": asdict(found)})
        return 0
    for each in fields(found):
        value = getattr(found, each.name)
        print(
            f"{each.name:14} {value:.2f}" if isinstance(value, float) else f"{each.name:14} {value}"
        )
    flops = 2 * max(1, spec.batch) * spec.m * spec.n * spec.k
    print(f"{'TFLOP/s':14} {flops / found.total_us / 1e6:.1f}")
    return 0


def _estimated(options: argparse.Namespace, spec: MatmulSpec, target: Target) -> Estimate:
    from ...compiler.pipeline import parse_pipeline
    from ...compiler.schedule.estimates.rungs import predict
    from ...compiler.schedule.problem import Problem
    from ...dialects.errors import CompileError

    _refuse_unread(options, target)
    _refuse_no_kernel(options, spec)
    text = options.pipeline if options.preset is None else _preset(options.preset)
    passes = [(call.name, dict(call.options)) for call in parse_pipeline(text)]
    inputs = options.inputs or INPUTS[0]
    found = predict(Problem.of(spec, target), passes, target, options.columns, inputs)
    if found is None:
        rule = "schedule: an estimate must know every pass and option of a kernel"
        raise CompileError(f"{rule}, got {text}; copy by TMA, and say tile, stages and cluster")
    return found


def _refuse_no_kernel(options: argparse.Namespace, spec: MatmulSpec) -> None:
    """Raise what a pass says of a pipeline that makes no kernel for the target: nothing would take
    the time of an estimate."""
    from ...compiler.driver import compile_matmul

    named = {"pipeline": options.pipeline, "preset": options.preset, "target": options.target}
    with Progress("compiling"):
        compile_matmul(options.file or spec, until="mlir", **named)


def _refuse_unread(options: argparse.Namespace, target: Target) -> None:
    from ...dialects.errors import OptionError

    asked = options.inputs or options.columns is not None
    if asked and not target.has_tensor_memory:
        rule = "target: must be a chip with tensor memory for --inputs and --columns"
        raise OptionError(f"{rule}, got {target.chip}; leave them out")
    if options.columns is not None and not 0 < options.columns <= target.tmem_columns:
        rule = f"columns: must be 1 to {target.tmem_columns}, got {options.columns}"
        raise OptionError(f"{rule}; leave it out for what the tile needs")


def _preset(name: str) -> str:
    from ...compiler.pipeline import all_presets
    from ...dialects.errors import OptionError

    presets = all_presets()
    if name not in presets:
        known = ", ".join(presets)
        raise OptionError(f"preset: unknown name {name!r}; use one of {known}")
    return presets[name]
