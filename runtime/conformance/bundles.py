"""A bundle as a subject: one size, or any number of rows of one, and one layout, with its own
epilogue, on the emulator or a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..bundles.manifest import offsets_of, operands, output, outputs, scales, second_b
from ..bundles.sizes import DEPTH, SIZE, size_names
from ..element_types import torch_dtype
from ..errors import LaunchError
from ..judge.epilogue import evaluate
from ..judge.intervals import Interval
from ..judge.reference import half_ulp
from ..judge.relaxed import is_relaxed, relaxed
from ..launch.loading import load
from .cases import Layout, Size
from .operands import Placed, place
from .subjects import Product, values_of
from .verdicts import rounded

USUAL_ROWS = 72  # of a kernel for any M, and elements along K of one for any K


class BundleSubject:
    """The kernel of a bundle. Its further inputs, as a bias, get normal values."""

    any_size, layouts, calls, takes_out = False, True, True, True
    b_shape = "nk"

    def __init__(self, path: Path, device: str):
        self.name, self.device = path.name, device
        self._kernel = load(path, device)
        self.any_rows = SIZE in size_names(self._kernel.manifest)
        if scales(self._kernel.manifest) or "blockwise" in self._kernel.manifest:
            rule = "must have operands without block scales, got scales"
            raise LaunchError(f"{path}: {rule}; `tilewright run` tries it")
        if "weights" in self._kernel.manifest:
            rule = "must have operands of one type, got narrow weights"
            raise LaunchError(f"{path}: {rule}; `tilewright run` tries it")
        if len(outputs(self._kernel.manifest)) > 1:
            rule = "must have one output, got several"
            raise LaunchError(f"{path}: {rule}; `tilewright run` tries it")
        if second_b(self._kernel.manifest):
            rule = "must have one product, got two"
            raise LaunchError(f"{path}: {rule}; `tilewright run` tries it")
        tensors = *operands(self._kernel.manifest), output(self._kernel.manifest)
        if any(len(each["shape"]) > 2 for each in tensors):
            got = "groups" if offsets_of(self._kernel.manifest) else "stacks"
            raise LaunchError(
                f"{path}: must be of one matrix, got {got}; `tilewright run` tries it"
            )
        self._tensors = {each["name"]: each for each in self._kernel.manifest["tensors"]}
        a, b = operands(self._kernel.manifest)
        self._c = output(self._kernel.manifest)
        self._operands = a["name"], b["name"]
        self.dtypes = _dtypes(a, b)
        self.a_layout, self.b_layout = _layout(a), _layout(b)
        m, n = self._c["shape"]
        k = USUAL_ROWS if a["shape"][1] == DEPTH else a["shape"][1]
        self.size: Size = (USUAL_ROWS if self.any_rows else m, n, k)
        self._further: dict[int, dict[str, Any]] = {}

    @property
    def memory(self) -> str:
        return "cpu" if self.device == "emulator" else self.device

    def product(self, a: Placed, b: Placed, out: Placed | None = None, seed: int = 0) -> Product:
        c, dtype = self._c["name"], self._c["dtype"]
        m = a.view.shape[0] if self.any_rows else self.size[0]
        result = (out or place((m, self.size[1]), dtype, _layout(self._c), self.memory)).view
        values = dict(zip(self._operands, (a.view, b.view), strict=True)) | self._beside(m)
        if self.device == "emulator" and m:
            report = self._kernel.run({**values, c: result}, seed)
            return Product(result, dtype, [each.category for each in report.warnings])
        inputs = [values[name] for name in self._tensors if name != c]
        return Product(self._kernel(*inputs, out=result), dtype)

    def expected(self, sums: Interval, c_dtype: str) -> Interval:
        """Through the manifest's epilogue, with the values of the further inputs."""
        values = {
            name: values_of(tensor, self._tensors[name]["dtype"])
            for name, tensor in self._beside(np.shape(sums.middle)[0]).items()
        }
        found = evaluate(self._kernel.manifest["epilogue"], [sums], values)
        limits = rounded(found, c_dtype)
        if is_relaxed(self._kernel.manifest, self._kernel.manifest["epilogue"], c_dtype):
            limits = relaxed(limits, lambda part: half_ulp(part, c_dtype))
        low, middle, high = limits.parts()
        shape = np.shape(sums.middle)
        return Interval(*(np.broadcast_to(part, shape) for part in (low, middle, high)))

    def _beside(self, m: int) -> dict[str, Any]:
        """The further inputs of so many rows, the same each time."""
        if m not in self._further:
            self._further[m] = self._make_further(m)
        return self._further[m]

    def _make_further(self, m: int) -> dict[str, Any]:
        import torch

        draw = torch.Generator().manual_seed(9)
        made = {}
        for name, each in self._tensors.items():
            if name not in (*self._operands, self._c["name"]):
                dtype = torch_dtype(each["dtype"])
                shape = [m if size == SIZE else size for size in each["shape"]]
                tensor = torch.empty_strided(shape, each["strides"], dtype=dtype)
                made[name] = tensor.copy_(torch.randn(shape, generator=draw))
        return {name: tensor.to(self.memory) for name, tensor in made.items()}


def _dtypes(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, str]:
    found = a["dtype"], b["dtype"]
    if "tf32" in found:
        raise LaunchError("conform: a bundle must not multiply tf32, got one that does")
    return found


def _layout(declared: Mapping[str, Any]) -> Layout:
    """The order and gaps of a manifest's matrix."""
    (rows, columns), (down, across) = declared["shape"], declared["strides"]
    if across == 1 or columns == 1:
        return Layout(padding=down - columns if rows != 1 else 0)
    return Layout("column", padding=across - rows)
