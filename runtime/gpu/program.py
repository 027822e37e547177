"""A bundle on one GPU. The way to a launch is short: what a call needs is made at the first one.

call      `relauncher` compares each torch tensor's shape, strides, dtype, GPU and address with the
last;
          workspaces of the stream are looked up where the kernel needs some
new       checked against the manifest where their form is new; tensor maps are made for addresses
          that are new, and parameters for a new set of them, and both are kept
first     per stream: the launch configuration with its attributes
captured  the same without dependent launch, unless kernels of ours are in front (`captures.py`)
call      cuLaunchKernelEx
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

from ..bundles.bundle import Bundle
from ..bundles.manifest import workspaces
from ..bundles.manifest_fields import CUBIN_NAME
from ..bundles.manifest_rules import largest_cluster
from ..errors import DeviceError, LaunchError
from ..operands.overlaps import NoOverlapCheck
from ..operands.tensors import required_alignments
from ..relaunch import NOTHING, Known, Relauncher, extension
from .architecture import capability_of, runs_on, target_of, translates
from .gpu import Gpu
from .launch_config import describe, launch_config, waits_by_itself
from .operands import (
    Recognizer,
    any_of,
    counter,
    lies_nowhere,
    maker,
    nothing,
    pointer_of,
    recognizer,
)
from .tensor_map import POINTER, encode_arguments

PORTABLE_CLUSTER = 8
# CUDA_ERROR_INVALID_CONTEXT when the thread has no context, CUDA_ERROR_INVALID_HANDLE when it has
# another one and the stream is the default one; seen with driver 580 on two H200.
NOT_CURRENT = (201, 400)
ARGUMENTS_KEPT = 4096  # sets of addresses; a tensor map has 128 bytes
FAR = 2**39  # bytes: more than a tensor begins after its storage, on GPUs with less memory
FORMS_KEPT = 4  # of tensors, as of a weight with gradients and without


@dataclass(frozen=True)
class CudaReport:
    """Where a kernel ran."""

    kernel: str
    gpu: str
    capability: str
    driver_version: str

    def as_dict(self) -> dict[str, str]:
        """Plain texts, for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Arguments:
    """Kernel parameters: `address` is that of `table`, which holds those of `values`."""

    address: int
    table: ctypes.Array[ctypes.c_void_p]
    values: tuple[Any, ...]


class Form(NamedTuple):
    """How tensors of a call are recognized: all of them, and the inputs."""

    all: Recognizer
    inputs: Recognizer


