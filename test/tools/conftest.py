"""Running the command line in this process."""

import functools
import json
import re
from contextlib import nullcontext
from dataclasses import dataclass

import pytest

from tilewright.compiler import backend, driver
from tilewright.runtime import read_bundle
from tilewright.tools.main import main

PROGRESS = re.compile(r"^ *\d+\.\d s  .* …\n", re.M)


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


run_ptxas_once = functools.cache(backend._run_ptxas)


@pytest.fixture(autouse=True, scope="module")
def the_same_ptx_is_assembled_once():
    """Many commands compile the same small kernel, and ptxas takes half of the time of that.

    Not of scope "package": this folder is none for pytest, so that would last for the session.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "_run_ptxas", lambda *words: run_ptxas_once(*words[:4]))
        patch.setattr(driver, "assembler_ahead", lambda **_: nullcontext())
        yield


@pytest.fixture
def tilewright(capsys):
    """tilewright("run", "--m", "4", …) gives the exit status, stdout and stderr.

    Lines of progress, which a slow machine adds, are left out.
    """

    def call(*words) -> Ran:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(status, captured.out, PROGRESS.sub("", captured.err))

    return call


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that takes 30 us for the first bundle of each shape, 20 for the next, then 25."""
    from tilewright.runtime.launch import comparison

    def measured(paths, rounds, rest):
        assert all(read_bundle(path) for path in paths)
        return [30.0, 20.0, 25.0][: len(paths)]

    monkeypatch.setattr(comparison, "measure_together", measured)
    monkeypatch.setattr(comparison, "machine", lambda: {"gpu": "NVIDIA H200", "date": "2026-11-20"})
