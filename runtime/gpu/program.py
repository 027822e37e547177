"""A bundle on one GPU. The way to a launch is short: what a call needs is made at the first one.

call      shape, strides, dtype and GPU of each tensor are compared, addresses taken
first     per set of addresses: alignment, tensor maps, the array of kernel parameters
first     per stream: the launch configuration with its attributes
call      cuLaunchKernelEx
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..bundle import Bundle
from ..errors import DeviceError, LaunchError
from ..manifest import CUBIN_NAME
from ..tensors import required_alignments
from .architecture import capability_of, runs_on, target_of
from .launch_config import describe, launch_config
from .operands import TorchForm, pointer_of, torch_forms
from .tensor_map import encode_arguments

if TYPE_CHECKING:
    from .device import Gpu

PORTABLE_CLUSTER = 8
ARGUMENTS_KEPT = 4096  # sets of addresses; a tensor map has 128 bytes


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
    """Kernel parameters: `table` holds their addresses, `values` the parameters themselves."""

    table: ctypes.Array[ctypes.c_void_p]
    values: tuple[Any, ...]
    address: int


class CudaProgram:
    """A loaded kernel of one GPU. Raises DeviceError when the bundle was made for another one."""

    def __init__(self, bundle: Bundle, gpu: Gpu):
        self.manifest, self.gpu = bundle.manifest, gpu
        self.where = f"kernel {self.manifest['entry']} on {gpu}"
        self._check_gpu()
        self._function = self._load(bundle)
        self._alignments = required_alignments(self.manifest)
        self._forms: tuple[TorchForm, ...] = ()
        self._tensor_type: type = type(None)
        self._raw_stream: Callable[[int], int] | None = None
        self._arguments: dict[tuple[int, ...], Arguments] = {}
        self._configs: dict[int, Any] = {}
        self._launch_kernel = gpu.driver.api.cuLaunchKernelEx
        self._current_context = gpu.driver.api.cuCtxGetCurrent
        self._context = int(gpu.context)

    def enqueue(self, values: Sequence[Any], stream: int | None = None) -> None:
        """Launch on CUDA tensors in the manifest's order, without waiting.

        `stream` is a CUstream's handle; None stands for torch's current stream where torch is
        loaded, else for the default stream. Raises LaunchError for tensors that don't fit, and
        DriverError.
        """
        if stream is None:
            stream = self._current_stream()
        pointers = self._pointers(values, stream)
        arguments = self._arguments.get(pointers) or self._prepare(pointers)
        config = self._configs.get(stream) or self._configure(stream)
        if int(self._current_context()[1]) != self._context:
            return self._launch_elsewhere(config, arguments)
        status = self._launch_kernel(config, self._function, arguments.address, 0)[0]
        if status:
            self._fail(int(status))
        return None

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

    def _pointers(self, values: Sequence[Any], stream: int) -> tuple[int, ...]:
        """The addresses; torch tensors that fit take the short way."""
        index, tensor_type, pointers = self.gpu.index, self._tensor_type, []
        for value, form in zip(values, self._forms, strict=False):
            if (
                not isinstance(value, tensor_type)
                or value.shape != form.shape
                or value.stride() != form.strides
                or value.dtype is not form.dtype
                or value.get_device() != index
            ):
                break
            pointers.append(value.data_ptr())
        if len(pointers) == len(values):
            return tuple(pointers)
        return self._pointers_of_any(values, stream)

    def _pointers_of_any(self, values: Sequence[Any], stream: int) -> tuple[int, ...]:
        torch = sys.modules.get("torch")
        if torch and not self._forms:
            self._tensor_type, self._forms = torch.Tensor, torch_forms(torch, self.manifest)
            self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        pairs = zip(self.manifest["tensors"], values, strict=True)
        return tuple(pointer_of(tensor, value, self.gpu.index, stream) for tensor, value in pairs)

    def _current_stream(self) -> int:
        if self._raw_stream:
            return self._raw_stream(self.gpu.index)
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return 0
        return torch.cuda.current_stream(self.gpu.index).cuda_stream

    def _prepare(self, pointers: tuple[int, ...]) -> Arguments:
        """Parameters for tensors at these addresses, kept for the next call."""
        names = [tensor["name"] for tensor in self.manifest["tensors"]]
        addresses = dict(zip(names, pointers, strict=True))
        for name, address in addresses.items():
            _check_alignment(name, address, self._alignments[name])
        values = tuple(self._value(each, addresses) for each in self.manifest["parameters"])
        table = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        arguments = Arguments(table, values, ctypes.addressof(table))
        if len(self._arguments) >= ARGUMENTS_KEPT:
            self._arguments.clear()
        self._arguments[pointers] = arguments
        return arguments

    def _value(self, declared: Mapping[str, Any], addresses: Mapping[str, int]) -> Any:
        address = addresses[declared["tensor"]]
        if declared["kind"] == "pointer":
            return ctypes.c_uint64(address)
        driver = self.gpu.driver
        where = f"{self.where}: tensor map of '{declared['tensor']}'"
        return driver.encode_tensor_map(where, encode_arguments(driver.api, declared, address))

    def _configure(self, stream: int) -> Any:
        config = launch_config(self.gpu.driver.api, self.manifest, stream)
        self._configs[stream] = config
        return config

    def _launch_elsewhere(self, config: Any, arguments: Arguments) -> None:
        """Launch while another context, or none, is current in this thread."""
        with self.gpu.driver.entered(self.where, self.gpu.context):
            status = self._launch_kernel(config, self._function, arguments.address, 0)[0]
        if status:
            self._fail(int(status))

    def _fail(self, code: int) -> None:
        raise self.gpu.driver.error(f"{self.where}: launch", code, describe(self.manifest))

    def _check_gpu(self) -> None:
        target, capability = self.manifest["target"], self.gpu.capability
        if not runs_on(target, capability):
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

    def _load(self, bundle: Bundle) -> Any:
        """The function, loaded and configured once for each GPU."""
        manifest, driver = self.manifest, self.gpu.driver
        shared_bytes, entry = manifest["dynamic_shared_bytes"], manifest["entry"]
        x, y, z = manifest["cluster"]
        key = (manifest["hashes"][CUBIN_NAME], entry, shared_bytes, x * y * z)
        if key in self.gpu.functions:
            return self.gpu.functions[key]
        with driver.entered(self.where, self.gpu.context), driver.loading(self.where):
            function = driver.load_function(self.where, bundle.cubin, entry)
            if shared_bytes:
                name = "MAX_DYNAMIC_SHARED_SIZE_BYTES"
                driver.set_function(self.where, function, name, shared_bytes)
            if x * y * z > PORTABLE_CLUSTER:
                name = "NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
                driver.set_function(self.where, function, name, 1)
        self.gpu.functions[key] = function
        return function


def _check_alignment(name: str, address: int, alignment_bytes: int) -> None:
    if address % alignment_bytes:
        raise LaunchError(
            f"tensor '{name}': address must be a multiple of {alignment_bytes} bytes,"
            f" got {address:#x}; pass a copy"
        )
