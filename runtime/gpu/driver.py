"""The CUDA driver API through cuda-python, with every status checked; nothing else imports it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import DeviceError

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT_BYTES = 64
NAME_BYTES = 128
ENCODE, LAUNCH = "cuTensorMapEncodeTiled", "cuLaunchKernelEx"
IS_CAPTURING = "cuStreamIsCapturing"
VERSION = 12000  # of CUDA, which has them all
PER_THREAD = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"


class DriverError(DeviceError):
    """A driver call failed; `code` is its CUresult."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


@functools.cache
def open_driver() -> Driver:
    """The driver of this machine; raises DeviceError when cuda-python or the driver is missing."""
    try:
        from cuda.bindings import driver as api
    except ImportError as error:
        cure = "pip install '.[cuda]' in a checkout, or use the emulator"
        raise DeviceError(f"cuda: cuda-python must be installed, got {error}; {cure}") from error
    return Driver(api)


class Driver:
    """`api` is `cuda.bindings.driver`, or what stands in for it."""

    def __init__(self, api: Any):
        self.api = api
        self.check("cuda", self._initialize())

    def check(self, where: str, answer: tuple[Any, ...], cure: str = "") -> Any:
        """The value of a driver call's answer; raises DriverError if its status isn't success."""
        status, *values = answer
        if status:
            raise self.error(where, int(status), cure)
        return values[0] if len(values) == 1 else tuple(values)

    def error(self, where: str, code: int, cure: str = "") -> DriverError:
        """What a failed status means, in one line."""
        status = self.api.CUresult(code)
        name, text = (
            _text(describe(status)[1])
            for describe in (self.api.cuGetErrorName, self.api.cuGetErrorString)
        )
        ending = f"; {cure}" if cure else ""
        return DriverError(f"{where}: must succeed, got {name} ({code}), {text}{ending}", code)

    def device_count(self) -> int:
        """How many GPUs are visible."""
        return self.check("cuda: device count", self.api.cuDeviceGetCount())

    def name(self, handle: Any) -> str:
        """What the GPU is called, such as "NVIDIA H200"."""
        return _text(self.check("cuda: device name", self.api.cuDeviceGetName(NAME_BYTES, handle)))

    def attribute(self, handle: Any, name: str) -> int:
        """A CU_DEVICE_ATTRIBUTE_… of a GPU."""
        key = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        where = f"cuda: device attribute {name}"
        return self.check(where, self.api.cuDeviceGetAttribute(key, handle))

    @contextlib.contextmanager
    def entered(self, where: str, context: Any) -> Iterator[None]:
        """Make `context` current in this thread for a while."""
        self.check(where, self.api.cuCtxPushCurrent(context))
        try:
            yield
        finally:
            self.check(where, self.api.cuCtxPopCurrent())

    @contextlib.contextmanager
    def loading(self, where: str) -> Iterator[None]:
        """Let calls that allocate pass, although this thread may be capturing a graph."""
        exchange = self.api.cuThreadExchangeStreamCaptureMode
        relaxed = self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = self.check(where, exchange(relaxed))
        try:
            yield
        finally:
            self.check(where, exchange(before))

    def load_function(self, where: str, cubin: bytes, entry: str) -> Any:
        """The kernel `entry` of a cubin, loaded into the current context and never unloaded."""
        module = self.check(f"{where}: cuModuleLoadData", self.api.cuModuleLoadData(cubin))
        answer = self.api.cuModuleGetFunction(module, entry.encode())
        return self.check(f"{where}: cuModuleGetFunction", answer)

    def set_function(self, where: str, function: Any, name: str, value: int) -> None:
        """Set a CU_FUNC_ATTRIBUTE_… of a kernel."""
        key = getattr(self.api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        answer = self.api.cuFuncSetAttribute(function, key, value)
        self.check(f"{where}: cuFuncSetAttribute {name}", answer)

    def encode_tensor_map(
        self, where: str, arguments: Sequence[Any]
    ) -> ctypes.Array[ctypes.c_char]:
        """A ctypes array of the 128 bytes that cuTensorMapEncodeTiled makes of its other arguments.

        Called by its address: the driver wants the map aligned to 64 bytes (CUDA driver API,
        Tensor Map Object Management), which cuda-python's CUtensorMap isn't.
        """
        tensor_map = _aligned(TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT_BYTES)
        status = self._encode(tensor_map, *arguments)
        if status:
            raise self.error(f"{where}: {ENCODE}", status)
        return tensor_map

    @functools.cached_property
    def addresses(self) -> tuple[int, int] | None:
        """Where cuLaunchKernelEx and cuStreamIsCapturing are; None where cuda-python calls them
        with other default streams, or the driver does not say."""
        if os.environ.get(PER_THREAD, "0") != "0":
            return None
        launch, is_capturing = self._address(LAUNCH), self._address(IS_CAPTURING)
        return (launch, is_capturing) if launch and is_capturing else None

    def _address(self, name: str) -> int:
        """Where a function of the driver is."""
        found = self.api.cuGetProcAddress(name.encode(), VERSION, 0)
        return int(self.check(f"cuda: {name}", found)[0])

    @functools.cached_property
    def _encode(self) -> Any:
        address = self._address(ENCODE)
        u32, u64 = ctypes.c_uint32, ctypes.c_uint64
        u32s, u64s = ctypes.POINTER(u32), ctypes.POINTER(u64)
        numbers = (ctypes.c_int, u32, u64, u64s, u64s, u32s, u32s, *[ctypes.c_int] * 4)
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *numbers)(address)

    def _initialize(self) -> tuple[Any, ...]:
        try:
            return self.api.cuInit(0)
        except RuntimeError as error:  # cuda-python found no libcuda
            reason = str(error).splitlines()[0].rstrip(".")
            cure = "install it, or use the emulator"
            raise DeviceError(
                f"cuda: an NVIDIA driver must be installed, got {reason}; {cure}"
            ) from error


def _aligned(size: int, alignment: int) -> Any:
    """Zeroed bytes at an address that is a multiple of `alignment`."""
    room = ctypes.create_string_buffer(size + alignment)
    offset = -ctypes.addressof(room) % alignment
    return (ctypes.c_char * size).from_buffer(room, offset)


def _text(value: bytes) -> str:
    return value.split(b"\0")[0].decode()
