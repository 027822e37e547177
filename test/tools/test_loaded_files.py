"""`--load FILE.py`: a user's file enters passes before a command compiles."""

from pathlib import Path

import pytest

from tilewright.passes import PASSES
from tilewright.tools import main
from tilewright.tools.command_line.loaded_files import load_files

PASS = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from tilewright.passes import PASSES

@dataclass(frozen=True)
class Nothing:
    \"\"\"Leaves the program as it is.\"\"\"

    name: ClassVar[str] = "nothing"

    def __call__(self, module, log):
        log.did("nothing")
"""
ENTERED = "PASSES[Nothing.name] = Nothing\n"
SIZES = ["--m", "64", "--n", "16", "--k", "16"]


@pytest.fixture
def file(tmp_path):
    """file(text): a file with this text; passes that it enters are known for a test alone."""
    entered = set(PASSES.entered())

    def write(text: str) -> str:
        path = tmp_path / "own.py"
        path.write_text(text)
        return str(path)

    yield write
    for name in set(PASSES.entered()) - entered:
        del PASSES[name]


def test_a_loaded_pass_may_be_named_and_is_listed(file, capsys):
    path = file(PASS + ENTERED)
    pipeline = "tiling{tile=64x16x16},nothing"
    words = ["compile", *SIZES, "--load", path, "--pipeline", pipeline, "--emit", "mlir"]
    assert main.main([*words, "--stop-after", "nothing"]) == 0
    assert "tile.kernel" in capsys.readouterr().out
    assert main.main(["opt", "--list-passes", "--load", path]) == 0
    assert "Leaves the program as it is." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PASS, "{path}: must enter a pass into tilewright.passes.PASSES, got none; end it with"),
        ("x = 1\nx.y\n", "{path}:2: error: --load: must run to its end, got AttributeError: 'int'"),
        ("def f(:\n", "{path}:1: error: --load: must run to its end, got SyntaxError: "),
        ("import sys\nsys.exit(0)\n", "code that is loaded must not end the program, got sys.exit"),
    ],
)
def test_a_file_that_is_none_of_passes_is_refused(text, said, file, capsys):
    path = file(text)
    assert main.main(["compile", *SIZES, "--load", path]) != 0
    assert said.format(path=path) in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main.main(["compile", *SIZES, "--load", str(tmp_path / "none.py")]) == 1
    assert "none.py" in capsys.readouterr().err


def test_opt_loads_no_file_that_nothing_reads(file, capsys):
    assert main.main(["opt", file(""), "--load", file(PASS + ENTERED)]) == 2
    assert "--load must come with --passes" in capsys.readouterr().err


def test_no_file_is_loaded_twice_under_one_name(file, tmp_path):
    other = tmp_path / "deeper" / "own.py"
    other.parent.mkdir()
    other.write_text(PASS.replace("nothing", "less") + ENTERED)
    load_files([Path(file(PASS + ENTERED)), other])
    assert {"nothing", "less"} <= set(PASSES.entered())
