"""Schedules of kernels whose threads copy operands that TMA can't address, on Hopper."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule import choice
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules import RULES
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

HOPPER = find_target("sm_90a")


@pytest.mark.parametrize(
    ("shape", "tile", "reason"),
    [
        (
            (512, 512, 100),
            (192, 144, 64),
            "72 registers a thread of 3 warpgroups leave too few for threads that copy what TMA "
            "can't address",
        ),
        (
            (512, 1501, 100),
            (128, 256, 64),
            "256 columns, each stored by itself, leave too few registers beside threads that copy "
            "what TMA can't address, 240 don't",
        ),
        ((512, 1501, 100), (128, 240, 64), None),
        ((512, 1501, 100), (256, 128, 64), None),
        ((512, 1502, 100), (128, 256, 64), None),
        ((512, 1501, 104), (128, 256, 64), None),
    ],
)
def test_threads_that_copy_leave_fewer_registers_to_others(shape, tile, reason):
    problem = Problem.of(MatmulSpec(*shape), HOPPER)
    assert RULES["accumulator-registers"](problem, Schedule(tile), HOPPER) == reason


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "spec",
    [
        MatmulSpec(8200, 1501, 37),
        MatmulSpec(8200, 1501, 36, c_dtype="f32"),
        MatmulSpec(8200, 1501, 72, "e4m3", "e4m3", "f32"),
        MatmulSpec(8200, 1501, 18, "tf32", "tf32", "f32"),
    ],
)
def test_the_choice_for_odd_rows_of_c_spills_no_registers(monkeypatch, spec):
    monkeypatch.setattr(choice, "tuned_schedule", lambda problem, chip: None)
    assert compile_matmul(spec, target="sm_90a").assembled.cubin
