"""Warnings: grouped by kind and PTX lines, and each kind in the tables of the manual."""

import ast
import re
from pathlib import Path

import pytest

import tilewright.runtime.emulator
from tilewright.runtime.emulator import LaunchError, Trap, launch
from tilewright.runtime.emulator.checks import (
    early_uses,
    unawaited_grids,
    unchecked_waits,
    unused_sums,
)
from tilewright.runtime.emulator.checks.races import verdicts
from tilewright.runtime.emulator.errors import short_name
from tilewright.runtime.emulator.observe.report import Report

SOURCES = sorted(Path(tilewright.runtime.emulator.__file__).parent.rglob("*.py"))
DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = DOCS / "emulator.md", DOCS / "emulator-reference.md"


def tables() -> list[set[str]]:
    """The categories of the pages' two tables: of errors, of warnings."""
    found = []
    text = "\n\n".join(page.read_text() for page in PAGES)
    for part in text.split("| category | the kernel |\n")[1:]:
        rows = part.partition("\n\n")[0].splitlines()
        found.append(
            {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
        )
    return found


def first_arguments(called: tuple[str, ...]) -> set[str]:
    """The literals that functions of these names are given first, anywhere in the emulator."""
    found = set()
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in called:
                found |= _literals(node.args, constants)
    return found


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _literals(arguments: list[ast.expr], constants: dict[str, str]) -> set[str]:
    texts = [
        node.value if isinstance(node, ast.Constant) else constants.get(getattr(node, "id", ""))
        for node in arguments[:2]
    ]
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z-]+", text)}


def test_each_kind_of_warning_has_a_row_in_the_docs_and_each_row_a_kind():
    raised = first_arguments(("warn", "_warn", "as_warning")) | {
        early_uses.EARLY_USE,
        early_uses.UNWAITED,
    }
    raised |= set(verdicts.SHIPPED)
    raised |= first_arguments(("departed",)) - tables()[0]  # an error's category, and a warning's
    raised |= {unchecked_waits.UNCHECKED, unawaited_grids.UNAWAITED}
    raised |= {unused_sums.UNUSED, unused_sums.UNUSED_LOAD}
    assert raised == tables()[1]


def test_each_category_of_an_error_has_a_row_in_the_docs():
    assert first_arguments(("Trap", "trap")) <= tables()[0]


def test_warnings_of_the_same_lines_are_one_with_a_count():
    report = Report("k")
    for lane in range(3):
        report.warn("unfenced", f"ptx:7: lane {lane} follows ptx:5")
    report.warn("unfenced", "ptx:7: lane 0 follows ptx:6")
    report.warn("quarter", "ptx:7: lane 0 follows ptx:5")
    assert [str(each) for each in report.warnings] == [
        "unfenced: ptx:7: lane 0 follows ptx:5 (3 times)",
        "unfenced: ptx:7: lane 0 follows ptx:6",
        "quarter: ptx:7: lane 0 follows ptx:5",
    ]
    assert [each["count"] for each in report.as_dict()["warnings"]] == [3, 1, 1]


SHUFFLES = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() {
  .reg .b32 %r<4>; .reg .pred %p;
  mov.u32 %r0, %tid.x;
  setp.lt.u32 %p, %r0, 8;
  mov.u32 %r3, 0;
AGAIN:
  @%p shfl.sync.idx.b32 %r1, %r0, 9, 31, 255;
  @%p shfl.sync.idx.b32 %r2, %r0, 9, 31, 255;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p, %r3, 5;
  @%p bra AGAIN;
  ret;
}
"""


def test_a_warning_starts_with_the_line_that_runs_and_counts_its_times():
    text = SHUFFLES.replace("setp.lt.u32 %p, %r3, 5;\n  @%p bra", "setp.lt.u32 %p, %r0, 8;\n"
                            "  .reg .pred %q; setp.lt.u32 %q, %r3, 5;\n  @%q bra")  # fmt: skip
    report = launch(text, "k", grid=1, block=32)
    assert [(each.message[:7], each.count) for each in report.warnings] == [
        ("ptx:10:", 5),
        ("ptx:11:", 5),
    ]


LONG = "k" * 100 + "0123456789" * 10


def test_a_long_kernel_name_is_shortened_in_messages_and_whole_in_the_data():
    text = SHUFFLES.replace("entry k()", f"entry {LONG}(.param .u32 a)").replace("ret;", "trap;")
    with pytest.raises(Trap) as caught:
        launch(text, LONG, grid=1, block=32, params=[1])
    assert caught.value.kernel == LONG and LONG not in str(caught.value)
    assert f"kernel {'k' * 40}…1234567890123456789," in str(caught.value)
    with pytest.raises(LaunchError) as refused:
        launch(text, LONG, grid=1, block=32)
    assert str(refused.value).startswith(f"kernel {'k' * 40}…")
    assert LONG not in str(Report(LONG))


@pytest.mark.parametrize("length", [1, 59, 60, 61, 200])
def test_a_name_is_shown_whole_up_to_60_characters(length):
    name = "".join(chr(ord("a") + number % 26) for number in range(length))
    shown = short_name(name)
    assert len(shown) == min(length, 60) and (shown == name) == (length <= 60)
    assert name.startswith(shown.partition("…")[0]) and name.endswith(shown.partition("…")[2])
