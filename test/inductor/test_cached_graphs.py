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
options = {"device": "emulator", "target": sys.argv[1]}
compiled = torch.compile(torch.nn.functional.linear, backend="tilewright", options=options)
with torch.no_grad():
    made = compiled(x, w)
torch.testing.assert_close(made, x @ w.T)
rows = tilewright.torch.report().rows
found = {"hits": counters["inductor"]["fxgraph_cache_hit"], "rows": len(rows)}
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_second_process_takes_the_graph_and_the_kernel_as_they_are(tmp_path):
    folders = {
        "TILEWRIGHT_CACHE": tmp_path / "ours",
        "TORCHINDUCTOR_CACHE_DIR": tmp_path / "torchs",
    }
    found, kernels = [], []
    for chip in ("sm_90a", "sm_90a", "sm_90a, emptied", "sm_100a"):
        chip, _, emptied = chip.partition(", ")
        for kernel in (tmp_path / "ours").glob("*.zip") if emptied else ():
            kernel.unlink()
        given = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
        command = [sys.executable, "-P", "-W", "ignore", "-c", MODEL, chip]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=given)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
        kernels.append(len(list((tmp_path / "ours").glob("*.zip"))))
    made, taken = {"hits": 0, "rows": 1}, {"hits": 1, "rows": 0}
    assert found == [made, taken, taken, made]
    assert kernels == [1, 1, 1, 2]
