"""Graphs that torch has cached: the next process finds, measures and compiles nothing, and its
report has the rows that came with the graph."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import json, sys, torch, tilewright
from torch._dynamo.utils import counters

def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0])).bfloat16()

x, w, v = draw(16, 32), draw(48, 32), draw(40, 32).float()

def model(x):
    return torch.relu(x @ w.T), x @ w.T, x.float() @ v.T

for chip in sys.argv[1:]:
    torch.compiler.reset()
    counters.clear()
    report = tilewright.torch.report()
    seen = len(report.rows)
    options = {"device": "emulator", "target": chip}
    compiled = torch.compile(model, backend="tilewright", options=options)
    with torch.no_grad():
        made = compiled(x)
    torch.testing.assert_close(made[1], x @ w.T)
    rows = report.rows[seen:]
    print(json.dumps({
        "hits": counters["inductor"]["fxgraph_cache_hit"],
        "cached": [row.cached for row in rows],
        "rows": sorted([row.text().split("; of a graph")[0], row.count] for row in rows),
        "estimates": sorted(row.estimate_us or 0 for row in rows),
        "text": str(report),
    }))
"""


def run(folder, *chips):
    """What a process says of each chip, with a cache of graphs, which no other test has."""
    graphs = dict.fromkeys(("TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE"), "1")
    given = {**os.environ, **graphs, "TILEWRIGHT_CACHE": str(folder / "ours")}
    command = [sys.executable, "-P", "-W", "ignore", "-c", MODEL, *chips]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def forget_graphs():
    """Of an earlier run of the same test: what is compiled from C++ stays."""
    for graphs in ("fxgraph", "aotautograd"):
        shutil.rmtree(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / graphs, ignore_errors=True)


@pytest.mark.slow
def test_a_second_process_takes_the_graph_and_the_kernel_as_they_are(tmp_path):
    forget_graphs()
    found = run(tmp_path, "sm_90a")
    kept, gone = (tmp_path / "ours").glob("*.zip")
    written = kept.stat().st_mtime_ns
    gone.unlink()
    found += run(tmp_path, "sm_90a", "sm_100a")
    assert kept.stat().st_mtime_ns == written and gone.exists()
    assert len(list((tmp_path / "ours").glob("*.zip"))) == 4
    first, again, other = found
    assert [each["hits"] for each in found] == [0, 1, 0]
    for each in first, other:
        assert not any(each["cached"]) and "from its cache" not in each["text"].splitlines()[-1]
    assert all(again["cached"]) and again["rows"] == first["rows"]
    assert again["estimates"] == first["estimates"]
    assert "torch took 1 graph from its cache" in again["text"].splitlines()[-1]
