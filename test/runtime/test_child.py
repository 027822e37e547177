"""Children end with their parent, whatever ends it, and at limits that they cannot lift."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.runtime import child
from tilewright.runtime.child import Limits

PARENT = """
import os, subprocess, sys, threading
from tilewright.runtime import child
{setup}
read, hold = os.pipe()
code = '''{code}'''
def start():
    command = [sys.executable, "-c", code, str(read)]
    process = child.start(command, child.Limits(), stdout=subprocess.PIPE, pass_fds=[read])
    print(process.pid, process.stdout.readline().decode().strip(), flush=True)
    process.wait()
start()
"""
ALONE = "import time; print(0, flush=True); time.sleep(1000)"
WITH_ONE = (
    "import subprocess, sys, time; each = subprocess.Popen(['sleep', '1000']);"
    "print(each.pid, flush=True); time.sleep(1000)"
)
WATCHING = (
    "import sys; from tilewright.runtime.child import watch_parent;"
    "watch_parent(int(sys.argv[1]));" + WITH_ONE
)
NO_PRCTL = "child._prctl = lambda: None"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pid: int, seconds: float = 60) -> bool:
    last = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < last:
        time.sleep(0.02)
    return not is_running(pid)


@pytest.mark.parametrize(
    ("code", "setup"), [(ALONE, ""), (WATCHING, NO_PRCTL)], ids=["prctl", "pipe"]
)
def test_a_child_goes_when_its_parent_is_killed(code, setup):
    text = PARENT.format(code=code, setup=setup)
    parent = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert is_running(pids[0])
    parent.kill()
    parent.communicate()
    assert all(gone(pid) for pid in pids if pid)


def started(code: str, limits: Limits = Limits()):  # noqa: B008
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return child.start([sys.executable, "-c", code], limits, **pipes)


def test_end_reaches_what_the_child_has_started():
    process = started(WITH_ONE)
    grandchild = int(process.stdout.readline())
    assert child.end(process) == -signal.SIGTERM
    assert gone(grandchild)
    assert child.end(process) == -signal.SIGTERM  # again is no harm
    process.communicate()


def test_a_child_that_will_not_end_is_killed():
    process = started("import signal, time; signal.signal(15, signal.SIG_IGN); " + ALONE)
    process.stdout.readline()
    assert child.end(process) == -signal.SIGKILL
    process.communicate()


def test_a_child_is_given_the_time_to_clean_up(monkeypatch):
    monkeypatch.setattr(child, "GRACE_SECONDS", 60)  # a busy machine takes long to end Python
    code = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7));"
        "print(0, flush=True); time.sleep(1000)"
    )
    process = started(code)
    process.stdout.readline()
    assert child.end(process) == 7
    process.communicate()


def test_the_time_of_a_child_ends_whatever_it_catches():
    catch = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"
    process = started(catch, Limits(seconds=0.3))
    assert process.wait(60) == -signal.SIGALRM
    process.communicate()


def test_the_memory_of_a_child_cannot_be_raised():
    code = (
        "import resource as r\n"
        "assert r.getrlimit(r.RLIMIT_AS) == (2**30, 2**30)\n"
        "assert r.getrlimit(r.RLIMIT_CORE) == (0, 0)\n"
        "try: r.setrlimit(r.RLIMIT_AS, (2**31, 2**31))\n"
        "except (ValueError, PermissionError): pass\n"
        "try: bytearray(2**30)\n"
        "except MemoryError: print('too much')\n"
    )
    process = started(code, Limits(memory_bytes=2**30))
    out, err = process.communicate()
    assert (out, err) == (b"too much\n", b"") or os.geteuid() == 0  # root may raise it


def test_a_tool_that_does_not_end_is_stopped(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        child.run_tool(["sleep", "1000"], tmp_path, 0.1)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_tool_is_started_alike_with_setpriv_and_without(guarded, tmp_path, monkeypatch):
    """Of our own processes it is the child; what cannot be executed is an OSError in both ways."""
    if not guarded:
        monkeypatch.setattr(child, "_guard", lambda: None)
    done = child.run_tool(["/bin/sh", "-c", 'echo "$PPID" "$PWD"; exit 3'], tmp_path, 20)
    assert (done.returncode, done.stdout) == (3, f"{os.getpid()} {tmp_path}\n")
    killed = child.run_tool(["/bin/sh", "-c", "kill -SEGV $$"], tmp_path, 20)
    assert killed.returncode == -signal.SIGSEGV
    for command in ("no-such-tool", str(tmp_path)):
        with pytest.raises(OSError):
            child.run_tool([command], tmp_path, 20)


@pytest.mark.parametrize(
    ("status", "words"),
    [(-11, "SIGSEGV (segmentation fault)"), (3, "exit status 3"), (-99, "signal 99")],
)
def test_a_crash_is_named(status, words):
    assert child.crash_of(status) == words


@pytest.mark.parametrize(
    ("text", "is_memory"),
    [
        ("terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("LLVM ERROR: out of memory", True),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes", True),
        ("libx.so: failed to map segment from shared object", True),
        ("LLVM ERROR: Symbol name with unsupported characters", False),
    ],
)
def test_the_words_of_libraries_about_memory_are_known(text, is_memory):
    assert child.says_out_of_memory(text) == is_memory


def test_a_system_error_is_one_of_memory_where_it_comes_of_one_or_under_a_small_limit(monkeypatch):
    bare, caused = SystemError("error return without exception set"), SystemError("with one set")
    caused.__cause__ = MemoryError()
    monkeypatch.setattr(child, "memory_limit", lambda: 2**34)
    assert [child.is_out_of_memory(error) for error in (bare, caused)] == [False, True]
    monkeypatch.setattr(child, "memory_limit", lambda: 360 * 2**20)
    assert child.is_out_of_memory(bare)
    assert not child.is_out_of_memory(ValueError("no"))
