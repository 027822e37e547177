"""`tilewright bisect`: names the first pass after which the kernel is wrong, and what it changed.

Every prefix of a pipeline, lowered, must compute what the whole one computes. So each is lowered
and run on the emulator, in order, until one is wrong: an element out of its bound, a verdict or a
warning of the emulator, or a refusal by the passes that follow.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import (
    Parser,
    add_json,
    add_problem,
    add_reference,
    add_schedule,
    add_seed,
    problem,
    reference_of,
)
from ..command_line.emulator_flags import DEFAULT_CHECK, add_check_flag
from ..command_line.ir_diff import ir_diff
from ..command_line.isolated import reads_in_child
from ..command_line.output import print_json
from ..command_line.progress import Progress

if TYPE_CHECKING:
    from ...compiler.driver import Plan
    from ...compiler.pipeline import PassCall
    from ...compiler.spec import MatmulSpec
    from ..runs.references import Reference

EXAMPLES = """examples:
  tilewright bisect --m 256 --n 256 --k 128 --preset v6
  tilewright bisect matmul.mlir --pipeline 'tiling,tma-insertion,pipelining' --variants
  tilewright bisect kernel.mlir --pipeline warp-specialization --reference matmul.mlir
"""
FILE = "the file itself"


@dataclass
class Step:
    """A prefix of the pipeline, as it is named, and how it was found: right, refused or wrong.

    A variant of a pass may be refused: the pass that stands in the pipeline may not.
    """

    name: str
    passes: list[PassCall]
    is_variant: bool = False
    found: str = "right"
    said: str | None = None
    seconds: float = 0.0

    @property
    def ends_the_search(self) -> bool:
        """Whether something is the matter with it."""
        return self.found == "wrong" or (self.found == "refused" and not self.is_variant)


def add_command(commands: Any) -> None:
    """Add `bisect` to the command line."""
    parser: Parser = commands.add_parser(
        "bisect",
        help="name the first pass after which a kernel is wrong",
        description="Lowers and runs every prefix of a pipeline on the emulator and names the first"
        " pass after which the result or the kernel's behaviour is wrong, with what it changed.",
        epilog=EXAMPLES,
    )
    add_problem(parser, "an .mlir file (linalg, or IR after any pass), or a .pt2 file")
    add_schedule(parser.add_argument_group("compilation"))
    reads_in_child(parser)
    group = parser.add_argument_group("run")
    add_seed(group)
    add_reference(group)
    add_check_flag(group)
    group.add_argument(
        "--variants",
        action="store_true",
        help="also try the other choices of each pass's options",
    )
    add_json(parser)
    parser.set_defaults(command=functools.partial(bisect_command, parser))


def bisect_command(parser: Parser, options: argparse.Namespace) -> int:
    """Judge the prefixes in order; 0 when all are right."""
    from ...compiler.driver import plan_passes

    source, asked = problem(options, parser, allows_spec=True), reference_of(options, parser)
    how = {name: getattr(options, name) for name in ("target", "pipeline", "preset")}
    with Progress("loading the compiler") as progress:
        plan = plan_passes(source, **how)
        if plan.level is None and asked is not None:
            parser.error("a reference must come with a kernel; the source is its own")
        steps = list(_steps(plan, options.variants))
        if not steps:
            parser.error("a pipeline must have a pass that leaves a kernel, as tiling, got none")
        judge = Judge(source, _reference(source, asked, plan), options)
        done = []
        for step in steps:
            progress.update(f"judging {step.name}")
            done.append(judge.judged(step))
            if step.ends_the_search:
                break
    found = done[-1] if done and done[-1].ends_the_search else None
    diff = _diff(source, plan, found, options.target) if found else None
    if options.json:
        print_json(_as_dict(done, found, diff))
    else:
        _print(done, found, diff)
    return 1 if found else 0


def _reference(source: MatmulSpec | Path, asked: Any, plan: Plan) -> Reference:
    from ..runs.references import of_kernel, of_source

    return of_source(source) if plan.level is None else of_kernel(asked)


def _steps(plan: Plan, variants: bool) -> Iterator[Step]:
    """Every prefix that has a kernel, followed by the lowering; variants: and its last pass's."""
    from ...compiler.levels import is_kernel, is_lowering

    lowering = [call for call in plan.calls if is_lowering(call.name)]
    schedule = plan.calls[: len(plan.calls) - len(lowering)]
    if is_kernel(plan.level):
        yield Step(FILE, lowering)
    for end, call in enumerate(schedule, 1):
        if not is_kernel(call.name):
            continue
        for last in [call, *(_variants(call) if variants else ())]:
            passes = [*schedule[: end - 1], last, *lowering]
            yield Step(str(last), passes, is_variant=last is not call)


