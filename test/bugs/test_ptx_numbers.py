"""Every bit of an instruction descriptor of the tensor core counts: a change of one is seen."""

import re

import foreign_mutants
import pytest
from ptx_faults import qualifiers, weakened
from ptx_faults.kernels import compiled, verdict
from ptx_faults.numbers import mutants, numbers
from ptx_faults.shadows import beside

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import Trap, launch

MMA = re.compile(r"\btcgen05\.mma\.[^;]*?,\s*(?P<descriptor>%r\d+),\s*(?:\[[^;]*)?%p\d+;")


def descriptors(text: str) -> list:
    """Mutants of the constants that are instruction descriptors."""
    names = {each["descriptor"] for each in MMA.finditer(text)}
    assert names
    lines = text.splitlines()
    set_by = re.compile(rf"\s*mov\.b32\s+(?:{'|'.join(map(re.escape, names))}),")
    return [each for each in mutants(text) if set_by.match(lines[each.number.line - 1])]


@pytest.mark.sweep(16)
@pytest.mark.parametrize("bit", range(32))
@pytest.mark.parametrize("name", ["tcgen05", "tcgen05 in pairs", "launch control"])
def test_a_bit_of_an_instruction_descriptor_is_seen(name, bit):
    text = compiled(name).ptx
    (mutant,) = [each for each in descriptors(text) if each.value == each.number.value ^ 1 << bit]
    assert verdict(name, mutant.faulty, 0, 400_000)


def test_numbers_are_those_of_instructions_alone():
    text = (
        "\t.reg .b32 %r<7>;\n\tadd.s32 %r1, %r2, -16; // 5\n$L_2:\n\tst.b32 [%rd1+8], 0f00000000;"
    )
    assert [(each.line, each.value) for each in numbers(text)] == [(2, -16), (4, 8)]


def test_qualifiers_are_replaced_one_at_a_time():
    text = "\t@%p1 fence.acq_rel.gpu;\n\tadd.s32 %r1, %r2, 4;\n"
    lines = [each.faulty.splitlines()[0] for each in qualifiers.mutants(text) if each.line == 1]
    assert "\t@%p1 fence.acq_rel.cta;" in lines and "\t@%p1 fence.relaxed.gpu;" in lines
    assert [each.opcode for each in qualifiers.mutants(text) if each.line == 2] == ["max.s32"]


def test_an_instruction_that_orders_is_weakened():
    text = "\t@%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];\n\tfence.acq_rel.gpu;\n\tret;\n"
    changed = [(each.line, each.lines[0].strip()) for each in weakened.weakened(text)]
    assert changed == [
        (1, "@%p1 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r1];"),
        (2, "fence.release.gpu;"),
        (2, "fence.acquire.gpu;"),
    ]


KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k() {
.reg .b32 %r<4>; .reg .pred %p<2>;
mov.u32 %r0, %tid.x;
and.b32 %r1, %r0, 31;
setp.lt.u32 %p1, %r1, 40;
@%p1 add.u32 %r2, %r1, 1;
ret;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("%r0, 31", "%r0, 63", True),
        ("%r0, 31", "%r0, 15", False),
        ("%r1, 40", "%r1, 32", True),
        ("%r1, 40", "%r1, 31", False),
        ("%r1, 1", "%r1, 2", False),
    ],
)
def test_a_mutant_that_computes_the_same_values_is_told_from_others(old, new, same):
    text = beside(KERNEL, KERNEL.replace(old, new))
    assert text is not None
    try:
        launch(text, "k", grid=1, block=32)
    except Trap as trap:
        assert trap.category == "trap" and not same
    else:
        assert same


def test_where_more_than_a_result_changes_nothing_is_said():
    assert beside(KERNEL, KERNEL.replace("ret;", "exit;")) is None


def test_what_a_launch_does_not_execute_is_not_drawn(monkeypatch):
    parts = foreign_mutants.ptx_numbers.PARTS
    monkeypatch.setattr(foreign_mutants.ptx_numbers, "PARTS", {"left-out": parts["left-out"]})
    kernel = foreign_mutants.ptx_numbers.FOREIGN / "cuda" / "tcgen05_fp8.sm_100a.json"
    unreached = run_launch_file(kernel.with_suffix(".ptx"), kernel).report.unreached
    mutants = foreign_mutants.drawn(str(kernel), seed=1, share=1.0)
    assert unreached and mutants
    assert unreached.keys().isdisjoint(mutant.line for _, mutant in mutants)
