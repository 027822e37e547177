"""A CUDA driver that records every call, and arrays that claim to lie on its GPUs."""

import ctypes
import importlib.util
import itertools
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.runtime import Bundle
from tilewright.runtime.bundles.bundle import seal
from tilewright.runtime.operands.dlpack import _Tensor

INVALID_VALUE = 1
SOURCE = Path(__file__).parents[3] / "runtime" / "_relaunch.c"
ENUMS = {
    "CUdevice_attribute": {
        "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 75,
        "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 76,
        "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
    },
    "CUfunction_attribute": {
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
        "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 14,
    },
    "CUlaunchAttributeID": {
        "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION": 4,
        "CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION": 11,
        "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION": 6,
    },
    "CUstream_flags": {"CU_STREAM_NON_BLOCKING": 1},
    "CUstreamCaptureMode": {"CU_STREAM_CAPTURE_MODE_RELAXED": 2},
    "CUtensorMapDataType": {
        "CU_TENSOR_MAP_DATA_TYPE_UINT8": 0,
        "CU_TENSOR_MAP_DATA_TYPE_INT32": 3,
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": 6,
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT32": 7,
        "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16": 9,
    },
    "CUtensorMapInterleave": {"CU_TENSOR_MAP_INTERLEAVE_NONE": 0},
    "CUtensorMapSwizzle": {
        "CU_TENSOR_MAP_SWIZZLE_NONE": 0,
        "CU_TENSOR_MAP_SWIZZLE_32B": 1,
        "CU_TENSOR_MAP_SWIZZLE_64B": 2,
        "CU_TENSOR_MAP_SWIZZLE_128B": 3,
    },
    "CUtensorMapL2promotion": {
        "CU_TENSOR_MAP_L2_PROMOTION_NONE": 0,
        "CU_TENSOR_MAP_L2_PROMOTION_L2_64B": 1,
        "CU_TENSOR_MAP_L2_PROMOTION_L2_128B": 2,
        "CU_TENSOR_MAP_L2_PROMOTION_L2_256B": 3,
    },
    "CUtensorMapFloatOOBfill": {
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": 0,
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA": 1,
    },
}
MAP_ENUMS = ("interleave", "swizzle", "l2_promotion", "oob_fill")
DTYPES = {
    "bf16": (4, 16),
    "f16": (2, 16),
    "f32": (2, 32),
    "f64": (2, 64),
    "tf32": (2, 32),
    "e4m3": (10, 8),
    "e5m2": (12, 8),
    "s8": (0, 8),
    "u8": (1, 8),
    "s32": (0, 32),
}
ERRORS = {
    1: b"CUDA_ERROR_INVALID_VALUE",
    400: b"CUDA_ERROR_INVALID_HANDLE",
    700: b"CUDA_ERROR_ILLEGAL_ADDRESS",
}
B200 = SimpleNamespace(name=b"NVIDIA B200\0\0\0", capability=(10, 0), shared_bytes=232_448)
H200 = SimpleNamespace(name=b"NVIDIA H200\0\0\0", capability=(9, 0), shared_bytes=232_448)


SEVERAL = ("cuStreamGetCaptureInfo", "cuGraphNodeGetDependencies")  # that give several results