class CudaProgram:
    """A loaded kernel of one GPU. Raises DeviceError when the bundle was made for another one."""

    def __init__(self, bundle: Bundle, gpu: Gpu):
        self.manifest, self.gpu, self._index = bundle.manifest, gpu, gpu.index
        self.where = f"kernel {self.manifest['entry']} on {gpu}"
        self._check_gpu()
        self._function = self._load(bundle)
        self._alignments = required_alignments(self.manifest)
        self._reads = [tensor["role"] == "input" for tensor in self.manifest["tensors"]]
        self._check_no_overlap = NoOverlapCheck(self.manifest)
        numbered = enumerate(self.manifest["parameters"])
        self._maps = [(at, each["tensor"]) for at, each in numbered if each["kind"] == "tensor_map"]
        self._encodings: dict[int, list[Any]] = {}  # of tensor maps, by the parameter
        self._needs = workspaces(self.manifest)
        self._forms: tuple[Form, ...] = ()
        self.relauncher: Any = NOTHING
        self._launches: dict[tuple[Any, ...], Known] = {}
        self._arguments: dict[tuple[int, ...], Arguments] = {}
        self._values: dict[tuple[int, int], Any] = {}  # by the parameter and an address
        self._raw_stream: Callable[[int], int] | None = None
        self._torch_captures: Callable[[], bool] | None = None
        self._configs: dict[int | None, Any] = {}
        self._waits = waits_by_itself(bundle.manifest)
        self._serial: dict[int, Any] = {}
        self._launch_kernel = gpu.driver.api.cuLaunchKernelEx

    def enqueue(self, values: Sequence[Any], stream: int | None = None) -> None:
        """Launch on CUDA tensors in the manifest's order, without waiting; `relauncher` then knows
        them.

        `stream` is a CUstream's handle; None stands for torch's current stream where torch is
        loaded, else for the default stream. Raises LaunchError for tensors that don't fit, and
        DriverError.
        """
        current = stream is None
        if stream is None:
            stream = self._current_stream()
        known = self._find(values, stream)
        if current and self._waits:
            known = self._in_capture(known, stream)
        status = self._launch_kernel(known.config, self._function, known.parameters, 0)[0]
        if status:
            self._relaunch(int(status), known)

    def takes(self, inputs: Sequence[Any]) -> bool:
        """Whether these inputs are known to lie as the kernel takes them."""
        alignments = compress(self._alignments.values(), self._reads)
        return any(form.inputs(*inputs) for form in self._forms) and all(
            each.data_ptr() % bytes_of_it == 0
            for each, bytes_of_it in zip(inputs, alignments, strict=True)
        )

    def run(self, values: Sequence[Any], seed: int = 0) -> CudaReport:
        """Launch as `enqueue` does, wait, and say where it ran; raises also what failed there."""
        del seed  # hardware picks its own order
        stream = self._current_stream()
        self.enqueue(values, stream)
        driver = self.gpu.driver
        with driver.entered(self.where, self.gpu.context):
            driver.check(f"{self.where}: run", driver.api.cuStreamSynchronize(stream))
        major, minor = self.gpu.capability
        entry, version = self.manifest["entry"], self.gpu.driver_version
        return CudaReport(entry, str(self.gpu), f"{major}.{minor}", version)

    def _current_stream(self) -> int:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return 0
        if self._raw_stream is None:
            self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
            self._torch_captures = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
            self._forms = ()  # so that `relauncher` is made with it
        return torch.cuda.current_stream(self.gpu.index).cuda_stream

    def _find(self, values: Sequence[Any], stream: int) -> Known:
        """The launch that is kept for these arrays, or a new one."""
        known = any(form.all(*values) for form in self._forms)
        pointers = tuple(each.data_ptr() for each in values) if known else ()
        if not known or (min(pointers) < FAR and any(map(lies_nowhere, values, pointers))):
            pairs = zip(self.manifest["tensors"], values, strict=True)
            pointers = tuple(pointer_of(*pair, self._index, stream) for pair in pairs)
        if not known:
            self._learn(values)
        if self._needs:
            pointers += self._workspaces(stream)
        return self._launches.get((*pointers, stream)) or self._keep(pointers, stream)

    def _learn(self, values: Sequence[Any]) -> None:
        """Let `relauncher` know tensors of this form, beside the latest others."""
        form = Form(recognizer(values), recognizer(list(compress(values, self._reads))))
        if form.all is nothing:
            self._forms, self.relauncher = (), NOTHING
        else:
            self._forms = form, *self._forms[: FORMS_KEPT - 1]
            self.relauncher = self._relauncher_for(values)

    def _relauncher_for(self, values: Sequence[Any]) -> Any:
        """Launches on tensors of the forms that are known, in C where that can be."""
        make = maker(self.manifest["tensors"], values, self._index)
        relauncher: Any
        captures: Any
        addresses, module = self.gpu.driver.addresses, extension()
        if module is not None and addresses is not None:
            launch, is_capturing = addresses
            relauncher = functools.partial(module.Relauncher, launch, int(self._function))
            captures = is_capturing if self._waits else 0
        else:
            relauncher = functools.partial(Relauncher, self._launch_kernel, self._function)
            captures = self._torch_captures if self._waits else None
        return relauncher(
            launches=self._launches,
            failed=self._relaunch,
            recognizes=any_of([form.all for form in self._forms]),
            recognizes_inputs=make and any_of([form.inputs for form in self._forms]),
            make=make,
            captures=captures,
            stream_of=self._raw_stream,
            index=self._index,
            workspaces=self._workspaces if self._needs else None,
            count_up=counter(values[-1]),
        )

    def _in_capture(self, known: Known, stream: int) -> Known:
        """The launch as it is in a graph: serial but within a run of ours.

        `relauncher` leaves a stream alone that a graph captures, of a kernel that could be either.
        """
        captures = self.gpu.captures
        if not captures.capturing(self.where, stream):
            return known
        if captures.within_a_run(stream, set(self.gpu.functions.values())):
            return known
        if stream not in self._serial:
            api = self.gpu.driver.api
            self._serial[stream] = launch_config(api, self.manifest, stream, dependent=False)
        config = self._serial[stream]
        return known._replace(config=config, config_address=_address(config))

    def _keep(self, pointers: tuple[int, ...], stream: int) -> Known:
        arguments = self._arguments.get(pointers) or self._prepare(pointers)
        config = self._configs.get(stream) or self._configure(stream)
        if len(self._launches) >= ARGUMENTS_KEPT:
            self._launches.clear()
        known = Known(arguments.address, _address(config), config, arguments)
        self._launches[*pointers, stream] = known
        return known

    def _prepare(self, pointers: tuple[int, ...]) -> Arguments:
        """Parameters for tensors, and then workspaces, at these addresses."""
        own = iter(pointers[len(self._alignments) :])
        addresses = dict(zip(self._alignments, pointers, strict=False))
        for name, address in addresses.items():
            _check_alignment(name, address, self._alignments[name])
        self._check_no_overlap(addresses)
        if len(self._values) + len(self.manifest["parameters"]) > ARGUMENTS_KEPT:
            self._values.clear()
        is_new = any((at, addresses[name]) not in self._values for at, name in self._maps)
        driver = self.gpu.driver
        with driver.entered(self.where, self.gpu.context) if is_new else nullcontext():
            numbered = enumerate(self.manifest["parameters"])
            values = tuple(self._value(*each, addresses, own) for each in numbered)
        table = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        if len(self._arguments) >= ARGUMENTS_KEPT:
            self._arguments.clear()
        arguments = Arguments(ctypes.addressof(table), table, values)
        self._arguments[pointers] = arguments
        return arguments

    def _workspaces(self, stream: int) -> tuple[int, ...]:
        """Addresses of the workspaces of a launch on this stream."""
        return self.gpu.workspaces.find(self.where, self._needs, stream)

    def _value(
        self,
        position: int,
        declared: Mapping[str, Any],
        addresses: Mapping[str, int],
        own: Iterator[int],
    ) -> Any:
        """A parameter; the one of a tensor is kept by the address, which many sets may share."""
        if declared["kind"] == "size":
            return ctypes.c_uint32(declared["value"])
        if declared["kind"] == "workspace":
            return ctypes.c_uint64(next(own))
        key = position, addresses[declared["tensor"]]
        if key not in self._values:
            self._values[key] = self._of_address(declared, *key)
        return self._values[key]

    def _of_address(self, declared: Mapping[str, Any], position: int, address: int) -> Any:
        if declared["kind"] == "pointer":
            return ctypes.c_uint64(address)
        driver = self.gpu.driver
        if position not in self._encodings:
            self._encodings[position] = list(encode_arguments(driver.api, declared, address))
        arguments = self._encodings[position].copy()
        arguments[POINTER] = address
        where = f"{self.where}: tensor map of '{declared['tensor']}'"
        return driver.encode_tensor_map(where, arguments)

    def _configure(self, stream: int) -> Any:
        config = launch_config(self.gpu.driver.api, self.manifest, stream)
        self._configs[stream] = config
        return config

    def _relaunch(self, code: int, known: Known) -> None:
        """Launch in the GPU's context, if what failed is that it isn't current in this thread."""
        if code in NOT_CURRENT:
            with self.gpu.driver.entered(self.where, self.gpu.context):
                status = self._launch_kernel(known.config, self._function, known.parameters, 0)[0]
            code = int(status)
        if code:
            raise self.gpu.driver.error(f"{self.where}: launch", code, describe(self.manifest))

    def _check_gpu(self) -> None:
        target, capability = self.manifest["target"], self.gpu.capability
        if not runs_on(target, capability) and not translates(target, capability):
            wanted, got = (".".join(map(str, c)) for c in (capability_of(target)[0], capability))
            raise DeviceError(
                f"{self.where}: GPU must have compute capability {wanted} for a bundle of"
                f" {target}, got {got}; compile it for {target_of(capability)}"
            )
        static = self.manifest["resources"]["static_shared_bytes"]
        shared_bytes = self.manifest["dynamic_shared_bytes"] + static
        if shared_bytes > self.gpu.shared_bytes:
            raise LaunchError(
                f"{self.where}: shared memory of a CTA must be at most {self.gpu.shared_bytes}"
                f" bytes, got {shared_bytes}; compile with fewer stages"
            )

    def _image(self, bundle: Bundle) -> bytes:
        """The cubin, or the PTX, which the driver translates, where it is for older GPUs."""
        if runs_on(self.manifest["target"], self.gpu.capability):
            return bundle.cubin
        return bundle.ptx.encode() + b"\0"

    def _load(self, bundle: Bundle) -> Any:
        """The function, loaded and configured once for each GPU."""
        manifest, driver = self.manifest, self.gpu.driver
        shared_bytes, entry = manifest["dynamic_shared_bytes"], manifest["entry"]
        x, y, z = largest_cluster(manifest)
        key = (manifest["hashes"][CUBIN_NAME], entry, shared_bytes, x * y * z)
        if key in self.gpu.functions:
            return self.gpu.functions[key]
        with driver.entered(self.where, self.gpu.context), driver.loading(self.where):
            function = driver.load_function(self.where, self._image(bundle), entry)
            if shared_bytes:
                name = "MAX_DYNAMIC_SHARED_SIZE_BYTES"
                driver.set_function(self.where, function, name, shared_bytes)
            if x * y * z > PORTABLE_CLUSTER:
                name = "NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
                driver.set_function(self.where, function, name, 1)
        self.gpu.functions[key] = function
        return function


def _address(config: Any) -> int:
    """Where the driver's CUlaunchConfig lies, 0 of one that only stands for it."""
    pointer = getattr(config, "getPtr", None)
    return 0 if pointer is None else pointer()


def _check_alignment(name: str, address: int, alignment_bytes: int) -> None:
    if address % alignment_bytes:
        raise LaunchError(
            f"tensor '{name}': address must be a multiple of {alignment_bytes} bytes,"
            f" got {address:#x}; pass a copy"
        )
