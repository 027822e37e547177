"""`tilewright conform`: what it prints, its exit status, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from tilewright.tools.main import main

FAULTY = str(Path(__file__).parent.parent / "conformance/faulty.py")


def test_a_right_function_passes(capsys):
    assert main(["conform", f"{FAULTY}:right", "--families", "ones,square", "--b", "nk"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"subject    {FAULTY}:right: [m, k]·[n, k] of bf16 and bf16, on cpu")
    assert re.search(r"^ ones +7 *$", text, re.MULTILINE)
    assert text.endswith("PASS  12 right, 0 refused, 0 failed\n")


def test_a_wrong_function_fails_with_its_smallest_case(capsys):
    words = ["conform", f"{FAULTY}:transposes_a_square", "--families", "square", "--json"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    (family,) = found["families"]
    assert (found["ok"], family["counts"]["wrong"]) == (False, 3)
    assert family["smallest_failing"]["case"] == "2×2×1"


def test_the_families_are_listed(capsys):
    assert main(["conform", "--list"]) == 0
    assert "k-tails" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a SUBJECT must be given, got none"),
        (["torch:mm", "--families", "k-tail"], "--families must be of ones, zeros,"),
        (["torch:mm", "--dtype", "f12"], "--dtype must be one of bf16, f16, f32"),
        (["kernel.ptx"], "KERNEL.ptx must come with --launch, got none"),
        (["numpy:matmul", "--arrays", "numpy", "--device", "cuda"], "must be cpu, got 'cuda'"),
    ],
)
def test_a_wrong_command_line_is_told(words, message, capsys):
    assert main(["conform", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_function_that_is_missing_is_told(capsys):
    assert main(["conform", f"{FAULTY}:nothing"]) == 1
    assert "has no attribute 'nothing'" in capsys.readouterr().err
