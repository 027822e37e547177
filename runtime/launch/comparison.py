"""Compares the times of bundles for one problem on a GPU."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..element_types import torch_dtype
from ..errors import DeviceError
from ..gpu.graphs import APART, measure_in_graphs
from ..gpu.timing import Launch
from .devices import open_device
from .loading import load

if TYPE_CHECKING:
    import torch

L2_MULTIPLE = 3
SETS = (2, 64)
CHECKED_ROWS = 256
ERROR_MAX = 1e-2
"""‖out − exact‖ / ‖exact‖ for 16-bit results, whose rounding alone gives 2e-3."""
POISON = -(2**31)
BYTE_DEVIATION = 30


def count_sets(tensors: Sequence[dict[str, Any]]) -> int:
    """Input sets that together exceed L2 several times."""
    import torch

    one = sum(math.prod(each["shape"]) * torch_dtype(each["dtype"]).itemsize for each in tensors)
    wanted = L2_MULTIPLE * torch.cuda.get_device_properties(0).L2_cache_size / one
    return min(max(math.ceil(wanted), SETS[0]), SETS[1])


def make_set(tensors: Sequence[dict[str, Any]], seed: int) -> list[torch.Tensor]:
    """Inputs that are normally distributed, bytes with a deviation of 30, and a poisoned output."""
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    made = [
        torch.empty_strided(
            each["shape"], each["strides"], dtype=torch_dtype(each["dtype"]), device="cuda"
        )
        for each in tensors
    ]
    for operand in made[:2]:
        normals = torch.empty(operand.shape, device="cuda").normal_(generator=generator)
        operand.copy_(normals if operand.is_floating_point() else normals * BYTE_DEVIATION)
    poison(made[2])
    return made


def poison(output: torch.Tensor) -> None:
    """Fill with NaN, integers with a number that no sum of few products is."""
    output.fill_(math.nan if output.is_floating_point() else POISON)


def is_poisoned(output: torch.Tensor) -> bool:
    """Whether some element was never written."""
    return bool((output.isnan() if output.is_floating_point() else output == POISON).any())


def check(name: str, launch: Launch, tensors: list[torch.Tensor], index: int) -> None:
    """Compare with float64 on some rows of each matrix, and find what was never written."""
    import torch

    a, b, c = tensors
    poison(c)
    launch(index)
    count = min(CHECKED_ROWS, a.shape[-2])
    rows = torch.linspace(0, a.shape[-2] - 1, count, device="cuda").long()
    exact = a[..., rows, :].double() @ b.double().mT
    error = ((c[..., rows, :].double() - exact).norm() / exact.norm()).item()
    if not error < ERROR_MAX or is_poisoned(c):
        raise DeviceError(f"{name}: relative error must be below {ERROR_MAX}, got {error:.3g}")


def measure_together(paths: Sequence[Path], rounds: int, rest: float = 0) -> list[float]:
    """Median microseconds of bundles for the same matmul, taken in turns on the same inputs.

    The clock is `apart` of runtime/gpu/graphs.py: a CUDA graph with a small kernel between
    launches. Each is checked against float64 first; `DeviceError` names one that is wrong.
    rest: how long the GPU idles after each batch, in times of the batch.
    """
    kernels = [load(path) for path in paths]
    tensors = kernels[0].manifest["tensors"]
    sets = [make_set(tensors, seed) for seed in range(count_sets(tensors))]
    launches = {
        str(path): _launch(kernel, sets) for path, kernel in zip(paths, kernels, strict=True)
    }
    for name, launch in launches.items():
        check(name, launch, sets[-1], len(sets) - 1)
    times = measure_in_graphs(launches, len(sets), rounds, (APART,), rest)[APART]
    return [times[str(path)] for path in paths]


def _launch(kernel: Any, sets: list[list[torch.Tensor]]) -> Launch:
    def launch(i: int) -> None:
        a, b, c = sets[i]
        kernel(a, b, out=c)

    return launch


def machine() -> dict[str, str]:
    """What is measured on, and when."""
    import torch

    device: Any = open_device("cuda")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "gpu": device.gpu(0).name,
        "driver_cuda": device.gpu(0).driver_version,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
