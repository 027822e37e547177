"""A ptxas that starts while LLVM runs gives what one gives that starts behind it."""

import os
import resource
import signal
import stat
import threading
import time

import pytest

from tilewright.compiler import backend, ptxas_ahead
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

STORE = (
    ".version 8.8\n.target sm_100a\n.address_size 64\n"
    ".visible .entry store(.param .u64 out) { .reg .b64 %p; ld.param.b64 %p, [out];"
    " st.global.b32 [%p], 7; ret; }\n"
)
OPTIONS = {"chip": "sm_100a"}


@pytest.fixture
def no_second_start(monkeypatch):
    """The ptxas that started ahead is the only one that may run."""
    backend.ptxas_version(str(backend.find_ptxas()))

    def refuse(command, *_):
        raise AssertionError(f"started behind LLVM: {command}")

    monkeypatch.setattr(backend, "run_tool", refuse)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Takes lines of a shell that stand before ptxas as it was; where they may write."""
    real = backend.find_ptxas()

    def install(lines):
        path = tmp_path / "ptxas"
        path.write_text(f'#!/bin/sh\n{lines}\nexec {real} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(backend.PTXAS_VARIABLE, str(path))
        return tmp_path

    return install


@pytest.mark.parametrize("pipes_full", [0, 40], ids=["short", "longer than pipes"])
def test_it_assembles_the_same(no_second_start, pipes_full, monkeypatch):
    ptx = STORE + "// as long as this\n" * (pipes_full * ptxas_ahead.WRITTEN_BYTES // 19)
    with backend.assembler_ahead(**OPTIONS) as ahead:
        assert ahead is not None
        time.sleep(0.05)  # as LLVM takes, so that it waits for its input
        found = backend.assemble(ptx, **OPTIONS, ahead=ahead)
    assert not ahead.folder.exists()
    monkeypatch.undo()
    expected = backend.assemble(ptx, **OPTIONS)
    assert found.cubin == expected.cubin
    assert found.registers == expected.registers > 0


def test_a_compilation_starts_it_before_llvm_runs(no_second_start):
    compiled = compile_matmul(MatmulSpec(64, 64, 64))
    assert compiled.assembled is not None and compiled.assembled.cubin.startswith(b"\x7fELF")


def test_one_that_is_not_asked_ends_with_its_folder():
    with pytest.raises(CompileError, match="IR must parse"):
        with backend.assembler_ahead(**OPTIONS) as ahead:
            assert ahead is not None
            backend.emit_ptx("nonsense")
    assert ahead is not None and ahead._process.returncode < 0
    assert not ahead.folder.exists()


def test_another_command_and_a_second_ptx_start_one_of_their_own(script):
    folder = script('echo "$@" >> "${0%/*}/told"')
    with backend.assembler_ahead(**OPTIONS) as ahead:
        backend.assemble(STORE, **OPTIONS, keep_order=True, ahead=ahead)
        for _ in range(2):
            backend.assemble(STORE, **OPTIONS, ahead=ahead)
    levels = [line.split()[0] for line in (folder / "told").read_text().splitlines()]
    assert sorted(levels) == ["-O1", "-O3", "-O3"]


@pytest.mark.parametrize(
    "lines",
    ["test -p kernel.ptx && exit 3", "test -p kernel.ptx && cat kernel.ptx && exit 3"],
    ids=["unread", "read"],
)
def test_one_that_cannot_read_a_pipe_gets_a_file(script, lines):
    script(lines)
    with backend.assembler_ahead(**OPTIONS) as ahead:
        assert backend.assemble(STORE, **OPTIONS, ahead=ahead).cubin.startswith(b"\x7fELF")


def test_what_it_refuses_is_refused_in_the_same_words():
    bad = STORE.replace("st.global", "st.globe")
    with backend.assembler_ahead(**OPTIONS) as ahead, pytest.raises(CompileError) as refused:
        backend.assemble(bad, **OPTIONS, ahead=ahead)
    with pytest.raises(CompileError) as expected:
        backend.assemble(bad, **OPTIONS)
    assert str(refused.value) == str(expected.value)


@pytest.mark.parametrize("lines", ["sleep 100", "exec 3< kernel.ptx; sleep 100"])
def test_one_that_does_not_end_is_stopped(script, lines, monkeypatch):
    script(lines)
    monkeypatch.setenv(backend.SECONDS_VARIABLE, "0.3")
    long = STORE + "//\n" * ptxas_ahead.WRITTEN_BYTES
    with backend.assembler_ahead(**OPTIONS) as ahead:
        with pytest.raises(CompileError, match=r"must be done within 0.3 s, got no end"):
            backend.assemble(long, **OPTIONS, ahead=ahead)


def test_without_what_it_needs_it_is_not_started(monkeypatch):
    def no_pipe(*_):
        raise PermissionError

    monkeypatch.setattr(ptxas_ahead.os, "mkfifo", no_pipe)
    with backend.assembler_ahead(**OPTIONS) as ahead:
        assert ahead is None
        assert backend.assemble(STORE, **OPTIONS, ahead=ahead).cubin


def test_it_may_say_more_than_a_pipe_takes_before_it_reads(script, no_second_start):
    script("head -c 200000 /dev/zero | tr '\\0' x >&2; exec 3< kernel.ptx; sleep 0.01")
    long = STORE + "//\n" * ptxas_ahead.WRITTEN_BYTES
    with backend.assembler_ahead(**OPTIONS) as ahead:
        assert "x" * 200_000 in backend.assemble(long, **OPTIONS, ahead=ahead).log


def test_a_process_may_have_many_files(no_second_start):
    """Of which select(2) takes 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2048)), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with backend.assembler_ahead(**OPTIONS) as ahead:
            assert backend.assemble(STORE, **OPTIONS, ahead=ahead).cubin
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def in_child(ask):
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if ask() else 1)
    return child


def test_it_ends_where_a_child_is_forked_that_stays(no_second_start, monkeypatch):
    """As by another thread, while it is given its PTX."""
    children, write = [], ptxas_ahead._write

    def written(*arguments):
        children.append(in_child(lambda: time.sleep(60)))
        write(*arguments)

    monkeypatch.setattr(ptxas_ahead, "_write", written)
    monkeypatch.setenv(backend.SECONDS_VARIABLE, "10")
    try:
        with backend.assembler_ahead(**OPTIONS) as ahead:
            assert backend.assemble(STORE, **OPTIONS, ahead=ahead).cubin
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert children


def test_a_child_need_not_wait_for_llvm_in_a_thread_that_it_has_not():
    lock, held, leave = backend._llvm().ffi.lib._lock._lock, threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        child = in_child(lambda: lock.acquire(blocking=False))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        leave.set()
        thread.join()
