"""Real IR with a line taken out, doubled, moved or changed, for tests of what is refused.

An edit is a function from lines to lines; it finds its line by a part of its text.
"""

import functools
import re

import pytest

from tilewright.compiler.pipeline import (
    PassLog,
    check_program,
    parse_module,
    parse_pipeline,
    run_passes,
)
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.passes.base import TARGET_ATTRIBUTE

TMA = "normalize,tiling,tma-insertion"
STAGES = f"{TMA},pipelining{{stages=2}}"
ROLES = f"{STAGES},warp-specialization"
CLAIMS = f"{ROLES},persistence{{scheduler=clc}}"
PERMUTES = f"{ROLES},persistence,ping-pong"
WHERE = "kernel.mlir"


@functools.cache
def ir_after(passes, target="sm_100a"):
    """The lines of what `passes` leave of a matmul with five K steps."""
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(300, 264, 320).mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(target)
        run_passes(module, parse_pipeline(passes), PassLog())
        return tuple(str(module).splitlines())


def place(lines, text, number):
    """Index of the number-th line with `text`, from the end where negative."""
    return [index for index, line in enumerate(lines) if text in line][number]


def insert(text, new, number=0, before=False):
    """A line more after, or before, the number-th with `text`."""

    def edit(lines):
        at = place(lines, text, number) + (not before)
        return [*lines[:at], *new.split("\n"), *lines[at:]]

    return edit


def drop(text, number=0):
    def edit(lines):
        at = place(lines, text, number)
        return [*lines[:at], *lines[at + 1 :]]

    return edit


def drop_lines(first, last, number=0):
    """Leave out a line with `first` and all up to the next one with `last`."""

    def edit(lines):
        start = place(lines, first, number)
        end = next(at for at in range(start, len(lines)) if last in lines[at])
        return [*lines[:start], *lines[end + 1 :]]

    return edit


def double(text, number=0):
    def edit(lines):
        at = place(lines, text, number)
        copy = lines[at].replace("%", "%again_", 1) if " = " in lines[at] else lines[at]
        return [*lines[: at + 1], copy, *lines[at + 1 :]]

    return edit


def move(text, after, number=0, behind=0):
    def edit(lines):
        line = lines[place(lines, text, number)]
        rest = drop(text, number)(lines)
        at = place(rest, after, behind)
        return [*rest[: at + 1], line, *rest[at + 1 :]]

    return edit


def move_lines(first, last, before, number=0):
    """Put a line with `first` and all up to the next one with `last` before the first with
    `before`."""

    def edit(lines):
        start = place(lines, first, number)
        end = next(at for at in range(start, len(lines)) if last in lines[at]) + 1
        rest = [*lines[:start], *lines[end:]]
        at = place(rest, before, 0)
        return [*rest[:at], *lines[start:end], *rest[at:]]

    return edit


def replace(text, new, number=0):
    def edit(lines):
        at = place(lines, text, number)
        return [*lines[:at], lines[at].replace(text, new), *lines[at + 1 :]]

    return edit


def change(name, field, value, number=0):
    """Another number, or list of numbers, in an attribute of the number-th op of a name."""

    def edit(lines):
        at = place(lines, f'"{name}"', number)
        found = re.sub(rf"{field} = (\[[^]]*\]|\d+)", f"{field} = {value}", lines[at])
        assert found != lines[at]
        return [*lines[:at], found, *lines[at + 1 :]]

    return edit


def refusal(passes, edit, target="sm_100a", check=check_program, then=""):
    """(message, the op's line) of the program that `edit` makes of what `passes` leave.

    `check` are the rules that it breaks, or `then` passes that refuse it.
    """
    lines = edit(list(ir_after(passes, target)))
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError) as caught:
        module = parse_module("\n".join(lines), WHERE)
        check(module)
        run_passes(module, parse_pipeline(then) if then else [], PassLog())
    number = int(caught.value.location.split(":")[1])
    return caught.value.message, lines[number - 1]
