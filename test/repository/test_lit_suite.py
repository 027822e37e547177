"""The RUN lines of every .mlir file, in this process: lit would start Python twice for each.

`lit -v FILE` does the same with processes; one folder goes through it here.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options

from tilewright.passes import PASSES
from tilewright.tools.main import main

TESTS = Path(__file__).parent.parent
LEFT_OUT = {"inputs", "golden", "found", "op_sources"}
FILES = [path for path in sorted(TESTS.rglob("*.mlir")) if not LEFT_OUT & set(path.parts)]
RUN = re.compile(r"RUN: (.*)")


@dataclass
class Command:
    """One command of a RUN line, and where its output and its errors go."""

    words: list[str] = field(default_factory=list)
    takes: str | None = None
    out: str = "pipe"
    err: str = "terminal"


def commands_of(line: str) -> list[Command]:
    """The commands of a pipeline; of the shell, just what our RUN lines use."""
    found, words = [Command()], iter(shlex.split(line))
    for word in words:
        if word == "|":
            found.append(Command())
        elif word == "2>&1":
            found[-1].err = found[-1].out
        elif word == "<":
            found[-1].takes = next(words)
        elif word.startswith(">"):
            found[-1].out = word[1:] or next(words)
        else:
            assert not set("<>&;$`") & set(word[:2]), f"{word}: not known here, only to lit"
            found[-1].words.append(word)
    return found


def call(words: list[str]) -> bool:
    """Whether the command succeeds; it prints to `sys.stdout` and `sys.stderr`."""
    name, *rest = words
    if name == "not":
        return not call(rest)
    if name == "filecheck":
        return Matcher.from_opts(parse_argv_options(list(words))).run() == 0
    if name == "python":
        done = subprocess.run([sys.executable, *rest], stdout=subprocess.PIPE, text=True)
        print(done.stdout)
        return done.returncode == 0
    assert name == "tilewright", f"{name}: not known here, only to lit"
    return main([*rest, "--long"] if rest[0] == "opt" else rest) == 0  # as lit.cfg.py has it


def run(line: str, monkeypatch) -> None:
    """Run a pipeline; every command has to succeed."""
    piped = ""
    for command in commands_of(line):
        given = piped if command.takes is None else Path(command.takes).read_text()
        streams = {place: io.StringIO() for place in ("pipe", "terminal", command.out)}
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        with redirect_stdout(streams[command.out]), redirect_stderr(streams[command.err]):
            succeeded = call(command.words)
        said = {place: stream.getvalue() for place, stream in streams.items()}
        assert succeeded, f"{line}: {command.words[0]} fails\n{given}\n{''.join(said.values())}"
        if command.out not in ("pipe", "terminal"):
            Path(command.out).write_text(said[command.out])
        piped = said["pipe"]


@pytest.fixture
def passes():
    """Passes that a line loads (`--load`) are known in it alone, as where each is a process."""
    entered = set(PASSES.entered())
    yield
    for name in set(PASSES.entered()) - entered:
        del PASSES[name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_the_run_lines_of_a_file_pass(path, tmp_path, monkeypatch, passes):
    lines = RUN.findall(path.read_text())
    assert lines
    for line in lines:
        places = {"%s": path, "%S": path.parent, "%t": tmp_path / "t"}
        for name, place in places.items():
            line = line.replace(name, str(place))
        run(line, monkeypatch)


def test_lit_itself_runs_them_too():
    lit = "from lit.main import main; main()"  # python -m lit.main does nothing
    file = TESTS / "dialects/split_k.mlir"
    command = [sys.executable, "-c", lit, "--verbose", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Passed: 1" in done.stdout, done.stdout + done.stderr


def test_a_check_that_does_not_hold_fails(tmp_path, monkeypatch):
    path = tmp_path / "wrong.mlir"
    path.write_text("// CHECK: tile.mma\nfunc.func @f() { return }\n")
    run(f"tilewright opt {path}", monkeypatch)
    run(f"not tilewright opt {path} --passes 'tiling'", monkeypatch)
    with pytest.raises(AssertionError, match="filecheck fails"):
        run(f"tilewright opt {path} | filecheck {path}", monkeypatch)
