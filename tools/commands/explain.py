"""`tilewright explain`: the chosen schedule of a matmul, and why no other; other subjects."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...runtime.math_policies import EXACT, FAST
from ..command_line.arguments import Parser, add_json, add_problem, problem
from ..command_line.isolated import reads_in_child
from ..command_line.output import print_json
from ..explain import estimate, kinds, memory, rows
from ..explain.chosen import as_spec, given_way
from ..layouts import fragments, scales, swizzle
from ..roofline import subject as roofline

if TYPE_CHECKING:
    from ...compiler.schedule.problem import Schedule
    from ...compiler.schedule.search.choice import Choice, Rejected
    from ...compiler.spec import MatmulSpec
    from ...dialects.target import Target

EXAMPLES = """examples:
  tilewright explain schedule --m 4096 --n 4096 --k 4096
  tilewright explain schedule --m 77 --n 33 --k 51 --all
  tilewright explain schedule matmul.mlir
  tilewright explain schedule --m dynamic --n 4096 --k 4096
  tilewright explain schedule --batch dynamic --m 256 --n 256 --k 64
  tilewright explain schedule --m 1024 --n 1024 --k 1024 --json
  tilewright explain memory --m 4096 --n 4096 --k 4096 --preset v6
  tilewright explain layout --atom m16n8k16 --operand a --type bf16
  tilewright explain scales --format nvfp4 --rows 300 --k 1024
  tilewright explain roofline --m 512 --n 512 --k 512 --preset v2a
