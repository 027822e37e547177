"""overlap.py: how it counts hidden time, and one tiny run of two processes by gloo."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "parallel"


@pytest.fixture
def overlap(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import overlap

    return overlap


def test_time_is_hidden_once_however_many_kernels_run_meanwhile(overlap):
    computed = [(0, 4), (3, 6), (10, 12), (11, 11.5), (20, 21)]
    assert overlap.covered([(2, 11)], computed) == 4 + 1
    assert overlap.covered([(2, 11), (11, 30)], computed) == 4 + 1 + 1 + 1
    assert overlap.covered([(6, 10)], computed) == 0
    assert overlap.covered([], computed) == 0


def test_a_result_that_is_further_off_is_refused(overlap):
    near, far = ({"distances": {"output": each}} for each in (1e-3, 1.2e-3))
    overlap._check({"inductor": near, "tilewright": near})
    with pytest.raises(SystemExit, match=r"output: 1.20e-03 off, others 1.00e-03"):
        overlap._check({"inductor": near, "tilewright": far})


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.usefixtures("fresh_cache")
@pytest.mark.parametrize("cut", ["tensor", "fsdp"])
def test_two_processes_agree_with_one(monkeypatch, cut):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    sizes = ["--rows", "32", "--hidden", "32", "--inner", "64", "--layers", "1", "--cuts", cut]
    words = ["--device", "cpu", "--contenders", "eager,tilewright", "--report", *sizes]
    command = [sys.executable, str(FOLDER / "overlap.py"), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("| tilewright |") == 1
    assert re.search(r"x taken 2 mm 16x\d+x32 bfloat16 \+ neg, exp, add, div, mul", ran.stdout)
