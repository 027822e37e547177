"""The device that runs a bundle's PTX on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import emulator
from .bundle import Bundle
from .tensors import BoundTensor, bind_all

TENSOR_MAP_FIELDS = (
    "dtype",
    "dims",
    "box",
    "element_strides",
    "interleave",
    "swizzle",
    "l2_promotion",
    "oob_fill",
)


class EmulatorDevice:
    """Runs `kernel.ptx` on the functional emulator; `seed` picks one legal order of events."""

    name = "emulator"

    def launch(self, bundle: Bundle, tensors: Mapping[str, Any], seed: int = 0) -> Any:
        """Run the kernel on numpy arrays or CPU torch tensors; returns the emulator's report."""
        manifest = bundle.manifest
        bound = bind_all(manifest, tensors)
        return emulator.launch(
            bundle.ptx,
            manifest["entry"],
            grid=tuple(manifest["grid"]),
            block=tuple(manifest["block"]),
            cluster=tuple(manifest["cluster"]),
            shared_bytes=manifest["dynamic_shared_bytes"],
            params=[_parameter(declared, bound) for declared in manifest["parameters"]],
            seed=seed,
            names=manifest.get("names"),
        )


def _parameter(
    declared: Mapping[str, Any], bound: Mapping[str, BoundTensor]
) -> np.ndarray | emulator.TensorMap:
    memory = bound[declared["tensor"]].memory
    if declared["kind"] == "pointer":
        return memory
    fields = {name: declared[name] for name in TENSOR_MAP_FIELDS}
    return emulator.TensorMap(memory, strides=declared["strides_bytes"], **fields)
