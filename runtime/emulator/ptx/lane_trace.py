"""Straight code of a lone lane as one Python function: what it computes, calls and decides.

A trace leads over integer code (`scalar`), over instructions that say how one lane executes them
(`lane_forms`), and over branches that are not taken. It ends at a branch that is taken, at a wait
that is told no, at a label, and before any other instruction. The lane's registers are local
variables meanwhile; those that anything behind the trace may read are written where it is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Trap
from ..interface import Warp
from .lane_forms import NOTHING, LaneValue
from .mentions import named_from, outside
from .program import Program
from .scalar import expression

LONGEST = 128
"""Instructions of a trace."""
OFTEN = 24
"""Times that a launch begins a trace before it uses the compiled one: compiling costs as much as
they do. It does not matter whether an earlier launch has compiled it, so that the same seed gives
the same order of events."""

Left = tuple[int, Any]
"""How many instructions were passed before a trace was left, and the signal of the last one."""


class Trace:
    """Instructions in a row, from the pc ``first``. inside: the pcs behind it; ``end``: the pc
    behind them all."""

    __slots__ = ("_function", "end", "first", "inside")

    def __init__(self, pcs: range):
        self.first, self.end = pcs.start, pcs.stop
        self.inside = frozenset(pcs[1:])
        self._function: Callable[..., Left | None] | None = None

    def run(self, warp: Warp, lane: int) -> Left | None:
        """Execute it in one lane; None where that must be done one by one: the launch has not begun
        it often, or a register is under way."""
        launch = warp.launch
        begun = launch.begun.get(self.first, 0)
        if begun < OFTEN:
            launch.begun[self.first] = begun + 1
            return None
        if self._function is None:
            self._function = _compiled(warp.program, range(self.first, self.end))
        left = self._function(warp, lane, warp.regs, warp.split, launch.counts)
        if left is not None:
            launch.edges[self.first] += 1
            launch.edges[self.first + left[0]] -= 1
        return left


def find_traces(program: Program) -> None:
    """Find the traces of a program: one starts at each label, behind each wait and branch, and
    behind what no trace leads over."""
    program.traces = [None] * len(program.code)
    labels = program.labelled()
    for pc in range(len(program.code)):
        if pc in labels or pc == 0 or not _leads_on(program, pc - 1):
            end, recall = _end(program, pc, labels), program.recalls[pc]
            if end > pc and (recall is None or recall.end <= end):
                program.traces[pc] = Trace(range(pc, end))


def _leads_on(program: Program, pc: int) -> bool:
    """Whether a trace never ends at the instruction."""
    return is_expression(program, pc) or (
        pc in program.lane_forms and not program.lane_forms[pc].waits
    )


def _end(program: Program, first: int, labels: set[int]) -> int:
    pc = first
    while pc < len(program.code) and pc - first < LONGEST and (pc == first or pc not in labels):
        if pc in program.branches:
            if program.code[pc][1] is None:
                return pc + 1
        elif pc not in program.lane_forms and not is_expression(program, pc):
            return pc
        pc += 1
    return pc


def is_expression(program: Program, pc: int) -> bool:
    """Whether the instruction only computes, as an expression says."""
    return pc in program.computing and _text(program, pc) is not None


def _text(program: Program, pc: int) -> str | None:
    reads, writes = program.computing[pc]
    width = 8 * program.slot_dtype(writes[0]).itemsize
    return expression(program.source[pc].opcode, len(reads), len(writes), width)


def _compiled(program: Program, pcs: range) -> Callable[..., Left | None]:
    writer = _Writer(program, pcs)
    for pc in pcs:
        writer.add(pc)
    return writer.finish()


class _Writer:
    """Writes the function of a trace. Its local variables: r and a slot, the raw bits of a
    register; f and a pc, what an instruction calls."""

    def __init__(self, program: Program, pcs: range):
        self._program, self._pcs = program, pcs
        self._known: dict[int, str] = {}
        self._loads: list[str] = []
        self._body: list[str] = []
        self._written: dict[int, None] = {}
        self._outside = outside(program, pcs)
        self._calls: dict[str, Any] = {"Trap": Trap}
        self._kind: Any = None

    def add(self, pc: int) -> None:
        """The next instruction."""
        if pc in self._program.branches:
            self._branch(pc)
        elif pc in self._program.lane_forms:
            self._call(pc)
        else:
            self._compute(pc)

    def finish(self) -> Callable[..., Left | None]:
        """The function, (warp, lane, registers, split, counts) -> `Left`, or None where a register
        is under way: then nothing has been changed."""
        self._body += self._leave(self._pcs.stop, len(self._pcs))
        loads = ["    try:", *("        " + line for line in self._loads or ["pass"])]
        loads += ["    except Trap:", "        return None"]
        body = ("    " + line for line in self._body)
        exec("\n".join(["def run(warp, lane, regs, split, counts):", *loads, *body]), self._calls)
        return self._calls["run"]

    def _compute(self, pc: int) -> None:
        reads, (target,) = self._program.computing[pc]
        text = _text(self._program, pc)
        assert text is not None  # as `is_expression` says
        self._set(target, text.format(*map(self._value, reads)))

    def _call(self, pc: int) -> None:
        form = self._program.lane_forms[pc]
        values = [self._argument(value) for value in form.values]
        follows = form.follows if form.kind is not None and form.kind == self._kind else None
        self._kind, self._calls[f"f{pc}"] = form.kind, follows or form.call
        call = f"f{pc}({', '.join(['warp', 'lane', *values])})"
        self._body.append(f"split.pc = {pc}")
        if form.waits:
            self._body += [f"signal = {call}", "if signal is not None:"]
            self._answer(form.target, "False")
            self._body += self._inside(self._leave(None, pc + 1 - self._pcs.start))
            self._answer(form.target, "True")
        elif form.target is not None:
            self._set(form.target, call)
        else:
            self._body.append(call)

    def _argument(self, value: LaneValue) -> str:
        return value.text if value is NOTHING else value.text.format(self._value(value.slot))

    def _answer(self, target: int | None, truth: str) -> None:
        indent = "    " if truth == "False" else ""
        if target is not None:
            self._set(target, truth, indent)

    def _branch(self, pc: int) -> None:
        _, guard, negated = self._program.code[pc]
        target, length = self._program.branches[pc], pc + 1 - self._pcs.start
        if guard is None:
            self._body += self._leave(target, length)
            return
        self._body.append(f"if {'not ' * negated}{self._value(guard)}:")
        self._body += self._inside(self._leave(target, length))
        self._body.append(f"counts[{pc}] -= 1")

    def _leave(self, to: int | None, length: int) -> list[str]:
        """Write registers and leave the trace for a pc, None to stay where it is."""
        behind = set[int]()
        if to is None:
            behind = named_from(self._program, self._pcs[length:])
        lines = [
            f"a = regs[{slot}].copy(); a[lane] = r{slot}; regs[{slot}] = a"
            for slot in self._written
            if slot in self._outside or slot in behind
        ]
        lines += [] if to is None else [f"split.pc = {to}"]
        return [*lines, f"return {length}, {'signal' if to is None else 'None'}"]

    @staticmethod
    def _inside(lines: list[str]) -> Iterator[str]:
        return ("    " + line for line in lines)

    def _set(self, slot: int, value: str, indent: str = "") -> None:
        self._body.append(f"{indent}r{slot} = {value}")
        self._known[slot] = f"r{slot}"
        self._written[slot] = None

    def _value(self, slot: int) -> str:
        if slot not in self._known:
            self._known[slot] = _constant(self._program, slot) or f"r{slot}"
            if self._known[slot] == f"r{slot}":
                self._loads.append(f"r{slot} = regs[{slot}].item(lane)")
        return self._known[slot]


def _constant(program: Program, slot: int) -> str | None:
    """The number that a slot holds in every lane of every warp."""
    array = program.constants.get(slot)
    alike = array is not None and array.ndim == 1 and bool((array == array[0]).all())
    return repr(array[0].item()) if alike and array is not None else None
