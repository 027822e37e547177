"""Tensors of which every element must be written, or should be read."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from tilewright.runtime.emulator import Trap
from tilewright.runtime.strict_json import parse_json

EXAMPLES = Path(__file__).parent / "examples"
PTX = (EXAMPLES / "scaled_rows.ptx").read_text()
LAUNCH = parse_json((EXAMPLES / "scaled_rows.json").read_bytes())
GUARD = "setp.ge.u32 %outside, %column, %columns;"
SHORT = PTX.replace(GUARD, "setp.ge.u32 %outside, %column, 23;")
"""The kernel leaves out the last column of each row of 24."""


def launch_of(**whole: bool) -> dict:
    made = copy.deepcopy(LAUNCH)
    for tensor in made["tensors"]:
        tensor |= {"whole": whole[tensor["name"]]} if tensor["name"] in whole else {}
    return made


@pytest.mark.parametrize("options", [{}, {"whole": True}])
def test_a_kernel_that_leaves_nothing_out_says_nothing(run, options):
    assert run(PTX, launch_of(x=True, out=True), **options).report.warnings == []
    assert run(PTX, LAUNCH, **options).report.warnings == []


@pytest.mark.parametrize(
    ("launch", "options"), [(launch_of(out=True), {}), (LAUNCH, {"whole": True})]
)
def test_a_column_that_is_never_written_is_an_error(run, launch, options):
    with pytest.raises(Trap) as caught:
        run(SHORT, launch, **options)
    assert "unwritten-output: every element of an output must be written" in str(caught.value)
    assert "5 of 120 elements, [0, 23] first, of tensor 'out' that never were" in str(caught.value)


def test_a_column_that_is_never_read_is_a_warning(run):
    (warning,) = run(SHORT, launch_of(x=True)).report.warnings
    assert str(warning) == (
        "unread-input: 5 of 120 elements, [0, 23] first, of tensor 'x' were never read"
    )


def test_a_file_says_more_of_a_tensor_than_the_option(run):
    assert run(SHORT, launch_of(x=False, out=False), whole=True).report.warnings == []


def test_without_a_word_a_column_may_be_left_out(run):
    assert run(SHORT, LAUNCH).report.warnings == []
