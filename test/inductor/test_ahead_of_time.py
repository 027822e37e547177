"""AOTInductor compiles programs that have operators of ours; another process must know these."""

import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn

import tilewright

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="AOTInductor needs g++")
QUICK = {
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "aot_inductor.precompile_headers": False,
    "cpp_cache_precompile_headers": False,
}
LOADED = """
import pathlib, sys, torch, tilewright
folder = pathlib.Path(sys.argv[1])
load = torch._inductor.aoti_load_package
try:
    load(str(folder / "model.pt2"))(torch.load(folder / "x"))
except RuntimeError as error:
    print(error)
tilewright.torch.register_operators()
kept = tilewright.torch.load(folder / "program")
print("has the kernels", file=sys.stderr, flush=True)
torch.save(load(str(folder / "model.pt2"))(torch.load(folder / "x")), folder / "made")
"""


class Both(nn.Module):
    """Kernels of a program that was loaded, and a product of ours behind them."""

    def __init__(self, program):
        super().__init__()
        self.program = program
        self.w = nn.Parameter(torch.randn(24, 16).bfloat16())

    def forward(self, x):
        return tilewright.matmul(self.program(x), self.w)


@pytest.mark.slow
def test_another_process_runs_what_aotinductor_compiled(tmp_path):
    torch.manual_seed(7)
    x = torch.randn(8, 32).bfloat16()
    first = nn.Sequential(nn.Linear(32, 16), nn.ReLU()).bfloat16()
    tilewright.torch.export(first, (x,), tmp_path / "program")
    model = Both(tilewright.torch.load(tmp_path / "program")).requires_grad_(False)
    with torch.no_grad():
        program = torch.export.export(model, (x,))
        path = tmp_path / "model.pt2"
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(path), inductor_configs=QUICK
        )
    torch.save(x, tmp_path / "x")
    command = [sys.executable, "-X", "faulthandler", "-P", "-c", LOADED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Could not find schema for tilewright::" in done.stdout, "before they are registered"
    assert torch.load(tmp_path / "made").equal(model(x))
