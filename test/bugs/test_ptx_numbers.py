"""Every bit of an instruction descriptor of the tensor core counts: a change of one is seen."""

import re

import pytest
from ptx_faults.kernels import compiled, verdict
from ptx_faults.numbers import mutants, numbers

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
