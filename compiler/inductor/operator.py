"""`tilewright::region`: the one operator by which a graph calls the kernels of its regions.

    tilewright::region(inputs, key, recipe) → outputs

The key is the kernel's name in the cache on disk. A graph that torch has cached calls it in another
process, in which nothing was found or compiled, and the kernel is read from there. Where it is gone
it is compiled anew by its recipe (`recipe.py`). Rows of the report that came with the graph are
entered at the first call.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import library

from ...dialects.errors import CompileError
from ...dialects.tables import when_changed
from ...runtime.bundles.bundle import Bundle
from ...runtime.bundles.manifest import BundleError, offsets_of, second_b
from ...runtime.element_types import torch_dtype
from ...runtime.errors import DeviceError
from ...runtime.launch.kernel import Kernel
from ...runtime.launch.loading import open_kernel
from ...runtime.private_folders import UnsafePlace, check_private_file
from ..bundle_writer import read_entry
from ..calls.kernels.kernel_cache import cache_folder
from ..calls.operators.direct_calls import direct_call, is_there, register
from ..calls.operators.flops import count_flops
from .kept_rows import enter_kept

LIBRARY = library.Library("tilewright", "FRAGMENT")
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
# Not by `custom_op`, whose checks take the host 26 us more at each call.
library.define(
    "tilewright::region",
    "(Tensor[] inputs, str key, str recipe) -> Tensor[]",
    lib=LIBRARY,
    tags=TAGS,
)
region_operator: Any = torch.ops.tilewright.region.default

_loaded: dict[str | tuple[str, str], Kernel] = {}  # by key, and by key and recipe where called
when_changed(_loaded.clear)


def enter(key: str, bundle: Bundle) -> None:
    """Let graphs call the kernel of this key."""
    if key not in _loaded:
        _loaded[key] = open_kernel(bundle, copies=True)


def kernel_of(key: str, recipe: str = "") -> Kernel:
    """The kernel of a key: of this process, from disk, or compiled anew by its recipe; DeviceError
    where none is there."""
    if key not in _loaded:
        enter(key, _from_disk(key) or _anew(key, recipe))
    return _loaded[key]


def called(key: str, recipe: str) -> Kernel:
    """The same for the first call from a graph, whose rows of the report are entered."""
    found = _loaded[key, recipe] = kernel_of(key, recipe)
    try:
        enter_kept(recipe)
    except CompileError as error:  # the kernel is there, and the model runs
        warnings.warn(f"tilewright: a graph is missing in the report: {error}", stacklevel=3)
    return found


def _from_disk(key: str) -> Bundle | None:
    path = cache_folder() / f"{key}.zip"
    try:
        check_private_file(path)
        return read_entry(path)
    except (OSError, UnsafePlace, BundleError):
        return None


def _anew(key: str, recipe: str) -> Bundle:
    from .recipe import remade  # here: it brings the compiler, which few processes need

    try:
        return remade(key, recipe)
    except CompileError as error:
        path = cache_folder() / f"{key}.zip"
        rule = f"its kernel must be {path}, got none, and compiling it anew: {error.message}"
        cure = "trace the model anew with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1"
        raise DeviceError(f"region {key[:12]}: {rule}; {cure}") from error


def region(inputs: Sequence[torch.Tensor], key: str, recipe: str) -> list[torch.Tensor]:
    """What `tilewright::region` returns."""
    kernel = _loaded.get((key, recipe)) or called(key, recipe)
    result = kernel(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


library.impl("tilewright::region", "CompositeExplicitAutograd", region, lib=LIBRARY)
DIRECT = "torch.ops.tilewright.region.direct"
torch.ops.tilewright.region.direct = region
"""The same for the code that Inductor writes: torch's dispatcher would take 10 us more a call."""


def region_into(*inputs: Any, out: torch.Tensor) -> None:
    """What `tilewright::region` returns of a kernel with one output, in `out`; key and recipe come
    last."""
    *tensors, key, recipe = inputs
    kernel = _loaded.get((key, recipe)) or called(key, recipe)
    kernel(*tensors, out=out)


@functools.cache
def _tell_inductor() -> None:
    """Let Inductor call kernels directly."""

    def lower(node: torch.fx.Node, inputs: Sequence[Any], key: str, recipe: str) -> Any:
        values = node.meta.get("val")
        if not isinstance(values, list | tuple) or len(values) != 1:
            return None
        return [direct_call(region_into, values[0], inputs, key, recipe)]

    register(region_operator, lower, DIRECT)


@library.register_fake("tilewright::region", lib=LIBRARY)
def _(inputs: Sequence[torch.Tensor], key: str, recipe: str) -> list[torch.Tensor]:
    if is_there():
        _tell_inductor()
    return [
        torch.empty_strided(
            each["shape"],
            each["strides"],
            dtype=torch_dtype(each["dtype"]),
            device=inputs[0].device,
        )
        for each in kernel_of(key, recipe).declared_outputs(inputs)
    ]


def _flops(
    inputs: Sequence[Any], key: str, recipe: str, *, out_val: Sequence[Any], **_others: Any
) -> Any:
    """The operations of all products of a region, which share A and their size. Groups of K share
    K."""
    a, c = inputs[0], out_val[0]
    manifest = kernel_of(key, recipe).manifest
    if offsets_of(manifest) is not None and c.dim() == 3:
        return 2 * c[0].numel() * (a.numel() // c.shape[-2])
    one_for_all = a.dim() < c.dim()
    rows = c.shape[-2] if one_for_all else c.numel() // c.shape[-1]
    products = 1 if second_b(manifest) is None else 2
    return 2 * products * c.numel() * (a.numel() // rows)


count_flops(region_operator, _flops)
