"""The device that runs a bundle's PTX on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import emulator
from ..bundles.bundle import Bundle
from ..bundles.manifest import in_order, workspaces
from ..errors import DeviceError
from ..locks import shared_lock
from ..operands.tensors import BoundTensor, bind_all
from ..relaunch import NOTHING
from .whole_arrays import read_whole, written_whole

NAN_WORD = 0x7FC00001
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


class EmulatorProgram:
    """A bundle's PTX with the launch of its manifest.

    Its workspaces are kept from one run to the next, as on a GPU. The kernel must leave zeros
    after where it needs them. Runs of a kernel that has some follow each other, as in a stream.
    """

    relauncher = NOTHING

    def __init__(self, bundle: Bundle):
        self.bundle = bundle
        found = workspaces(bundle.manifest)
        self.workspaces = [Workspace.of(size, is_zero) for size, is_zero in found]
        self._stream = shared_lock() if found else nullcontext()
        self._is_midway = False

    def takes(self, inputs: Sequence[Any]) -> bool:
        """False: every call looks at its tensors."""
        del inputs
        return False

    def enqueue(self, values: Sequence[Any], stream: int | None = None) -> None:
        """Run to the end: nothing here is asynchronous, and there are no streams."""
        del stream
        self.run(values)

    def run(self, values: Sequence[Any], seed: int = 0, **options: Any) -> emulator.Report:
        """Run on arrays in the manifest's order; `seed` picks one legal order of events.

        options: what else `emulator.launch` takes, such as `trace`.
        """
        with self._stream:
            return self._run(values, seed, options)

    def _run(self, values: Sequence[Any], seed: int, options: dict[str, Any]) -> emulator.Report:
        manifest = self.bundle.manifest
        names = [tensor["name"] for tensor in manifest["tensors"]]
        bound = bind_all(manifest, dict(zip(names, values, strict=True)))
        dependent = manifest["schedule"].get("programmatic_dependent_launch", False)
        if self._is_midway:  # a run has ended by an exception, or was on its way at a fork
            self.workspaces = [each.anew() for each in self.workspaces]
        memories = [tensor.memory for tensor in bound.values()]
        memories += [each.words for each in self.workspaces]
        own = iter(self.workspaces)
        self._is_midway = True
        report = emulator.launch(
            self.bundle.ptx,
            manifest["entry"],
            grid=tuple(manifest["grid"]),
            block=tuple(manifest["block"]),
            cluster=tuple(manifest["cluster"]),
            preferred=manifest.get("preferred_cluster"),
            shared_bytes=manifest["dynamic_shared_bytes"],
            params=[_parameter(declared, bound, own) for declared in manifest["parameters"]],
            seed=seed,
            awaited=memories if dependent else [],
            names=manifest.get("names"),
            outputs=written_whole(manifest, bound),
            inputs=read_whole(manifest, bound),
            scratch=[each.words for each in self.workspaces if not each.is_zero],
            **options,
        )
        self._is_midway = False
        for workspace in self.workspaces:
            workspace.check(f"kernel {manifest['entry']}")
        return report


class EmulatorDevice:
    """Runs `kernel.ptx` on the functional emulator."""

    name = "emulator"
    place = "cpu"
    target = None

    def open(self, bundle: Bundle, index: int | None = None) -> EmulatorProgram:
        """The bundle ready to run; tensors that lie on a GPU are refused when they are bound."""
        del index
        return EmulatorProgram(bundle)

    def launch(
        self, bundle: Bundle, tensors: Mapping[str, Any], seed: int = 0, **options: Any
    ) -> emulator.Report:
        """Run the kernel on tensors in the CPU's memory; options as of `EmulatorProgram.run`."""
        return EmulatorProgram(bundle).run(in_order(bundle.manifest, tensors), seed, **options)


@dataclass(frozen=True)
class Workspace:
    """Memory of a launch besides its tensors; `is_zero` says that it holds zeros between runs."""

    words: np.ndarray
    is_zero: bool

    @staticmethod
    def of(size: int, is_zero: bool) -> Workspace:
        """A workspace of `size` bytes: zeros, or poison that no sum should read."""
        return Workspace(np.full(size // 4, 0 if is_zero else NAN_WORD, np.uint32), is_zero)

    def anew(self) -> Workspace:
        """The workspace as it was before any run."""
        return Workspace.of(4 * self.words.size, self.is_zero)

    def check(self, where: str) -> None:
        """Refuse what a run has left where the next one needs zeros."""
        if self.is_zero and self.words.any():
            at = int(np.flatnonzero(self.words)[0])
            rule = f"{where}: must leave zeros in its workspace"
            raise DeviceError(f"{rule}, got {self.words[at]} in word {at}; reset what it counts")


def _parameter(
    declared: Mapping[str, Any], bound: Mapping[str, BoundTensor], own: Iterator[Workspace]
) -> np.ndarray | emulator.TensorMap | int:
    if declared["kind"] == "size":
        return declared["value"]
    if declared["kind"] == "workspace":
        return next(own).words
    memory = bound[declared["tensor"]].memory
    if declared["kind"] == "pointer":
        return memory
    fields = {name: declared[name] for name in TENSOR_MAP_FIELDS}
    return emulator.TensorMap(memory, strides=declared["strides_bytes"], **fields)
