"""What benchmarks/gpu_counters.py runs under ncu: each bundle of a folder once, then cuBLAS's turn.

    python benchmarks/gpu_profiled.py FOLDER CLOCKS

Both have run before, for a third of a second, in which the clocks are read; they are written to
CLOCKS as JSON, by bundle: its kernel's name and passes, the clocks under ours and under cuBLAS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tilewright.runtime import load
from tilewright.runtime.gpu.timing import batch_us, clocks_under
from tilewright.runtime.launch.comparison import make_set

LOAD_US = 3e5


def main() -> None:
    folder, clocks = map(Path, sys.argv[1:])
    found = {path.stem: profile(path) for path in sorted(folder.glob("*.zip"))}
    clocks.write_text(json.dumps(found))


def profile(path: Path) -> dict[str, Any]:
    """Warm both up, then run each once where ncu looks."""
    kernel = load(path)
    a, b, c = make_set(kernel.manifest["tensors"], 0)
    ours, cublas = lambda _: kernel(a, b, out=c), lambda _: torch.mm(a, b.T, out=c)
    found = {name: kernel.manifest[name] for name in ("entry", "pipeline")}
    found |= {"ours": under(ours), "cublas": under(cublas)}
    torch.cuda.cudart().cudaProfilerStart()
    ours(0)
    cublas(0)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
    return found


def under(launch: Callable[[int], Any]) -> dict[str, float]:
    """Clocks and power while a kernel runs over and over."""
    batch_us(launch, 3, 1)
    return clocks_under(launch, int(LOAD_US / batch_us(launch, 3, 1)) + 1, 1)


if __name__ == "__main__":
    main()