def _variants(call: PassCall) -> Iterator[PassCall]:
    """The pass with another choice for one of its options."""
    from ...passes import PASSES
    from ...passes.base import choices_of

    given, default = dict(call.options), PASSES[call.name]()
    for name, choices in choices_of(PASSES[call.name]).items():
        now = given.get(name, str(getattr(default, name)).lower())
        for choice in choices:
            if choice != now:
                yield replace(call, options=tuple({**given, name: choice}.items()))


class Judge:
    """Compiles a prefix, runs it on the emulator, and compares every element."""

    def __init__(self, source: Any, reference: Reference, options: argparse.Namespace):
        self._source, self._reference, self._options = source, reference, options

    def judged(self, step: Step) -> Step:
        """The step with how it was found."""
        from ...dialects.errors import CompileError
        from ...runtime.errors import DeviceError

        started = time.perf_counter()
        try:
            step.said = self._run(step)
            step.found = "wrong" if step.said else "right"
        except CompileError as error:
            step.found, step.said = "refused", str(error)
        except DeviceError as error:
            step.found, step.said = "wrong", str(error)
        step.seconds = time.perf_counter() - started
        return step

    def _run(self, step: Step) -> str | None:
        from ...compiler.bundle_writer import as_bundle
        from ...compiler.driver import compile_matmul
        from ...runtime.launch.devices import open_device
        from ..runs.references import compare_with
        from ..runs.report import verdict

        options, text = self._options, ",".join(map(str, step.passes)) or None
        compiled = compile_matmul(
            self._source, target=options.target, pipeline=text, allow_spills=True
        )
        bundle = as_bundle(compiled)
        tensors = self._reference.tensors(bundle.manifest, options.seed)
        check = options.check or DEFAULT_CHECK
        report = open_device("emulator").launch(bundle, tensors, options.seed, check=check)
        comparison = compare_with(self._reference, bundle.manifest, tensors)
        if not comparison.passed:
            return verdict(comparison)
        return next((f"warning: {each}" for each in report.warnings), None)


def _diff(source: Any, plan: Plan, found: Step, target: str | None) -> str | None:
    """What the last pass of the step before the lowering changed."""
    from ...compiler.driver import compile_matmul
    from ...compiler.levels import is_lowering
    from ...dialects.errors import CompileError

    calls = [call for call in found.passes if not is_lowering(call.name)]
    if not calls:
        return None
    texts = [plan.ir]
    try:
        compile_matmul(
            source,
            target=target,
            pipeline=",".join(map(str, calls)),
            stop_after=calls[-1].name,
            observer=lambda event: texts.append(event.ir()),
            until="mlir",
        )
    except CompileError:  # the pass itself refuses: there is nothing after it
        pass
    return ir_diff(texts[-2], texts[-1], calls[-1].name) if len(texts) > len(calls) else None


def _as_dict(done: list[Step], found: Step | None, diff: str | None) -> dict[str, Any]:
    steps = [
        {"after": step.name, "found": step.found, "said": step.said, "seconds": step.seconds}
        for step in done
    ]
    return {
        "ok": found is None,
        "first_wrong": found.name if found else None,
        "steps": steps,
        "diff": diff,
    }


def _print(done: list[Step], found: Step | None, diff: str | None) -> None:
    from ..command_line.tables import print_table

    rows = [[step.name, f"{step.seconds:.2f}", step.found] for step in done]
    print_table(["after", "[s]", "the kernel is"], rows)
    if found is None:
        print(f"nothing is wrong after any of {len(done)} prefixes")
        return
    print(f"first wrong after {found.name}: {found.said}")
    if len(done) == 1:
        print("no prefix before it has a kernel: the fault may also be in the lowering")
    if diff:
        print(diff, end="")
