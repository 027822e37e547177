"""What lies in a file's place and is no file: refused at once, not waited for."""

import json
import os
import re
from pathlib import Path

import pytest

from tilewright.compiler.importers.mlir_files import read_mlir
from tilewright.dialects.errors import CompileError
from tilewright.runtime import LaunchError
from tilewright.runtime.launch_files.description import read_limited


@pytest.fixture
def lay(tmp_path):
    """lay(what) makes it and gives its path."""

    def make(what):
        path = tmp_path / "x.mlir"
        if what == "a pipe":
            os.mkfifo(path)
        elif what == "a folder":
            path.mkdir()
        elif what == "more than 67108864 bytes":
            with path.open("wb") as file:
                file.truncate(5 * 2**30)  # a hole: takes no room
        return "/dev/zero" if what == "a device" else path

    return make


KINDS = ["a pipe", "a folder", "a device", "more than 67108864 bytes"]


@pytest.mark.parametrize("what", KINDS)
def test_a_source_that_is_no_file_is_refused_unread(what, lay):
    path = lay(what)
    wanted = f"{path}: must be a readable .mlir file, got {what}; check the path"
    with pytest.raises(CompileError, match=re.escape(wanted)):
        read_mlir(Path(path))


@pytest.mark.parametrize("what", KINDS)
def test_a_kernel_or_launch_that_is_no_file_is_refused_unread(what, lay):
    path = lay(what)
    wanted = f"{path}: must be a file of at most 67108864 bytes, got {what}; check the path"
    with pytest.raises(LaunchError, match=re.escape(wanted)):
        read_limited(Path(path), 64 * 2**20)


@pytest.mark.parametrize(
    "words", [("compile",), ("run",), ("opt",), ("emulate", "--launch", "launch.json")]
)
def test_the_commands_refuse_a_pipe(words, lay, tilewright, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    launch = {"schema": 1, "entry": "k", "grid": [1], "block": [1], "tensors": [], "parameters": []}
    (tmp_path / "launch.json").write_text(json.dumps(launch))
    command, *rest = words
    ran = tilewright(command, lay("a pipe"), *rest)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.endswith(", got a pipe; check the path\n")
