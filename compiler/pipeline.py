"""Pipelines: their text, the named ones, and running passes on a module.

pipeline := pass ("," pass)*        pass := name [ "{" name "=" value (" " name "=" value)* "}" ]
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from ..dialects.context import lent_context, one_thread_at_a_time
from ..dialects.errors import CompileError, OptionError, instead_of
from ..dialects.mlir import ir
from ..dialects.record import record
from ..dialects.target import find_target
from ..dialects.tile import KernelOp
from ..dialects.verify import MALFORMED
from ..passes import BY_REQUEST, LOWERING, PASSES, PIPELINE
from ..passes.base import (
    TARGET_ATTRIBUTE,
    Pass,
    PassLog,
    make_pass,
    target_of,
)
from ..passes.checks.attribute_forms import check_attribute_forms
from ..passes.checks.barriers.barriers import check_barriers
from ..passes.checks.counts import check_counts
from ..passes.checks.expanded import check_expanded
from ..passes.checks.finish import check_finish
from ..passes.checks.instructions import check_instructions
from ..passes.checks.kernel import check_kernels
from ..passes.checks.loops import check_loops
from ..passes.checks.memory import check_memory
from ..passes.checks.pipes.pipes import check_pipes
from ..passes.checks.products.handles import check_handles
from ..passes.expand.loops import is_expanded
from ..passes.linalg.check_matmul import check_matmuls
from ..passes.lowering.barriers.pipes_to_barriers import PipesToBarriers
from ..passes.lowering.planning.plan_memory import PlanMemory
from ..passes.lowering.select_instructions import SelectInstructions
from ..passes.thread_rules import check_threads
from .deferred_checks import DeferredChecks
from .ir_text import short_text
from .levels import check_pending, is_kernel, is_pending, level_of
from .mlir_errors import mlir_errors
from .presets import PRESETS_OF, THREAD_PRESETS

LOWERING_NAMES = tuple(pass_class.name for pass_class in LOWERING)
FIRST, LAST = PIPELINE[0].name, LOWERING_NAMES[-1]
OF_CHECKED = (PipesToBarriers.name, SelectInstructions.name)
"""Steps from a program with loops written out, all of which is checked, to its instructions."""
DEFAULT_PIPELINE = ",".join(
    pass_class.name for pass_class in PIPELINE[1:] if pass_class not in BY_REQUEST
)

_PASS = re.compile(r"\s*([\w-]+)\s*(\{([^{}]*)\})?\s*")
_OPTION = re.compile(r"([a-z_][a-z0-9_-]*)=(\S+)$")


@record
class PassCall:
    """One pass of a pipeline with its options as text."""

    name: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.name}{{{options}}}" if options else self.name

    def make(self) -> Pass:
        """The pass; `CompileError` for an unknown option or value."""
        return make_pass(PASSES[self.name], dict(self.options))


class PassEvent(NamedTuple):
    """One pass has run: its name, wall seconds, a line on what it did, the IR as text on call."""

    name: str
    seconds: float
    summary: str
    ir: Callable[[], str]


def all_presets() -> dict[str, str]:
    """Every named pipeline, whatever chip it is written for."""
    tables = (*PRESETS_OF.values(), THREAD_PRESETS)
    return {name: text for presets in tables for name, text in presets.items()}


def presets_of(chip: str) -> dict[str, str]:
    """The named pipelines that are written for a chip."""
    return PRESETS_OF[find_target(chip).chip]


def parse_pipeline(text: str) -> list[PassCall]:
    """The passes that `text` names, options checked; `CompileError` says where it goes wrong."""
    calls: list[PassCall] = []
    at = 0
    while True:
        match = _PASS.match(text, at)
        if match is None:
            raise _syntax("a pass name", text, at)
        calls.append(_call(match))
        at = match.end()
        if at == len(text):
            return calls
        if text[at] != ",":
            raise _syntax("',' or the end", text, at)
        at += 1


def _syntax(expected: str, text: str, at: int) -> OptionError:
    got = repr(text[at]) if at < len(text) else "the end"
    if text[at : at + 1] == "{":
        expected = "options as {name=value name=value}"
    return OptionError(f"pipeline: expected {expected} at column {at + 1}, got {got} in {text!r}")


def _call(match: re.Match[str]) -> PassCall:
    name = match[1]
    if name not in PASSES:
        raise OptionError(f"pipeline: unknown pass {name!r}; {instead_of(name, PASSES)}")
    options = []
    for part in (match[3] or "").split():
        option = _OPTION.match(part)
        if option is None:
            raise OptionError(f"pipeline: {name}: an option must be name=value, got {part!r}")
        if option[1] in dict(options):
            raise OptionError(f"pipeline: {name}: option {option[1]} is given twice")
        options.append((option[1], option[2]))
    call = PassCall(name, tuple(options))
    call.make()
    return call


def complete_pipeline(
    text: str | None,
    preset: str | None,
    stop_after: str | None,
    lower: bool,
    level: str | None = None,
) -> list[PassCall]:
    """The passes to run: `normalize` first, the named ones, `lower-to-nvvm` last if `lower`.

    `stop_after` leaves out the passes after it, but not the lowering. A module that is through the
    pass `level` takes those that come after it, and a kernel is only lowered unless a text says
    more. Of the lowering's passes a text names those with options; `with_lowering` adds the rest.
    """
    if text is not None and preset is not None:
        raise OptionError("pipeline: must be a text or a preset, got both; drop one")
    calls = _named(text, preset, level)
    if level is None and calls[0].name != FIRST:
        calls.insert(0, PassCall(FIRST))
    if stop_after is not None:
        calls = _cut(calls, stop_after, level)
    last = calls[-1].name if calls else level
    if (lower or stop_after == LAST) and last != LAST:
        calls.append(PassCall(LAST))
    return calls


def _named(text: str | None, preset: str | None, level: str | None) -> list[PassCall]:
    """The passes of a text or preset; a kernel has its schedule and needs none."""
    if text is not None:
        calls = parse_pipeline(text)
        check_pending([call.name for call in calls], level)
        return calls
    presets = all_presets()
    if preset is not None and preset not in presets:
        raise OptionError(f"preset: unknown name {preset!r}; use one of {', '.join(presets)}")
    if is_kernel(level):
        if preset is not None:
            rule = "preset: a kernel has a schedule already, got another whole one"
            raise OptionError(f"{rule}; name the passes that are left by a pipeline")
        return []
    calls = parse_pipeline(DEFAULT_PIPELINE if preset is None else presets[preset])
    return [call for call in calls if is_pending(call.name, level)]


def _cut(calls: list[PassCall], stop_after: str, level: str | None) -> list[PassCall]:
    names = [call.name for call in calls]
    if stop_after in LOWERING_NAMES:
        return _cut_lowering(calls, stop_after) if is_pending(stop_after, level) else []
    if stop_after not in names:
        known = f"use one of {', '.join(names)}" if names else "no pass is left to run"
        raise OptionError(f"stop-after: {stop_after!r} is not in the pipeline; {known}")
    return calls[: names.index(stop_after) + 1]


def _cut_lowering(calls: list[PassCall], stop_after: str) -> list[PassCall]:
    """The calls up to a pass of the lowering, named or not."""
    later = LOWERING_NAMES[LOWERING_NAMES.index(stop_after) + 1 :]
    kept = [call for call in calls if call.name not in later]
    is_named = any(call.name == stop_after for call in kept)
    return kept if is_named else [*kept, PassCall(stop_after)]


def with_lowering(calls: list[PassCall], level: str | None = None) -> list[PassCall]:
    """The calls, and before each pass of the lowering those that it needs and nobody names.

    The module is through `level` already.
    """
    full: list[PassCall] = []
    done = LOWERING_NAMES.index(level) + 1 if level in LOWERING_NAMES else 0
    for call in calls:
        if call.name in LOWERING_NAMES:
            number = LOWERING_NAMES.index(call.name)
            full += [PassCall(name) for name in LOWERING_NAMES[done:number]]
            done = number + 1
        full.append(call)
    return full


def pass_table() -> list[dict[str, Any]]:
    """For every pass in pipeline order, then those of users: name, summary and options with what
    each takes."""
    return [
        {
            "name": pass_class.name,
            "summary": (pass_class.__doc__ or "").strip().partition("\n")[0],
            "options": [
                f"{option.name} ({option.metadata['takes']})" for option in fields(pass_class)
            ],
        }
        for pass_class in (*PIPELINE, *LOWERING, *PASSES.entered().values())
    ]


def check_program(module: ir.Module) -> None:
    """Refuse a tile.matmul or kernel that breaks a rule that passes rely on, or that of pipes."""
    check_matmuls(module)
    check_instructions(module)
    check_memory(module)
    kernels = _kernels(module)
    for kernel in kernels:
        check_handles(kernel)
        check_finish(kernel)
    expanded = [kernel for kernel in kernels if is_expanded(kernel)]
    for kernel in expanded:
        check_expanded(kernel, target_of(module))
        check_loops(kernel)
    if not expanded:
        check_kernels(module)  # when loops are expanded, the program's rules are those of its ops
        check_pipes(module)
        check_threads(module)
    check_barriers(module)


def _kernels(module: ir.Module) -> list[KernelOp]:
    return [op for op in module.body.operations if isinstance(op, KernelOp)]


def check_plan(module: ir.Module) -> None:
    """Refuse a planned kernel whose memory or barriers cannot be as the plan says."""
    check_memory(module)
    check_barriers(module)


def run_passes(
    module: ir.Module,
    calls: list[PassCall],
    log: PassLog,
    observer: Callable[[PassEvent], None] | None = None,
    later: DeferredChecks | None = None,
) -> list[tuple[str, float]]:
    """Run the passes in order, verifying after each; (name, wall seconds) of each.

    A kernel that comes in, or that a user's pass was given, is checked before and after each pass,
    one that our passes make before it is lowered. Passes of the lowering that `calls` leave out run
    before those that need them. With `later` the caller lets it run the checks of what our own
    passes make.
    """
    seconds: list[tuple[str, float]] = []
    check_program(module)
    calls = with_lowering(calls, level_of(module))
    foreign = any(isinstance(op, KernelOp) for op in module.body.operations)
    if foreign or observer or not all(PASSES.is_own(call.name) for call in calls):
        later = None
    for number, call in enumerate(calls, 1):
        start = time.perf_counter()
        said = len(log.summary)
        last = number == len(calls) or calls[number].name in LOWERING_NAMES
        foreign = foreign or not PASSES.is_own(call.name)
        check = functools.partial(_check_after, call.name, foreign or last)
        with mlir_errors():
            call.make()(module, log)
        if later is None:
            check(module)
        else:
            later.add(module, check, is_late=call.name in OF_CHECKED)
        seconds.append((call.name, time.perf_counter() - start))
        if observer is not None:
            summary = "; ".join(log.summary[said:])
            observer(PassEvent(*seconds[-1], summary, lambda: short_text(module)))
    return seconds


def _check_after(name: str, whole: bool, module: ir.Module) -> None:
    """Verify what a pass left, and check of it what is checked there; `whole` the program."""
    with mlir_errors():
        module.operation.verify()
        if not PASSES.is_own(name):
            _check_forms(module)
        if name not in LOWERING_NAMES and whole:
            check_program(module)
        if name == PlanMemory.name:
            check_plan(module)
        if name == PipesToBarriers.name:
            check_barriers(module)


@one_thread_at_a_time
def run_passes_on_text(
    text: str,
    filename: str,
    passes: str,
    log: PassLog | None = None,
    target: str | None = None,
    long: bool = False,
) -> str:
    """The IR that `passes` leave of the module in `text`; `filename` names it in errors.

    `target` is a chip that takes the place of the one that the module names; `long` asks for MLIR's
    own text, not the short one (`compiler/ir_text.py`).
    """
    calls = parse_pipeline(passes)
    with lent_context(), ir.Location.unknown():
        module = parse_module(text, filename)
        if target is not None:
            chip = ir.StringAttr.get(find_target(target).chip)
            module.operation.attributes[TARGET_ATTRIBUTE] = chip
        run_passes(module, calls, log or PassLog())
        return str(module) if long else short_text(module)


@one_thread_at_a_time
def checked_text(text: str, filename: str, long: bool = False) -> str:
    """The IR in `text` as it is printed, once it is verified and its pipes are checked.

    Where loops are written out, barriers may have taken the place of pipes.
    """
    with lent_context(), ir.Location.unknown():
        module = parse_module(text, filename)
        if not any(map(is_expanded, _kernels(module))):
            check_pipes(module)
        return str(module) if long else short_text(module)


def parse_module(text: str, filename: str) -> ir.Module:
    """The module in `text`; a file of that name with this text keeps its name in locations."""
    from .importers.source_text import check_text

    check_text(text, filename)
    try:
        with mlir_errors(filename):
            known = Path(filename).is_file() and _is_text(filename)
            module = ir.Module.parseFile(filename) if known else ir.Module.parse(text)
    except MALFORMED as error:
        raise CompileError(
            f"module: ops must have attributes and types of their own form, got one of another "
            f"({error}); docs/dialects lists them",
            filename,
        ) from error
    _check_forms(module)
    return module


def _check_forms(module: ir.Module) -> None:
    """Refuse ops of others that are not of the forms that ours have."""
    check_counts(module)
    check_attribute_forms(module)


def _is_text(name: str) -> bool:
    """Whether MLIR can be told a file's name, which may be of any bytes."""
    return name == name.encode(errors="ignore").decode()
