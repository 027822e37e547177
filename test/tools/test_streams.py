"""Streams that are closed, full, gone or ASCII: no traceback, and the right exit status."""

import os
import subprocess
import sys

import pytest

SIZES = "--m 64 --n 48 --k 32"
PROGRAMS = {
    "help": "main --help",
    "emulate help": "main emulate --help",
    "version": "main --version",
    "version json": "main --version --json",
    "passes": "main opt --list-passes",
    "opt": "main opt {file}",
    "compile": f"main compile {SIZES}",
    "explain": f"main explain schedule {SIZES}",
    "explain json": f"main explain schedule {SIZES} --all --json",
    "presets page": "pages.preset_docs",
    "pages": "pages.dialect_docs --help",
}
LARGE = ("explain json", "presets page")  # more than a pipe holds, and a page
FULL = "No space left on device"
CLOSED = "Bad file descriptor"


@pytest.fixture
def shell(tmp_path):
    """shell(program, redirection, **environment): status of the program, stdout, stderr."""
    (tmp_path / "f.mlir").write_text("func.func @f() { return }\n")

    def run(program: str, redirection: str, **environment: str):
        words = PROGRAMS.get(program, program).format(file=tmp_path / "f.mlir")
        command = (
            f"{sys.executable} -m tilewright.tools.{words} {redirection}; exit ${{PIPESTATUS[0]}}"
        )
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, env=os.environ | environment
        )
        assert b"Traceback" not in done.stderr
        assert b"internal error" not in done.stderr
        return done.returncode, done.stdout, done.stderr.decode()

    return run


def messages(err: str) -> list[str]:
    return [line for line in err.splitlines() if not line.endswith(" …")]


def lost(reason: str) -> list[str]:
    return [f"error: stdout: must be writable, got {reason}; send it elsewhere"]


@pytest.mark.sweep(48)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("where", "reason"), [("> /dev/full", FULL), (">&-", CLOSED)])
def test_output_that_cannot_be_written_is_one_line_and_status_1(where, reason, program, shell):
    status, out, err = shell(program, where)
    assert (status, out, messages(err)) == (1, b"", lost(reason))


def test_the_output_of_a_child_that_cannot_be_written_is_one_line_and_status_1(shell):
    status, out, err = shell("opt", "> /dev/full")
    assert (status, out, messages(err)) == (1, b"", lost(FULL))


@pytest.mark.sweep(48)
@pytest.mark.parametrize("program", LARGE)
def test_a_reader_that_has_gone_is_no_message(program, shell):
    status, _, err = shell(program, "| true")
    assert (status in (0, 141), messages(err)) == (True, [])


def test_a_table_whose_reader_has_gone_is_no_message(shell):
    status, _, err = shell("main opt --list-passes", "| true")
    assert (status, messages(err)) == (141, [])


@pytest.mark.sweep(48)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("where", ["<&-", "2>&-"])
def test_other_streams_may_be_closed_or_full(where, program, shell):
    status, out, err = shell(program, where)
    assert (status, messages(err)) == (0, [])
    assert out


@pytest.mark.sweep(48)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "C"],
)
def test_a_terminal_may_be_ascii(environment, program, shell):
    status, out, err = shell(program, "", **environment)
    assert (status, messages(err)) == (0, [])
    assert out.isascii() or "page" in program  # pages are UTF-8, as their files


def test_on_an_ascii_terminal_our_signs_have_ascii_ones(shell):
    status, out, _ = shell("explain", "", PYTHONIOENCODING="ascii")
    assert status == 0
    assert out.startswith(b"matmul     64x48x32, bf16 -> bf16, sm_100a\n")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("<&-", "Bad file descriptor"),
        ("< /dev/urandom", "more than 67108864 bytes"),
        ("<<< $'\\xff'", "bytes that are not UTF-8"),
    ],
    ids=["closed", "endless", "binary"],
)
@pytest.mark.sweep(48)
def test_stdin_that_is_no_text_is_one_line(where, reason, shell):
    status, out, err = shell("main opt -", where)
    (message,) = messages(err)
    assert (status, out) == (1, b"")
    assert message.startswith("error: stdin: must be a readable .mlir file")
    assert reason in message


@pytest.mark.sweep(48)
@pytest.mark.parametrize("words", ["main compile nowhere.mlir", "main compile --m 3"])
def test_an_error_whose_stderr_is_closed_is_not_on_stdout(words, shell):
    status, out, err = shell(words, "2>&-")
    assert (status, out, err) == (2 if "--m" in words else 1, b"", "")