"""
ESTIMATE, MEASURED = "estimate", "measured"
WIDTH = 170
NEAREST = 12
"""Tiles and clusters that have a line of their own."""


def add_command(commands: Any) -> None:
    """Add `explain` to the command line."""
    explain: Parser = commands.add_parser(
        "explain",
        help="say how a choice was made, or how data lies",
        description="Says how the compiler makes a choice, and how instructions lay data out.",
        epilog=EXAMPLES,
    )
    subjects = explain.add_subparsers(title="subjects", metavar="SUBJECT")
    explain.set_defaults(command=functools.partial(_refuse_no_subject, explain))
    parser: Parser = subjects.add_parser(
        "schedule",
        help="tile, stages, cluster, scheduler and epilogue of a matmul",
        description="Lists the candidates for a schedule: the one that is chosen, and for every"
        " other one the rule or the estimate that rejects it.",
        epilog=EXAMPLES,
    )
    help_ = "an .mlir or .pt2 file; of its epilogue, how much it computes"
    add_problem(parser, help_, dynamic=True)
    parser.add_argument("--target", default="sm_100a", help="chip or GPU (default sm_100a)")
    reads_in_child(parser)
    parser.add_argument("--all", action="store_true", help="a line for every rejected candidate")
    estimate.add_pipeline_flags(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_schedule_command, parser))
    memory.add_subject(subjects)
    fragments.add_subject(subjects)
    swizzle.add_subject(subjects)
    roofline.add_subject(subjects)
    scales.add_subject(subjects)


def _refuse_no_subject(parser: Parser, options: argparse.Namespace) -> int:
    parser.error("a subject must be named, got none")


def explain_schedule_command(parser: Parser, options: argparse.Namespace) -> int:
    """Print the choice and the rejected candidates, or the estimate of a pipeline."""
    of_pipeline = estimate.is_asked(parser, options)
    source = problem(options, parser)
    spec = as_spec(source, options.target)
    if spec.open_sizes and not of_pipeline:
        return rows.explain_rows(spec, options.target, bool(options.json))
    from ...compiler.schedule.search.choice import explain_schedule, target_for

    target = target_for(spec, options.target)
    if of_pipeline:
        return estimate.explain_estimate(options, spec, target)
    if kinds.explain_kind(spec, target, bool(options.json)):
        return 0
    choice, taken = explain_schedule(spec, target), given_way(source, options.target)
    if options.json:
        gave_way = {"given_up": taken.given_up, "taken": taken.pipeline} if taken else {}
        print_json(_as_dict(choice, spec, target) | gave_way)
    else:
        _print_choice(choice, spec, target)
        if taken:
            print(f"replaced   {taken.remarks[-1].removeprefix('remark: schedule: ')}")
        _print_rejected(choice.rejected, every=options.all)
    return 0


def _as_dict(choice: Choice, spec: MatmulSpec, target: Target) -> dict[str, Any]:
    from dataclasses import asdict

    from ...compiler.schedule.chips.chip_figures import figure_table

    return {
        "ok": True,
        "spec": spec.as_dict(),
        "target": target.name,
        "schedule": asdict(choice.schedule),
        "pipeline": _passes_of(choice.schedule, spec, target),
        "estimate": asdict(choice.estimate),
        "measured": asdict(choice.tuned) if choice.tuned else None,
        "memory": _memory(choice.schedule, spec, target),
        "figures": {name: each.as_dict() for name, each in figure_table(target).items()},
        "rejected": [
            {
                "schedule": asdict(rejected.schedule),
                "rule": rejected.rule,
                "reason": rejected.reason,
                "total_us": rejected.estimate.total_us if rejected.estimate else None,
            }
            for rejected in choice.rejected
        ],
    }


def _memory(schedule: Schedule, spec: MatmulSpec, target: Target) -> dict[str, int]:
    from ...compiler.schedule.problem import Problem
    from ...dialects.target import WARPGROUP_THREADS

    problem = Problem.of(spec, target)
    shared = {
        "stage_bytes": problem.stage_bytes(schedule),
        "staging_bytes": problem.staging_bytes(schedule),
        "shared_bytes_limit": target.shared_bytes,
    }
    m, n, _ = schedule.tile
    if not target.has_tensor_memory:
        warpgroups = target.mma_warpgroups(m, n) or 1
        registers = m * n // (warpgroups * WARPGROUP_THREADS)
        return shared | {"warpgroups": warpgroups, "accumulator_registers": registers}
    return shared | {
        "accumulators": 1 if schedule.scheduler == "none" else 2,
        "accumulator_columns": target.accumulator_columns(m, n),
        "tmem_columns_limit": target.tmem_columns,
    }


def _accumulators(memory: dict[str, int]) -> str:
    """Where the accumulators are, in words."""
    if "warpgroups" in memory:
        return (
            f"{memory['accumulator_registers']} accumulator registers a thread of"
            f" {_counted(memory['warpgroups'], 'warpgroup')}"
        )
    held = _counted(memory["accumulators"], "accumulator")
    return f"{held} × {memory['accumulator_columns']} columns, of {memory['tmem_columns_limit']}"


def _passes_of(schedule: Schedule, spec: MatmulSpec, target: Target) -> str:
    from ...compiler.schedule.problem import Problem
    from ...compiler.schedule.short_steps import passes_of

    return passes_of(Problem.of(spec, target), schedule, target)


def _print_choice(choice: Choice, spec: MatmulSpec, target: Target) -> None:
    from ...dialects.epilogue import FAST_OUTPUTS

    schedule, estimate = choice.schedule, choice.estimate
    memory = _memory(schedule, spec, target)
    print(f"matmul     {spec.m}×{spec.n}×{spec.k}, {spec.a_dtype} → {spec.c_dtype}, {target.name}")
    print(f"schedule   {schedule.label()}, {schedule.box} boxes")
    print(f"pipeline   {_passes_of(schedule, spec, target)}")
    if spec.epilogue_instructions:
        policy = FAST if all(each in FAST_OUTPUTS for each in spec.outputs) else EXACT
        print(
            f"epilogue   about {spec.epilogue_instructions} instructions an element; functions,"
            f" where it has some, are {policy} without --math"
        )
    if choice.tuned is not None:
        print(f"measured   {choice.tuned.describe()}")
    print(
        f"memory     {_counted(schedule.stages, 'stage')} × {memory['stage_bytes']} bytes and"
        f" {memory['staging_bytes']} of staging, of {memory['shared_bytes_limit']};"
        f" {_accumulators(memory)}"
    )
    print(
        f"estimate   {estimate.total_us:.2f} us, bound by {estimate.bound}:"
        f" {_counted(estimate.rounds, 'tile')} a multiprocessor, each"
        f" {estimate.main_loop_us:.2f} us of main loop and"
        f" {estimate.epilogue_us:.2f} us of epilogue; {estimate.start_us:.2f} us to start,"
        f" {estimate.fill_us:.2f} us to the first tile, {estimate.dram_us:.2f} us of DRAM"
        f"{', and no launch' if estimate.clock is None else ''}"
    )
    if estimate.clock is not None:
        print(
            f"load       {estimate.clock:.2f} GHz with random operands;"
            f" {_counted(estimate.residents, 'CTA')} on a multiprocessor at a time; in all"
            f" {_around_us(estimate.clock, target):.2f} us to launch and for a cold first load"
        )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _around_us(clock: float, target: Target) -> float:
    """Microseconds of a kernel that no tile takes."""
    from ...compiler.schedule.chips.chip_figures import tensor_figures

    tensor = tensor_figures(target)
    return tensor.launch + tensor.cold_fill / (clock * 1e3)


def _print_rejected(rejected: Iterable[Rejected], every: bool) -> None:
    """One line for every candidate, or the nearest tiles and one line for each rule."""
    from ..command_line.tables import print_lines, print_table

    rejected = list(rejected)
    if every:
        rows = [(each.rule, each.schedule.label(), each.reason) for each in rejected]
        print()
        print_lines([("rejected by", "candidate", "reason"), *rows])
        return
    rows = [
        [each[0].rule, str(len(each)), each[0].schedule.label(), each[0].reason]
        for each in _distinguished(rejected)
    ]
    print_table(["rejected by", "how many", "the first of them", "reason"], rows, width=WIDTH)
    print(f"--all gives each of the {len(rejected)} a line")


def _distinguished(rejected: Iterable[Rejected]) -> Iterable[list[Rejected]]:
    """Candidates that share a line: the nearest by tile and cluster, the others by their rule."""
    groups: dict[tuple, list[Rejected]] = {}
    for each in rejected:
        schedule = each.schedule
        near = each.rule, schedule.tile, schedule.cluster, schedule.pair
        by_time = each.rule in (ESTIMATE, MEASURED)
        is_near = by_time and (near in groups or len(groups) < NEAREST)
        groups.setdefault(near if is_near else (each.rule,), []).append(each)
    return groups.values()
