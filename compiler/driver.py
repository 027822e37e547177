"""From a matmul to a cubin: parse, run the pipeline, emit PTX, assemble, describe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from ..dialects.context import lent_context, one_thread_at_a_time
from ..dialects.errors import CompileError, OptionError
from ..dialects.mlir import ir, llvm_ir_of
from ..dialects.target import find_target
from ..passes.base import MMA_ATTRIBUTE, PassLog, target_of
from ..passes.dynamic_rows import bound_rows
from ..passes.lowering.epilogue.late import LATE_MEETING
from ..passes.math_policy import ask_for_math
from ..passes.schedule.ping_pong import AGENTS
from .argument_layout import describe_arguments
from .backend import RoomError, assemble, assembler_ahead, emit_ptx
from .chosen_pipeline import ANY, TENSOR_CORE, THREADS, choose_pipeline, pipelines_by_rank
from .compiled import Compiled, complete_manifest
from .deferred_checks import DeferredChecks
from .importers.linalg_text import LinalgText
from .ir_text import short_text
from .levels import is_kernel, level_of
from .lowered import launch_of
from .mlir_errors import mlir_errors
from .normalized_spec import spec_of
from .origins import OriginMarker, keep_origins
from .pipeline import (
    FIRST,
    LAST,
    PassCall,
    PassEvent,
    check_program,
    complete_pipeline,
    run_passes,
)
from .ptxas_ahead import PtxasAhead
from .sources import Source, blamed_on, import_source, loaded_source, open_source
from .spec import MatmulSpec
from .stages import timed

KINDS = ("mlir", "llvm", "ptx", "cubin")
TRIES = 8
"""At most this many schedules are tried until one fits the registers of the chip."""


@one_thread_at_a_time
def compile_matmul(
    source: Source,
    *,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
    stop_after: str | None = None,
    observer: Callable[[PassEvent], None] | None = None,
    allow_spills: bool = False,
    until: str = "cubin",
    origins: bool = False,
    math: str | None = None,
    rows: tuple[int, ...] | None = None,
    replaceable: bool = False,
) -> Compiled:
    """Compile a spec, linalg on tensors, or the IR that passes left of it.

    source: a `MatmulSpec`, the path of an .mlir file or of a .pt2 file (torch.export.save), or a
        `LinalgText`. If some passes have lowered an .mlir file already (`compiler/levels.py`),
        compilation continues from there.
    target: the chip, or a GPU (`dialects.target.GPUS`) for which the schedule is chosen; by default
        the chip that the file names, else sm_100a.
    pipeline, preset: the passes as text, or the name of a preset. Without them `choose_pipeline`
        chooses; a kernel is only lowered.
    stop_after: omits the passes after this one, except the lowering.
    observer: is called with a `PassEvent` after each pass.
    allow_spills: accepts a kernel whose registers ptxas spills to memory.
    until: the last stage: "mlir", "llvm", "ptx" or "cubin".
    origins: adds `.loc` directives to the PTX that name the pass from which each instruction comes
        (`compiler/origins.py`). Nothing else in the PTX changes.
    math: the accuracy of an epilogue's functions, "fast" or "exact" (docs/math.md); by default that
        of the file, else fast if every output has 16 or 8 bits.
    rows: for a source with any M, the minimum and the maximum number of rows of a launch, and a
        number of which they are multiples, if not 1.
    replaceable: whether the compiler chose `pipeline`, so that another may replace it.

    If a chosen schedule needs more registers than ptxas can provide, the next one replaces it, and
    a remark says so. Raises `CompileError` if the source cannot be compiled.
    """
    if until not in KINDS:
        raise OptionError(f"compile: until must be one of {', '.join(KINDS)}, got {until!r}")
    source = loaded_source(source, target)

    chosen = replaceable or pipeline is preset is None

    how: dict[str, Any] = {"preset": preset, "stop_after": stop_after, "observer": observer}
    how |= {"allow_spills": allow_spills, "until": until, "origins": origins}
    how |= {"math": math, "rows": rows}

    def compiled_by(passes: str | None) -> Compiled:
        later = DeferredChecks()
        with blamed_on(source), later.before_errors():
            return _compile(source, target, passes, **how, later=later if chosen else None)

    try:
        return compiled_by(pipeline)
    except RoomError as error:
        if not chosen:
            raise
        others = _ranked_pipelines(source, target, math, rows)
        found = _first_that_fits(pipeline, error, others, compiled_by)
        return replace(found, chosen=pipeline is None)


def _first_that_fits(
    first: str | None,
    error: RoomError,
    others: Iterator[str],
    compiled_by: Callable[[str], Compiled],
) -> Compiled:
    """The kernel of the first other schedule that fits; raises `RoomError` where none does."""
    refused: dict[str, CompileError] = {}
    for passes in chain([first] if first else [], others):
        whole = _complete_text(passes)
        if not refused:
            refused[whole] = error
        elif len(refused) == TRIES:
            break
        elif whole not in refused:
            try:
                found = compiled_by(passes)
            except CompileError as another:
                refused[whole] = another
            else:
                found.given_up = tuple(refused)
                found.remarks.append(_replacement_remark(refused, whole))
                return found
    others_too = f"; nor do these fit: {_pipelines_with_reasons([*refused.items()][1:])}"
    raise RoomError(f"{error.message}{others_too if len(refused) > 1 else ''}", error.location)


def _complete_text(passes: str) -> str:
    """The complete text of a pipeline, by which pipelines are compared."""
    return ",".join(str(call) for call in complete_pipeline(passes, None, None, True))


def _replacement_remark(refused: dict[str, CompileError], taken: str) -> str:
    """The remark that a schedule was replaced."""
    rule = "remark: schedule: a kernel must fit the registers and memory of the chip, got"
    reasons = _pipelines_with_reasons(refused.items())
    return f"{rule} {reasons}; {_short_pipeline(taken)} is taken instead"


def _pipelines_with_reasons(refused: Iterable[tuple[str, CompileError]]) -> str:
    return ", ".join(
        f"{_short_pipeline(each)} ({why.message.partition(';')[0]})" for each, why in refused
    )


def _short_pipeline(whole: str) -> str:
    """A complete pipeline without its first and last pass, which are always the same."""
    return f"'{whole.removeprefix(f'{FIRST},').removesuffix(f',{LAST}')}'"


def _ranked_pipelines(
    source: MatmulSpec | LinalgText,
    target: str | None,
    math: str | None,
    rows: tuple[int, ...] | None,
) -> Iterator[str]:
    """The pipeline that is chosen for a source, then its replacements; none for a kernel."""
    gpu = _gpu_of(target)
    with lent_context(), ir.Location.unknown(), blamed_on(source):
        module, level, source, target = open_source(source, target)
        if is_kernel(level):
            return iter(())
        _set_requests(module, math, rows)
        run_passes(module, [] if level else [PassCall(FIRST)], PassLog())
        return pipelines_by_rank(*_schedule_request(source, module, gpu or target))


def _compile(
    source: MatmulSpec | LinalgText,
    target: str | None,
    pipeline: str | None,
    *,
    preset: str | None,
    stop_after: str | None,
    observer: Callable[[PassEvent], None] | None,
    allow_spills: bool,
    until: str,
    origins: bool,
    math: str | None,
    rows: tuple[int, ...] | None,
    later: DeferredChecks | None,
) -> Compiled:
    """Compile with one pipeline: the given one, or that of the chosen schedule."""
    gpu = _gpu_of(target)
    lower = until != "mlir" or stop_after is None
    stages: list[tuple[str, float]] = []
    with _context(stages), ir.Location.unknown():
        with timed(stages, "import"):
            module, level, source, target = open_source(source, target)
            _set_requests(module, math, rows)
        observer = OriginMarker(module, observer) if origins else observer
        log = PassLog(places=not isinstance(source, MatmulSpec))
        chosen = pipeline is None and preset is None and not is_kernel(level)
        if chosen:
            pipeline = _choose(source, module, level, gpu or target, log, stages, observer)
        calls = complete_pipeline(pipeline, preset, stop_after, lower, level)
        normalized = chosen and level is None
        stages += run_passes(module, calls[1:] if normalized else calls, log, observer, later)
        describe_arguments(module, source)
        text = ",".join(str(call) for call in calls)
        compiled = Compiled(text, target, None, log.remarks, stages, level, chosen)
        if until == "mlir":
            compiled.mlir = short_text(module)
            return compiled
        if origins:
            keep_origins(module)
        _translate(module, compiled)
    if until == "ptx":
        _emit(compiled, target, later.run_soon if later else None, later)
    if until == "cubin":
        _assemble(compiled, target, allow_spills, later)
        complete_manifest(compiled, source, origins)
    return compiled


class Plan(NamedTuple):
    """What `compile_matmul` will do: the passes to run, and the IR before them.

    `level` is the last pass that the source has been through, None for linalg.
    """

    level: str | None
    calls: list[PassCall]
    ir: str


@one_thread_at_a_time
def plan_passes(
    source: Source, *, target: str | None, pipeline: str | None, preset: str | None
) -> Plan:
    """The passes that `compile_matmul` runs with these arguments, the lowering included."""
    gpu = _gpu_of(target)
    source = loaded_source(source, target)
    with lent_context(), ir.Location.unknown(), blamed_on(source):
        module, level, source, target = open_source(source, target)
        before = short_text(module)
        if pipeline is None and preset is None and not is_kernel(level):
            pipeline = _choose(source, module, level, gpu or target, PassLog(), [], None)
        return Plan(level, complete_pipeline(pipeline, preset, None, True, level), before)


@one_thread_at_a_time
def imported_ir(source: Source, target: str | None = None) -> str:
    """The IR of a source before any pass."""
    source = loaded_source(source, target)
    with lent_context(), ir.Location.unknown(), blamed_on(source):
        return short_text(open_source(source, target).module)


@one_thread_at_a_time
def level_and_target(source: Source, target: str | None) -> tuple[str | None, str]:
    """The last pass that a source has been through, None for linalg; and the requested chip or GPU,
    else the chip that the source names, else the default."""
    source = loaded_source(source, target)
    with lent_context(), ir.Location.unknown(), blamed_on(source):
        opened = open_source(source, target)
        return opened.level, target or opened.chip


@one_thread_at_a_time
def read_spec(source: Source, target: str = "sm_100a") -> MatmulSpec:
    """The matmul of a spec or of linalg, for `target`. Refuses a kernel."""
    source = loaded_source(source, target)
    if isinstance(source, MatmulSpec):
        return source
    with lent_context(), ir.Location.unknown():
        module = import_source(source)
        level = level_of(module)
        if is_kernel(level):
            rule = "a schedule can be chosen for linalg and tile.matmul"
            raise CompileError(f"{rule}, got a kernel, which has one", source.name)
        run_passes(module, [] if level else [PassCall(FIRST)], PassLog())
        return spec_of(module)


def _set_requests(module: ir.Module, math: str | None, rows: tuple[int, ...] | None) -> None:
    """Record the requested accuracy of functions and range of rows in the module."""
    if math is not None:
        ask_for_math(module, math)
    if rows is not None:
        bound_rows(module, *rows)


def _gpu_of(target: str | None) -> str:
    """The GPU for which a schedule is chosen, "" for the default one of the chip."""
    return find_target(target).gpu if target is not None else ""


@contextmanager
def _context(stages: list[tuple[str, float]]) -> Iterator[None]:
    start = time.perf_counter()
    with lent_context():
        stages.append(("context", time.perf_counter() - start))
        yield


def _choose(
    source: Source,
    module: ir.Module,
    level: str | None,
    target: str,
    log: PassLog,
    stages: list[tuple[str, float]],
    observer: Callable[[PassEvent], None] | None,
) -> str:
    """Normalize the module if necessary and choose its schedule: the pipeline from `tiling` on."""
    if level is None:
        stages += run_passes(module, [PassCall(FIRST)], log, observer)
    else:
        check_program(module)
    with timed(stages, "schedule"):
        return choose_pipeline(*_schedule_request(source, module, target))


def _schedule_request(
    source: Source, module: ir.Module, target: str
) -> tuple[MatmulSpec, str, str]:
    """The arguments of `choose_pipeline` for a normalized module."""
    spec = source if isinstance(source, MatmulSpec) else spec_of(module)
    if spec.is_scaled:
        return spec, target, ANY
    if target_of(module).threads_multiply:
        return spec, target, THREADS
    names_mma = MMA_ATTRIBUTE in module.operation.attributes
    return spec, target, TENSOR_CORE if names_mma else ANY


def _translate(module: ir.Module, compiled: Compiled) -> None:
    (lowered,) = module.body.operations
    compiled.manifest = launch_of(lowered, compiled.target)
    compiled.entry = compiled.manifest["entry"]
    with timed(compiled.stages, "llvm-ir"), mlir_errors():
        compiled.llvm_ir = llvm_ir_of(lowered.operation)


def _keeps_order(compiled: Compiled) -> bool:
    """Whether consumers take turns and compute functions that no late number holds back
    (`passes/lowering/epilogue/late.py`): what one computes early, before it has released the last
    slot of its tile, the loads for the other wait for."""
    assert compiled.llvm_ir is not None
    roles = {role["name"] for role in compiled.manifest["names"]["roles"]}
    computes = roles.issuperset(AGENTS) and "math" in compiled.manifest
    return computes and LATE_MEETING not in compiled.llvm_ir


def _emit(
    compiled: Compiled,
    target: str,
    meanwhile: Callable[[], None] | None,
    later: DeferredChecks | None,
) -> None:
    """Make the PTX; what `meanwhile` has left of the remaining checks runs beside the back end."""
    assert compiled.llvm_ir is not None
    with timed(compiled.stages, "ptx"):
        feature = find_target(target).ptx_feature
        how = {"meanwhile": meanwhile, "late": later.run if later else None}
        compiled.ptx = emit_ptx(compiled.llvm_ir, chip=target, ptx_feature=feature, **how)


def _assemble(
    compiled: Compiled, target: str, allow_spills: bool, later: DeferredChecks | None
) -> None:
    """Run ptxas, which starts while LLVM runs, once the checks are over that hold up LLVM's back
    end: ptxas holds up only what comes after that."""
    how = {"chip": target, "keep_order": _keeps_order(compiled)}
    with ExitStack() as running:
        ahead: list[PtxasAhead | None] = []

        def meanwhile() -> None:
            if later is not None:
                later.run_soon()
            ahead.append(running.enter_context(assembler_ahead(**how)))

        _emit(compiled, target, meanwhile, later)
        assert compiled.ptx is not None
        with timed(compiled.stages, "ptxas"):
            how |= {"allow_spills": allow_spills, "ahead": ahead[0]}
            made = assemble(compiled.ptx, **how)
    compiled.assembled = made
    if made.serialized:
        rule = "ptxas waits for each wgmma before the next one, which may take a fifth longer"
        compiled.remarks.append(f"remark: {rule}; take another tile or other passes")