class RecordedDriver:
    """Answers like cuda.bindings.driver for the GPUs given; `calls` has (name, arguments).

    `failing` maps a call's name to the status it ends with; `contexts` is the thread's stack,
    `captures` the number of the capture that a stream is in, `in_front` the nodes that its next
    launch comes after. A node is a pair: the function of a kernel, None for a copy; and the nodes
    that it comes after. cuLaunchKernelEx and cuStreamIsCapturing may be called by their addresses,
    too, where `has_address` says so; that is recorded as the others are.
    """

    CUresult = int

    def __init__(self, *gpus, has_address=False):
        self.gpus, self.calls, self.failing, self.encoded = gpus, [], {}, []
        self.has_address, self.configs = has_address, {}
        self.contexts, self.captures, self.allocated = [], {}, 0x5000_0000
        self.in_front = []
        for name, members in ENUMS.items():
            setattr(self, name, SimpleNamespace(**members))
        self._encode = ENCODE_TYPE(self._encode_tiled)
        self._launch = LAUNCH_TYPE(self._launch_by_address)
        self._is_capturing = IS_CAPTURING_TYPE(self._is_capturing_by_address)

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        answer = getattr(type(self), f"_{name}", lambda *_: None)

        def call(*arguments):
            value = answer(self, *arguments)
            self.calls.append((name, arguments))
            status = self.failing.get(name, 0) or self._missing_context(name, arguments)
            if status or value is None:
                return (status,)
            return (status, *value) if name in SEVERAL else (status, value)

        return call

    def _missing_context(self, name, arguments):
        """What a launch in a thread without the function's context ends with."""
        if name != "cuLaunchKernelEx":
            return 0
        if not self.contexts:
            return 201
        (_, wanted), stream = arguments[1], arguments[0].hStream
        return 400 if stream == 0 and self.contexts[-1] != wanted else 0

    def names(self):
        """What was called, in order."""
        return [name for name, _ in self.calls]

    def arguments(self, name):
        """The arguments of every call of this name."""
        return [arguments for called, arguments in self.calls if called == name]

    def CUlaunchConfig(self):
        config = LaunchConfig()
        self.configs[config.getPtr()] = config
        return config

    @staticmethod
    def CUlaunchAttribute():
        extents = {name: SimpleNamespace() for name in ("clusterDim", "preferredClusterDim")}
        return SimpleNamespace(value=SimpleNamespace(**extents))

    def _cuGetErrorName(self, code):
        return ERRORS[code]

    def _cuGetErrorString(self, code):
        return b"what went wrong"

    def _cuDeviceGetCount(self):
        return len(self.gpus)

    def _cuDeviceGet(self, index):
        return index

    def _cuDeviceGetName(self, size, device):
        return self.gpus[device].name

    def _cuDeviceGetAttribute(self, key, device):
        major, minor = self.gpus[device].capability
        return {75: major, 76: minor, 97: self.gpus[device].shared_bytes}[key]

    def _cuDriverGetVersion(self):
        return 13020

    def _cuDevicePrimaryCtxRetain(self, device):
        return 0xC0 + device

    def _cuCtxPushCurrent(self, context):
        self.contexts.append(context)

    def _cuCtxPopCurrent(self):
        return self.contexts.pop()

    def _cuThreadExchangeStreamCaptureMode(self, mode):
        return 0

    def _cuStreamIsCapturing(self, stream):
        return int(stream in self.captures)

    def _cuStreamGetCaptureInfo(self, stream):
        return (1, self.captures[stream], None, self.in_front, [], len(self.in_front))

    def _cuGraphNodeGetType(self, node):
        return 0 if node[0] else 1

    def _cuGraphKernelNodeGetParams(self, node):
        return SimpleNamespace(func=node[0])

    def _cuGraphNodeGetDependencies(self, node, count):
        return ([*node[1], *[None] * count][:count], [], min(count, len(node[1])))

    def _cuStreamCreate(self, flags):
        return 0xAA

    def _cuMemAlloc(self, size):
        self.allocated += 2**30
        return self.allocated

    def _cuModuleLoadData(self, image):
        return "module"

    def _cuModuleGetFunction(self, module, name):
        return Function(("function", self.contexts[-1]))

    def _cuGetProcAddress(self, name, version, flags):
        found = {b"cuTensorMapEncodeTiled": self._encode}
        if self.has_address:
            found[b"cuLaunchKernelEx"] = self._launch
            found[b"cuStreamIsCapturing"] = self._is_capturing
        address = ctypes.cast(found[name], ctypes.c_void_p).value if name in found else 0
        return (address, 0)

    def _launch_by_address(self, config, function, parameters, extra):
        function = Function(("function", function - FUNCTION))
        return self.cuLaunchKernelEx(self.configs[config], function, parameters, extra or 0)[0]

    def _is_capturing_by_address(self, stream, found):
        status, *told = self.cuStreamIsCapturing(stream or 0)
        found[0] = told[0] if told else 0
        return status

    def _encode_tiled(self, tensor_map, dtype, rank, address, dims, strides, box, steps, *enums):
        if tensor_map % 64:
            return INVALID_VALUE
        ctypes.memset(tensor_map, len(self.encoded) + 1, 128)
        self.encoded.append(
            {
                "dtype": dtype,
                "address": address,
                "dims": dims[:rank],
                "strides_bytes": strides[: rank - 1],
                "box": box[:rank],
                "element_strides": steps[:rank],
                **dict(zip(MAP_ENUMS, enums, strict=True)),
            }
        )
        return self.failing.get("cuTensorMapEncodeTiled", 0)


