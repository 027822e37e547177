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


def test_what_nobody_tried_has_not_passed(capsys):
    assert main(["conform", f"{FAULTY}:right", "--families", "large", "--b", "nk"]) == 1
    assert capsys.readouterr().out.endswith("NOT TRIED  0 right, 0 refused, 0 failed\n")


LEAVING = """import sys
def gemm(a, b): sys.exit(0)
def later(a, b):
    import threading
    return a @ b.T if threading.current_thread() is threading.main_thread() else sys.exit(0)
"""


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("import sys; sys.exit(0)", [], "error: {0}: must be a function that can be loaded, got"),
        (LEAVING, [], "error: {0}: must multiply [m, k] by [k, n] or [n, k] of bf16, got [kn]"),
        (LEAVING.replace("gemm", "_").replace("later", "gemm"), ["--families", "threads"], ""),
    ],
)
def test_a_subject_that_ends_the_program_has_not_passed(text, words, said, tmp_path, capsys):
    subject = f"{tmp_path / 'leaves.py'}:gemm"
    (tmp_path / "leaves.py").write_text(text)
    status = main(["conform", subject, *words])
    captured = capsys.readouterr()
    assert status == 1 or ("refused []" in captured.out and "SystemExit" in captured.out)
    assert said.format(subject) in captured.err


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
