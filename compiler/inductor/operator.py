"""`tilewright::region`: the one operator by which a graph calls the kernels of its regions.

    tilewright::region(inputs, key) → outputs

The key is the kernel's name in the cache on disk. A graph that torch has cached calls it in another
process, in which nothing was found or compiled, and the kernel is read from there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import library

from ...runtime.bundles.bundle import Bundle, read_bundle
from ...runtime.bundles.manifest import second_b
from ...runtime.element_types import torch_dtype
from ...runtime.errors import DeviceError
from ...runtime.launch.kernel import Kernel
from ...runtime.launch.loading import open_kernel
from ...runtime.private_folders import UnsafePlace, check_private_file
from ..calls.direct_calls import direct_call, is_there, register
from ..calls.flops import count_flops
from ..calls.kernel_cache import cache_folder

LIBRARY = library.Library("tilewright", "FRAGMENT")
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
# Not by `custom_op`, whose checks take the host 26 us more at each call.
library.define(
    "tilewright::region", "(Tensor[] inputs, str key) -> Tensor[]", lib=LIBRARY, tags=TAGS
)
region_operator: Any = torch.ops.tilewright.region.default

_loaded: dict[str, Kernel] = {}


def enter(key: str, bundle: Bundle) -> None:
    """Let graphs call the kernel of this key."""
    if key not in _loaded:
        _loaded[key] = open_kernel(bundle, copies=True)


def kernel_of(key: str) -> Kernel:
    """The kernel of a key: of this process, or from disk; DeviceError where it is in neither."""
    if key not in _loaded:
        path = cache_folder() / f"{key}.zip"
        try:
            check_private_file(path)
            enter(key, read_bundle(path))
        except (OSError, UnsafePlace) as error:
            reason = getattr(error, "strerror", None) or error
            cure = "compile anew with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1"
            raise DeviceError(
                f"region {key[:12]}: its kernel must be {path}, got {reason}; {cure}"
            ) from error
    return _loaded[key]


@library.impl("tilewright::region", "CompositeExplicitAutograd", lib=LIBRARY)
def _(inputs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    kernel = _loaded.get(key) or kernel_of(key)
    result = kernel(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def region_into(*inputs: Any, out: torch.Tensor) -> None:
    """What `tilewright::region` returns of a kernel with one output, in `out`; the key is last."""
    *tensors, key = inputs
    kernel = _loaded.get(key) or kernel_of(key)
    kernel(*tensors, out=out)


@functools.cache
def _tell_inductor() -> None:
    """Let Inductor call kernels of one output directly."""

    def lower(node: torch.fx.Node, inputs: Sequence[Any], key: str) -> Any:
        values = node.meta.get("val")
        if not isinstance(values, list | tuple) or len(values) != 1:
            return None
        return [direct_call(region_into, values[0], inputs, key)]

    register(region_operator, lower)


@library.register_fake("tilewright::region", lib=LIBRARY)
def _(inputs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    if is_there():
        _tell_inductor()
    return [
        torch.empty_strided(
            each["shape"],
            each["strides"],
            dtype=torch_dtype(each["dtype"]),
            device=inputs[0].device,
        )
        for each in kernel_of(key).declared_outputs(inputs)
    ]


def _flops(inputs: Sequence[Any], key: str, *, out_val: Sequence[Any], **_others: Any) -> Any:
    """Of all products of a region: they have one A and one size."""
    a, c = inputs[0], out_val[0]
    one_for_all = a.dim() < c.dim()
    rows = c.shape[-2] if one_for_all else c.numel() // c.shape[-1]
    products = 1 if second_b(kernel_of(key).manifest) is None else 2
    return 2 * products * c.numel() * (a.numel() // rows)


count_flops(region_operator, _flops)
