"""benchmarks/host/gpu_host.py: its tables without a GPU, and all of it on one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.runtime.launch.devices import why_no_gpu

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "host" / "gpu_host.py"


@pytest.fixture
def script(monkeypatch):
    """The script, imported as when it is run."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import gpu_host

    yield gpu_host
    sys.modules.pop("gpu_host", None)


@pytest.mark.parametrize(("module", "way"), [(object(), "C"), (None, "Python")])
def test_both_tables_are_printed(script, monkeypatch, module, way):
    monkeypatch.setattr(script, "extension", lambda: module)
    monkeypatch.setattr(script, "machine", lambda: {"gpu": "NVIDIA H200"})
    first = {"compiled": {"import": 0.8, "first call": 0.5, "second call": 6e-5}}
    calls = {"`matmul`": {"tilewright": 9.04, "torch": 11.4}, "`matmul`, `out=`": {"tilewright": 7}}
    python = {"`matmul`": {"tilewright": 12, "torch": 10}} if module else {}
    heads = "| tilewright | torch | part of torch's |"
    rows = ["| 9.0 | 11.4 | 0.79 |", "| 7.0 |  |  |"]
    if module:
        heads += " launches by Python | torch beside it | part |"
        rows = [f"{rows[0]} 12.0 | 10.0 | 1.20 |", f"{rows[1]}  |  |  |"]
    assert script.as_text(512, first, calls, python).splitlines() == [
        f"gpu NVIDIA H200, launches by {way}",
        "",
        "| 512³, bf16 | import s | first call s | second call µs |",
        "|---|---|---|---|",
        "| compiled | 0.80 | 0.50 | 60 |",
        "",
        f"| host, µs a call {heads}",
        "|---" * (heads.count("|")) + "|",
        f"| `matmul` {rows[0]}",
        f"| `matmul`, `out=` {rows[1]}",
    ]


def run(*words):
    return subprocess.run(
        [sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False
    )


def test_a_machine_without_a_gpu_is_told_in_one_line(script, monkeypatch, capsys):
    if why_no_gpu() is None:
        pytest.skip("a GPU is here")
    monkeypatch.setattr(sys, "argv", ["gpu_host.py"])
    with pytest.raises(SystemExit) as ended:  # which prints its text on stderr and gives status 1
        script.main()
    assert str(ended.value) == f"error: {why_no_gpu()}"
    assert capsys.readouterr().out == ""


def test_every_way_is_measured_on_a_gpu(gpu, tmp_path):
    done = run("--size", "128", "--json", tmp_path / "host.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "host.json").read_text())
    assert all(0 < us < 1000 for way in found["host_us"].values() for us in way.values())
    assert set(found["host_us_python"]) < set(found["host_us"])
    assert found["first_calls_s"]["from disk"]["first call"] > 0
