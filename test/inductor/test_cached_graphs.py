"""Graphs that torch has cached: the next process finds, measures and compiles nothing."""

import json
import os
import subprocess
import sys

import pytest

MODEL = """
import json, sys, torch, tilewright
from torch._dynamo.utils import counters

def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0])).bfloat16()

x, w = draw(16, 32), draw(48, 32)
for chip in sys.argv[1:]:
    torch.compiler.reset()
    counters.clear()
    seen = len(tilewright.torch.report().rows)
    options = {"device": "emulator", "target": chip}
    compiled = torch.compile(torch.nn.functional.linear, backend="tilewright", options=options)
    with torch.no_grad():
        made = compiled(x, w)
    torch.testing.assert_close(made, x @ w.T)
    rows = len(tilewright.torch.report().rows) - seen
    print(json.dumps({"hits": counters["inductor"]["fxgraph_cache_hit"], "rows": rows}))
"""


@pytest.mark.slow
def test_a_second_process_takes_the_graph_and_the_kernel_as_they_are(tmp_path):
    folders = {
        "TILEWRIGHT_CACHE": tmp_path / "ours",
        "TORCHINDUCTOR_CACHE_DIR": tmp_path / "torchs",
    }
    found, kernels = [], []
    for chips in (["sm_90a"], ["sm_90a"], ["sm_90a", "sm_100a"]):
        for kernel in (tmp_path / "ours").glob("*.zip") if len(chips) > 1 else ():
            kernel.unlink()
        given = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
        del given["TORCHINDUCTOR_FORCE_DISABLE_CACHES"]
        command = [sys.executable, "-P", "-W", "ignore", "-c", MODEL, *chips]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=given)
        assert done.returncode == 0, done.stderr
        found += map(json.loads, done.stdout.splitlines())
        kernels.append(len(list((tmp_path / "ours").glob("*.zip"))))
    made, taken = {"hits": 0, "rows": 1}, {"hits": 1, "rows": 0}
    assert found == [made, taken, taken, made]
    assert kernels == [1, 1, 2]
