"""What strangers wrote may crash, hang or eat memory: one line, status 1, and nothing is left."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.runtime.child import ChildError, Limits
from tilewright.tools.command_line import isolated

PROGRAM = [sys.executable, "-m", "tilewright.tools.main"]
PROGRESS = re.compile(r"^ *\d+\.\d s  .* …\n", re.M)
PTX = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() { again: bra again; }
"""
LAUNCH = {"entry": "k", "grid": [1], "block": [32], "tensors": [], "parameters": []}
HANGING = (
    '#!/bin/sh\n[ "$1" = --version ] && { echo V13.5.37; exit; }\necho $$ > $PIDS\nexec sleep 999'
)
SPEC = ("--m", "64", "--n", "48", "--k", "32")


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.mlir"
    path.write_text("func.func @f() { return }\n")
    return path


def ran(*words, **more):
    done = subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, text=True, **more)
    return done.returncode, done.stdout, PROGRESS.sub("", done.stderr)


def endless(tmp_path) -> tuple[str, ...]:
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "launch.json").write_text(json.dumps(LAUNCH))
    return "emulate", str(tmp_path / "k.ptx"), "--launch", str(tmp_path / "launch.json")


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait(condition, seconds=60):
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.02)


CRASH = "the compiler must read it to an end, got SIGSEGV (segmentation fault); simplify it, or"


