"""Progress: silent when fast, one line a step when slow."""

import time

from tilewright.tools.command_line.progress import Progress


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


def test_what_is_fast_says_nothing(capfd):
    with Progress("thinking", delay=60) as progress:
        progress.update("still thinking")
    assert capfd.readouterr().err == ""


def test_what_is_slow_names_the_step_and_every_later_one(capfd):
    with Progress("thinking", delay=0.01) as progress:
        wait_for(lambda: progress._shown)
        progress.update("writing")
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("s  ")[1] for line in lines] == ["thinking …", "writing …"]


def test_a_step_that_goes_on_says_so_again(capfd):
    with Progress("thinking", delay=0.01, repeat=0.01) as progress:
        wait_for(lambda: progress._shown)
        time.sleep(0.2)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) > 2 and {line.split("s  ")[1] for line in lines} == {"thinking …"}


def test_a_terminal_sees_one_line_with_the_seconds(capfd, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress("thinking", delay=0.01) as progress:
        wait_for(lambda: progress._shown)
        progress.update("writing")
        assert str(progress._status.status) == "writing, 0 s"


def test_nothing_is_printed_after_the_end(capfd):
    with Progress("thinking", delay=0.5):
        pass
    time.sleep(0.6)
    assert capfd.readouterr().err == ""
