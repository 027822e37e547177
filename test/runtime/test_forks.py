"""A process that forks while another of its threads is busy."""

import gc
import os
import signal
import threading

import pytest

from tilewright.runtime import child
from tilewright.runtime.collector import no_full_collections
from tilewright.runtime.locks import shared_lock


@pytest.fixture
def busy():
    """Another thread that holds a lock and is in a block without collections."""
    lock, entered, leave = shared_lock(), threading.Event(), threading.Event()

    def work():
        with lock, no_full_collections():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    yield lock
    leave.set()
    thread.join()


def in_child(ask):
    """Whether ask() is true in a child that was forked."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if ask() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_lock_of_a_thread_that_is_not_there_is_free(busy):
    assert not busy.acquire(blocking=False)
    assert in_child(lambda: busy.acquire(blocking=False))
    assert not busy.acquire(blocking=False), "the parent's is held"


def test_a_lock_of_the_thread_that_forks_stays_its_own():
    lock = shared_lock()
    with lock:
        assert in_child(lambda: lock._is_owned() and not lock.release())
    assert not lock._is_owned()


def test_collections_are_those_of_the_threads_that_are_there(busy):
    patient = gc.get_threshold()
    assert in_child(lambda: gc.get_threshold() != patient)
    with no_full_collections():
        assert in_child(lambda: gc.get_threshold() == patient)


def test_no_thread_forks_while_another_starts_a_program(monkeypatch, tmp_path):
    forked = threading.Thread(target=in_child, args=(lambda: True,))
    begin = child.subprocess.Popen

    def popen(*words, **streams):
        forked.start()
        forked.join(0.1)
        assert forked.is_alive()
        return begin(*words, **streams)

    monkeypatch.setattr(child.subprocess, "Popen", popen)
    assert child._run(["echo", "said"], tmp_path, 60, {**os.environ}).stdout == "said\n"
    forked.join()