@pytest.fixture
def crashing(tmp_path):
    """An environment in which the process that reads a file crashes, as by a fault of MLIR's."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if any(word.endswith('.isolated_child') for word in sys.orig_argv):\n"
        "    os.kill(os.getpid(), 11)\n"
    )
    return os.environ | {"PYTHONPATH": str(tmp_path)}


def test_a_file_that_crashes_the_compiler_is_one_line_of_text_and_of_json(good, crashing):
    status, out, err = ran("opt", good, "--json", env=crashing)
    message = f"error: {good}: {CRASH} report it with the file"
    assert (status, err) == (1, message + "\n")
    assert json.loads(out) == {"ok": False, "error": message}


@pytest.mark.sweep
@pytest.mark.parametrize("file", ["good.mlir", "weights.pt2", "bundle.zip"])
@pytest.mark.parametrize(
    "words",
    [("compile",), ("run",), ("opt",), ("opt", "--passes", "tiling"), ("explain", "schedule")],
)
def test_every_command_that_takes_a_file_survives_it(words, file, crashing):
    status, out, err = ran(*words, file, env=crashing)
    assert (status, out, err) == (1, "", f"error: {file}: {CRASH} report it with the file\n")


@pytest.mark.sweep
@pytest.mark.parametrize("words", [("compile", "--pipeline", "tiling"), ("run", "--pipeline", "x")])
def test_the_text_of_a_pipeline_is_read_in_a_child_too(words, crashing):
    status, out, err = ran(*words, *SPEC, env=crashing)
    assert (status, out, err) == (1, "", f"error: pipeline: {CRASH} report it with the file\n")


def test_the_time_of_a_file_is_limited(good):
    started = time.monotonic()
    status, out, err = ran("compile", good, "--max-seconds", 0.01)
    assert time.monotonic() - started < 60
    rule = "must be done within 0.01 s, got no end; simplify it or raise --max-seconds"
    assert (status, out, err) == (1, "", f"error: {good}: {rule}\n")


def test_the_memory_of_a_file_is_limited(good, capfd):
    limits = argparse.Namespace(file=good, max_seconds=60.0, max_memory=2**27)
    try:
        status, said = isolated.run_in_child(["opt", str(good)], limits), capfd.readouterr().err
    except ChildError as error:
        status, said = 1, f"error: {error}\n"
    rule = "must run within [0-9.]+ GiB of memory, got more; make it smaller or raise --max-memory"
    assert status == 1
    # Before it Python may say that it had no memory for a message of its own.
    assert re.search(f"error: (memory|{good}): {rule}\n$", said)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n",
            "must run within 16 GiB",
        ),
        ("\nLLVM ERROR: no\nStack dump:\n", "got SIGABRT (aborted): LLVM ERROR: no; simplify it"),
    ],
)
def test_what_native_code_says_as_it_dies_is_the_reason(said, message):
    limits = Limits(60, 16 * 2**30)
    assert message in str(isolated._crashed("f.mlir", -signal.SIGABRT, said, limits))


def test_a_good_file_is_printed_as_ever(good):
    status, out, err = ran("opt", good)
    assert (status, err) == (0, "")
    assert "func.func @f()" in out


def started(command, **more) -> subprocess.Popen:
    """The command as a terminal starts it: what a shell runs behind has SIGINT ignored."""

    def listening():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=listening, **more)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.sweep
def test_the_process_of_a_launch_goes_with_its_parent(number, tmp_path):
    command = [*PROGRAM, *endless(tmp_path)]
    with started(command, text=True) as parent:
        wait(lambda: children_of(parent.pid))
        (worker,) = children_of(parent.pid)
        parent.send_signal(number)
        _, err = parent.communicate()
    wait(lambda: not is_running(worker))
    interrupted = number == signal.SIGINT
    assert parent.returncode == (130 if interrupted else -number)
    assert PROGRESS.sub("", err) == ("error: interrupted\n" if interrupted else "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("pipeline", [(), ("--pipeline", "tiling")], ids=["spec", "child"])
@pytest.mark.sweep
def test_ptxas_and_its_folder_go_with_the_program(number, pipeline, tmp_path):
    (tmp_path / "ptxas").write_text(HANGING)
    (tmp_path / "ptxas").chmod(0o755)
    (tmp_path / "tmp").mkdir()
    pids = tmp_path / "pids"
    more = {"TILEWRIGHT_PTXAS": tmp_path / "ptxas", "TMPDIR": tmp_path / "tmp", "PIDS": pids}
    environment = os.environ | {name: str(value) for name, value in more.items()}
    words = ["compile", *SPEC, *pipeline, "-o", str(tmp_path / "k.cubin")]
    with started([*PROGRAM, *words], env=environment) as parent:
        wait(lambda: pids.exists() and pids.read_text())
        ptxas = int(pids.read_text())
        parent.send_signal(number)
        parent.communicate()
    wait(lambda: not is_running(ptxas))
    if number == signal.SIGKILL:
        from tilewright.runtime.scratch import sweep

        sweep(str(tmp_path / "tmp"))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "k.cubin").exists()


def test_a_ptxas_that_does_not_end_is_one_line(tmp_path, monkeypatch, tilewright):
    (tmp_path / "ptxas").write_text(HANGING)
    (tmp_path / "ptxas").chmod(0o755)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("TILEWRIGHT_PTXAS", str(tmp_path / "ptxas"))
    monkeypatch.setenv("TILEWRIGHT_PTXAS_SECONDS", "0.5")
    found = tilewright("compile", *SPEC, "-o", tmp_path / "k.cubin")
    rule = "ptxas: must be done within 0.5 s, got no end; raise TILEWRIGHT_PTXAS_SECONDS"
    assert (found.status, found.out, found.err) == (1, "", f"error: {rule}\n")


@pytest.mark.parametrize(
    ("flag", "value", "rule"),
    [
        ("--max-memory", "1", "must be a size from 1G below 8388608T"),
        ("--max-memory", "much", "must be a size from 1G below 8388608T"),
        ("--max-memory", "9" * 400, "must be a size from 1G below 8388608T"),
        ("--max-seconds", "0", "must be seconds above 0 and up to 1e6"),
    ],
)
@pytest.mark.parametrize("command", ["compile", "opt"])
def test_limits_that_are_none_are_wrong_usage(command, flag, value, rule, tilewright):
    found = tilewright(command, "x.mlir", flag, value)
    assert (found.status, found.out) == (2, "")
    assert rule in found.err


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("16G", 2**34), ("16GiB", 2**34), ("16gb", 2**34), ("1.5T", 3 * 2**39), ("2147483648", 2**31)],
)
def test_sizes_are_read(text, size_bytes):
    assert isolated.memory(text) == size_bytes
