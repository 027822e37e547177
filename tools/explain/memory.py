"""`tilewright explain memory`: the memory plan of a kernel."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from ..command_line.arguments import Parser, add_json, add_problem, add_schedule, problem
from ..command_line.isolated import reads_in_child
from ..command_line.output import print_json

EXAMPLES = """examples:
  tilewright explain memory --m 4096 --n 4096 --k 4096
  tilewright explain memory --m 512 --n 512 --k 256 --preset kernel7
  tilewright explain memory kernel.mlir --json
"""


def add_subject(subjects: Any) -> None:
    """Add `memory` to what can be explained."""
    parser: Parser = subjects.add_parser(
        "memory",
        help="the memory plan of a kernel",
        description="Prints the plan that plan-memory makes: which bytes of shared memory and which"
        " columns of tensor memory hold what, and how many arrivals end a phase of a barrier.",
        epilog=EXAMPLES,
    )
    add_problem(parser, "an .mlir or .pt2 file, linalg or a kernel that is not lowered further")
    add_schedule(parser.add_argument_group("compilation"))
    reads_in_child(parser)
    add_json(parser)
    parser.set_defaults(command=functools.partial(explain_memory_command, parser))


def explain_memory_command(parser: Parser, options: argparse.Namespace) -> int:
    """Print the plan."""
    source = problem(options, parser)
    from ...compiler.driver import compile_matmul

    keywords = {name: getattr(options, name) for name in ("target", "pipeline", "preset")}
    compiled = compile_matmul(source, until="mlir", stop_after="plan-memory", **keywords)
    assert compiled.mlir is not None
    plan = plan_of(compiled.mlir)
    if options.json:
        print_json({"ok": True, "target": compiled.target, "pipeline": compiled.pipeline, **plan})
        return 0
    from ..command_line.tables import print_table

    print(f"pipeline   {compiled.pipeline}")
    print(f"memory     {plan['summary']}")
    print_table(plan["columns"], plan["rows"], width=150)
    return 0


def plan_of(text: str) -> dict[str, Any]:
    """The plan of the kernel in the IR `text`: its summary in words, and the table."""
    from ...compiler.pipeline import parse_module
    from ...dialects.context import make_context, one_thread_at_a_time
    from ...passes.base import the_kernel
    from ...passes.lowering.planning.memory_table import HEADINGS, memory_rows, summary_of

    @one_thread_at_a_time
    def read() -> dict[str, Any]:
        with make_context():
            module = parse_module(text, "plan")
            kernel = the_kernel(module, "explain memory")
            rows = [list(row) for row in memory_rows(kernel)]
            return {"summary": summary_of(kernel), "columns": list(HEADINGS), "rows": rows}

    return read()
