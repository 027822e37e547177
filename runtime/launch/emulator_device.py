"""The device that runs a bundle's PTX on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import emulator
from ..again import NOTHING
from ..bundles.bundle import Bundle
from ..bundles.manifest import in_order, offsets_of, operands, second_b, workspaces
from ..errors import DeviceError
from ..group_sizes import ORDER
from ..locks import shared_lock
from ..operands.tensors import BoundTensor, bind_all

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
    behind where it needs them. Runs of a kernel that has some follow each other, as in a stream.
    """

    again = NOTHING

    def __init__(self, bundle: Bundle):
        self.bundle = bundle
        found = workspaces(bundle.manifest)
        self.workspaces = [Workspace.of(size, is_zero) for size, is_zero in found]
        self._stream = shared_lock() if found else nullcontext()

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
        memories = [tensor.memory for tensor in bound.values()]
        memories += [each.words for each in self.workspaces]
        own = iter(self.workspaces)
        report = emulator.launch(
            self.bundle.ptx,
            manifest["entry"],
            grid=tuple(manifest["grid"]),
            block=tuple(manifest["block"]),
            cluster=tuple(manifest["cluster"]),
            shared_bytes=manifest["dynamic_shared_bytes"],
            params=[_parameter(declared, bound, own) for declared in manifest["parameters"]],
            seed=seed,
            awaited=memories if dependent else [],
            names=manifest.get("names"),
            outputs=_results(manifest, bound),
            inputs=_needed(manifest, bound),
            scratch=[each.words for each in self.workspaces if not each.is_zero],
            **options,
        )
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
        """So many bytes; those that may be anything are what no sum should read."""
        return Workspace(np.full(size // 4, 0 if is_zero else NAN_WORD, np.uint32), is_zero)

    def check(self, where: str) -> None:
        """Refuse what a run has left where the next one needs zeros."""
        if self.is_zero and self.words.any():
            at = int(np.flatnonzero(self.words)[0])
            rule = f"{where}: must leave zeros in its workspace"
            raise DeviceError(f"{rule}, got {self.words[at]} in word {at}; reset what it counts")


def _results(manifest: Mapping[str, Any], bound: Mapping[str, BoundTensor]) -> list[np.ndarray]:
    """What the kernel writes all of: outputs, but for the rows behind the last group, and for
    groups that an order leaves out."""
    outputs = [_elements(each) for each in bound.values() if each.declared["role"] == "output"]
    if ORDER in bound and not _names_each(bound[ORDER].memory):
        return []
    offsets = offsets_of(manifest)
    if offsets is None or outputs[0].ndim == 3:  # or K is in groups, each with a matrix of c
        return outputs
    ends = _elements(bound[offsets["name"]]).view(np.int32)
    if np.any(np.diff(ends, prepend=0) < 0) or ends[-1] > len(outputs[0]):
        return []
    return [each[: ends[-1]] for each in outputs]


def _names_each(order: np.ndarray) -> bool:
    """Whether an order of groups names each; a number that is too large counts as the last one."""
    return len(np.unique(np.minimum(order, order.size - 1))) == order.size


def _needed(manifest: Mapping[str, Any], bound: Mapping[str, BoundTensor]) -> list[np.ndarray]:
    """What the kernel reads all of: operands, unless their groups may be empty."""
    if offsets_of(manifest) is not None:
        return []
    needed = [*operands(manifest), second_b(manifest)]
    return [_elements(bound[each["name"]]) for each in needed if each]


def _elements(tensor: BoundTensor) -> np.ndarray:
    """A tensor's elements, as raw bits, without the gaps between them."""
    item, declared = tensor.memory.itemsize, tensor.declared
    strides = [step * item for step in declared["strides"]]
    return np.lib.stride_tricks.as_strided(tensor.memory, declared["shape"], strides)


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
