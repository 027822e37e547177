"""What the schedule's rules call illegal, a pass refuses in the same words."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import RULES
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import find_target

SPEC, NARROW = MatmulSpec(512, 512, 512), MatmulSpec(1, 510, 512)
LARGE = MatmulSpec(2**14, 2**14, 64)
ILLEGAL = [
    ("mma-shape", "sm_100a", SPEC, Schedule((96, 128, 64))),
    ("mma-shape", "sm_100a", SPEC, Schedule((128, 72, 64))),
    ("accumulator-registers", "sm_90a", SPEC, Schedule((256, 256, 64))),
    ("tensor-memory", "sm_100a", SPEC, Schedule((192, 256, 64))),
    ("pair-shape", "sm_90a", SPEC, Schedule((64, 64, 64), cluster=(2, 1), pair=True)),
    ("pair-shape", "sm_100a", SPEC, Schedule((64, 48, 64), cluster=(2, 1), pair=True)),
    ("pair-shape", "sm_100a", SPEC, Schedule((128, 128, 64), cluster=(1, 2), pair=True)),
    ("cluster-size", "sm_100a", SPEC, Schedule((64, 64, 64), cluster=(5, 4))),
    ("staged-store", "sm_100a", SPEC, Schedule((128, 96, 64), staging=(64, 2))),
    ("staged-store", "sm_100a", SPEC, Schedule((64, 64, 64), 1, (2, 1), True, staging=(32, 2))),
    ("launch-control", "sm_90a", SPEC, Schedule((64, 64, 64), scheduler="clc")),
    (
        "grid-extent",
        "sm_100a",
        LARGE,
        Schedule((64, 16, 64), scheduler="static", order="hilbert"),
    ),
    ("grid-extent", "sm_100a", MatmulSpec(64, 2**21, 64), Schedule((64, 16, 64))),
]


@pytest.mark.parametrize(("name", "chip", "spec", "schedule"), ILLEGAL)
def test_a_schedule_that_breaks_a_rule_is_refused_by_a_pass_in_the_same_words(
    name, chip, spec, schedule
):
    target = find_target(chip)
    reason = RULES[name](Problem.of(spec, target), schedule, target)
    assert reason is not None
    with pytest.raises(CompileError) as refusal:
        compile_matmul(spec, target=chip, pipeline=schedule.pipeline(), until="llvm")
    assert reason in refusal.value.message


def test_rows_that_tma_cannot_store_are_called_so_by_the_rule_and_by_the_remark():
    schedule, target = Schedule((128, 64, 64), staging=(32, 2)), find_target("sm_100a")
    reason = RULES["staged-store"](Problem.of(NARROW, target), schedule, target)
    compiled = compile_matmul(NARROW, pipeline=schedule.pipeline(), until="mlir")
    assert reason is not None
    assert any(reason in remark for remark in compiled.remarks)