class LaunchConfig(SimpleNamespace):
    """A CUlaunchConfig, whose address stands for it."""

    def getPtr(self):
        return id(self)


class Function(tuple):
    """A CUfunction of a context, as a handle where it is asked for as a number."""

    def __int__(self):
        return FUNCTION + self[1]


FUNCTION = 0xF000
LAUNCH_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
IS_CAPTURING_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
_U32S, _U64S = ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint64)
ENCODE_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_uint32,
    ctypes.c_uint64,
    _U64S,
    _U64S,
    _U32S,
    _U32S,
    *[ctypes.c_int] * 4,
)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_addresses = itertools.count(0x7F00_0000_0000, 2**30)


class GpuArray:
    """Exports DLPack as a library of GPU arrays would; `streams` are those it was asked for."""

    def __init__(self, shape, strides, dtype="bf16", index=0, address=None):
        self.address = next(_addresses) if address is None else address
        self.index, self.streams, rank = index, [], len(shape)
        self.shape, self.strides = ((ctypes.c_int64 * rank)(*each) for each in (shape, strides))
        code, bits = DTYPES[dtype]
        pointer = ctypes.POINTER(ctypes.c_int64)
        extents = (ctypes.cast(each, pointer) for each in (self.shape, self.strides))
        self.tensor = _Tensor(self.address, 2, index, rank, code, bits, 1, *extents, 0)

    def __dlpack_device__(self):
        return (2, self.index)

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return _new_capsule(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.fixture
def gpu_array():
    return GpuArray


@pytest.fixture(params=["c", "python"])
def b200(request, monkeypatch):
    """A driver with two B200, in a thread that uses the first one, whose kernels are launched again
    by the extension and by Python."""
    in_c = request.param == "c"
    module = request.getfixturevalue("extension") if in_c else None
    monkeypatch.setattr("tilewright.runtime.gpu.program.extension", lambda: module)
    driver = RecordedDriver(B200, B200, has_address=in_c)
    driver.contexts.append(0xC0)
    return driver


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    """`runtime/_relaunch.c` of this tree, built by the compiler of this machine."""
    compiler = shutil.which("cc")
    headers = Path(sysconfig.get_path("include"))
    if compiler is None or not (headers / "Python.h").exists():
        pytest.skip(f"a C compiler and {headers / 'Python.h'} are needed")
    built = (
        tmp_path_factory.mktemp("extension") / f"_relaunch{sysconfig.get_config_var('EXT_SUFFIX')}"
    )
    words = ["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    words += ["-Wno-missing-field-initializers", "-Wno-unused-parameter", f"-I{headers}"]
    subprocess.run([compiler, *words, str(SOURCE), "-o", str(built)], check=True)
    name = "tilewright.runtime._relaunch"
    spec = importlib.util.spec_from_file_location(name, built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def h200():
    """A driver with one H200."""
    return RecordedDriver(H200)


@pytest.fixture
def no_gpu():
    """A driver that sees no GPU."""
    return RecordedDriver()


@pytest.fixture
def recorded_enums():
    return ENUMS


@pytest.fixture
def bundle(manifest, ptx, cubin):
    """A bundle of a small kernel."""
    return Bundle(seal(manifest, ptx, cubin), ptx, cubin)


@pytest.fixture
def arrays(gpu_array):
    """Arrays that its kernel takes, on the first GPU."""
    return {
        "a": gpu_array((6, 16), (16, 1)),
        "b": gpu_array((4, 16), (1, 4)),
        "c": gpu_array((6, 4), (4, 1), "f32"),
    }
