"""`tilewright run --device cuda` and `tilewright tune` in a process with compiler and GPU."""

import pytest

from tilewright.compiler.schedule.tuned_schedules import read_table
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.main import main

pytestmark = pytest.mark.usefixtures("gpu")
SIZES = ("--m", "300", "--n", "520", "--k", "264")


@pytest.fixture
def tilewright(capsys):
    """tilewright(*words) gives exit status, stdout and stderr."""

    def call(*words):
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--a-major", "m", "--b-major", "n", "--c-dtype", "f32"),
        ("--a-dtype", "f16", "--b-dtype", "f16", "--seed", "4"),
        ("--identity", "b"),
        ("--stop-after", "tiling"),
    ],
)
def test_run_compiles_for_the_gpu_and_compares(tilewright, options):
    status, out, _ = tilewright("run", *SIZES, "--device", "cuda", *options)
    assert status == 0, out
    assert "device     cuda" in out


def test_a_bundle_of_one_command_runs_in_the_next(tilewright, tmp_path):
    path, target = tmp_path / "kernel.zip", open_device("cuda").target
    assert tilewright("compile", *SIZES, "--target", target, "--emit", "bundle", "-o", path)[0] == 0
    assert tilewright("run", path, "--device", "cuda:0")[0] == 0
    assert tilewright("run", path, "--device", "emulator")[0] == 0


def test_a_bundle_for_another_chip_names_both(tilewright, tmp_path):
    path, own = tmp_path / "kernel.zip", open_device("cuda").target
    other = {"sm_90a": "sm_100a"}.get(own, "sm_90a")
    assert tilewright("compile", *SIZES, "--target", other, "--emit", "bundle", "-o", path)[0] == 0
    status, out, err = tilewright("run", path, "--device", "cuda")
    assert (status, out) == (1, "")
    assert f"for a bundle of {other}, got " in err
    assert err.endswith(f"; compile it for {own}\n")


def test_a_gpu_that_is_not_there_is_told(tilewright):
    status, _, err = tilewright("run", *SIZES, "--device", "cuda:99")
    assert status == 1
    assert err.endswith("got 99\n")


def test_tune_measures_candidates_here_and_writes_their_table(tilewright, tmp_path):
    table, target = tmp_path / "table.json", open_device("cuda").target
    words = ("--shapes", "512x512x512", "--target", target, "--count", "3", "--rounds", "3")
    assert tilewright("tune", "all", *words, "-o", table)[0] == 0
    (entry,) = read_table(table)
    assert 1 < entry.us < 1000
