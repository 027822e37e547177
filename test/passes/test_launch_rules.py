"""What a kernel says of its launch is read, and its agents get the registers they ask for."""

import functools
import re
from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

SOURCE = "tile.source = {arguments = 2 : i64, inputs = [0, 1], transposed = [true, false]}"
BIASED = Path(__file__).parents[1] / "numerics" / "inputs" / "bias_relu.mlir"
ROLES = "tiling{tile=128x256x64},tma-insertion,swizzle-selection,pipelining,warp-specialization"


@functools.cache
def program(last):
    spec = MatmulSpec(128, 256, 128, a_major="m")
    how = {"target": "sm_90a", "pipeline": ROLES, "stop_after": last, "until": "mlir"}
    return compile_matmul(spec, **how).mlir


def refuse(text, message):
    with pytest.raises(CompileError, match=message) as caught:
        run_passes_on_text(text, "edited.mlir", "assign-threads")
    assert caught.value.location


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("7 : i64", "must have the fields arguments, inputs, transposed, got 7"),
        ("{arguments = 2 : i64, inputs = [0, 1]}", "must have the fields"),
        ("{inputs = [0, 1], transposed = [true, false]}", "must have the fields"),
        (
            "{arguments = 2 : i64, inputs = [0, 1], more = 1 : i64, transposed = [true, false]}",
            "must have the fields",
        ),
        (
            "{arguments = 0 : i64, inputs = [0, 1], transposed = [true, false]}",
            "arguments must be a number from 1 to 10000, got 0",
        ),
        (
            "{arguments = 10001 : i64, inputs = [0, 1], transposed = [true, false]}",
            "arguments must be a number from 1 to 10000, got 10001",
        ),
        (
            '{arguments = "2", inputs = [0, 1], transposed = [true, false]}',
            'arguments must be a number from 1 to 10000, got "2"',
        ),
        (
            "{arguments = 2 : i64, inputs = [0], transposed = [true, false]}",
            r"inputs must be 2 numbers, got \[0\]",
        ),
        (
            "{arguments = 2 : i64, inputs = [0, 2], transposed = [true, false]}",
            r"inputs must be numbers of the 2 arguments, got \[0, 2\]",
        ),
        (
            "{arguments = 2 : i64, inputs = [0, -1], transposed = [true, false]}",
            r"inputs must be numbers of the 2 arguments, got \[0, -1\]",
        ),
        (
            "{arguments = 2 : i64, inputs = [0, 1], transposed = [true, 0]}",
            r"transposed must be 2 flags, got \[true, 0\]",
        ),
        (
            "{arguments = 2 : i64, inputs = [0, 1], transposed = [true]}",
            r"transposed must be 2 flags, got \[true\]",
        ),
    ],
)
def test_what_is_said_of_the_sources_arguments_is_read(new, message):
    text = program("tiling")
    assert text.count(SOURCE) == 1
    refuse(text.replace(SOURCE, f"tile.source = {new}"), f"source: tile.source: {message}")


def test_a_vector_is_never_transposed():
    text = compile_matmul(BIASED, pipeline="tiling", stop_after="tiling", until="mlir").mlir
    said = (
        "tile.source = {arguments = 3 : i64, inputs = [0, 1, 2], transposed = [false, true, true]}"
    )
    edited = text.replace("threads = 128 : i64}", f"threads = 128 : i64, {said}}}")
    assert edited != text
    refuse(edited, "source: .*transposed must be false for input 2, which is no matrix, got")


@pytest.mark.parametrize("chip", ["", "sm_42"])
def test_a_module_names_a_chip_that_there_is(chip):
    text = program("tiling").replace('tile.target = "sm_90a"', f'tile.target = "{chip}"')
    refuse(text, f"tile.target: target: unknown chip '{chip}'; use one of sm_100a, sm_90a")


def test_two_inputs_may_be_one_argument():
    text = program("tiling").replace("inputs = [0, 1]", "inputs = [1, 1]")
    run_passes_on_text(text, "edited.mlir", "assign-threads")


ASKS = re.compile(r'"pipe.set_registers"\(\) \{count = (\d+) : i64\}.*')


def asked(text):
    return [int(each) for each in ASKS.findall(text)]


def test_agents_that_ask_for_more_than_there_is_are_refused():
    text = program("warp-specialization")
    most, least = max(asked(text)), min(asked(text))
    for old, new in ((most, most + 8), (least, 128)):
        edited = text.replace(f"count = {old} :", f"count = {new} :")
        refuse(edited, "registers: the counts of [0-9]+ warps must sum to at most [0-9]+, as")


def test_agents_that_give_up_more_are_not():
    text = program("warp-specialization")
    edited = text.replace(f"count = {min(asked(text))} :", "count = 24 :")
    run_passes_on_text(edited, "edited.mlir", "assign-threads")


def test_an_agent_asks_once():
    text = program("warp-specialization")
    twice = ASKS.sub(lambda match: f"{match[0]}\n{match[0]}", text, count=1)
    refuse(twice, "registers: an agent asks for registers once, got 2 times")
