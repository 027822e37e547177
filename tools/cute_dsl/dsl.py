"""The CuTe DSL as programs find it here: it compiles for a chip that is not there, keeps the PTX
of every kernel, and hands tensors of the host to host programs as those of a GPU."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from ..programs.launches import Launches
from ..programs.memory import TensorMemory
from ..programs.torch_tensors import as_cuda, taken
from ..programs.versions import unfit

PACKAGE, RELEASE = "nvidia-cutlass-dsl", "4.8"


class Compiled:
    """What the DSL has compiled in this process, newest last."""

    def __init__(self) -> None:
        self._artifacts: list[Any] = []

    def note(self, artifacts: Any) -> None:
        """PTX and machine code of a host program."""
        if artifacts is not None:
            self._artifacts.append(artifacts)

    def ptx(self, kernel: str, image: int) -> str | None:
        """The PTX of a kernel; of several of that name the one whose machine code lies there."""
        texts = [each for each in self._artifacts if each.PTX and f" {kernel}(" in each.PTX]
        for each in texts:
            if _lies_at(each.CUBIN, image):
                return each.PTX
        return texts[-1].PTX if texts else None


def _lies_at(machine_code: Any, image: int) -> bool:
    import ctypes

    return (
        isinstance(machine_code, bytes)
        and ctypes.string_at(image, len(machine_code)) == machine_code
    )


def settings(target: str, library: Path, dumps: Path) -> dict[str, str]:
    """The environment in which the DSL is imported."""
    return {
        "CUTE_DSL_ARCH": target,
        "CUTE_DSL_LIBS": str(library),
        "CUTE_DSL_KEEP": "ptx,cubin",
        "CUTE_DSL_DUMP_DIR": str(dumps),
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "QUACK_CACHE_ENABLED": "0",
    }


def prepare(compiled: Compiled, target: str, library: Path, launches: Launches, sms: int) -> None:
    """Import the DSL and change what needs a GPU; LaunchError where it is missing or another."""
    os.environ.update(settings(target, library, launches.folder))
    try:
        importlib.import_module("cutlass.cute")
        _keep_texts(compiled)
        _answer_for_hardware(sms)
        _pass_tensors(launches.memory)
    except (ImportError, AttributeError) as error:
        raise unfit(PACKAGE, RELEASE, error) from error


def _keep_texts(compiled: Compiled) -> None:
    function = importlib.import_module("cutlass.base_dsl.jit_executor").JitCompiledFunction
    made = function.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        compiled.note(self.artifacts)

    function.__init__ = noted


def _answer_for_hardware(sms: int) -> None:
    """Questions that the DSL's Python asks of the driver."""
    info = importlib.import_module("cutlass.utils").HardwareInfo
    info.__init__ = lambda self, device_id=0: None
    info.get_max_active_clusters = lambda self, cluster_size, *_, **__: max(1, sms // cluster_size)
    info.get_device_multiprocessor_count = lambda self, *_: sms
    info.get_l2_cache_size_in_bytes = lambda self, *_: 50 << 20
    driver = importlib.import_module("cuda.bindings.driver")
    done = driver.CUresult(0)
    for name, values in {
        "cuInit": (), "cuCtxSynchronize": (), "cuStreamSynchronize": (), "cuCtxSetCurrent": (),
        "cuStreamDestroy": (), "cuCtxDestroy": (), "cuDeviceGetCount": (1,),
        "cuDeviceGet": (driver.CUdevice(0),), "cuCtxGetCurrent": (driver.CUcontext(0),),
        "cuCtxCreate": (driver.CUcontext(0),), "cuStreamCreate": (driver.CUstream(0),),
        "cuDevicePrimaryCtxRetain": (driver.CUcontext(0),),
    }.items():  # fmt: skip
        setattr(driver, name, lambda *_, _values=values: (done, *_values))
    _answer_for_runtime()


def _answer_for_runtime() -> None:
    """Answer what the JIT's executor asks of the runtime API: the number of devices, and to
    unload."""
    executor: Any = importlib.import_module("cutlass.cutlass_dsl.cuda_jit_executor")
    runtime = executor.cuda_runtime

    class Runtime:
        def __getattr__(self, name: str) -> Any:
            if name == "cudaGetDeviceCount":
                return lambda: (runtime.cudaError_t(0), 1)
            if name == "cudaLibraryUnload":
                return lambda *_: (runtime.cudaError_t(0),)
            return getattr(runtime, name)

    executor.cuda_runtime = Runtime()


def _pass_tensors(memory: TensorMemory) -> None:
    """Host programs with the interface of TVM refuse tensors that are not on a GPU."""
    try:
        interface: Any = importlib.import_module("tvm_ffi")
    except ImportError:
        return
    take = interface.from_dlpack
    interface.from_dlpack = lambda value, **how: taken(value, take, memory, **how)
    provider = importlib.import_module("cutlass.cutlass_dsl.tvm_ffi_provider")
    for kind in (provider.TVMFFIJitCompiledFunction, provider.TVMFFIJitCompiledFunctionWithKwargs):
        kind.__call__ = _with_cuda(kind.__call__, take, memory)


def _with_cuda(call: Any, take: Any, memory: TensorMemory) -> Any:
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple(as_cuda(each, take, memory) for each in args)
        kwargs = {key: as_cuda(each, take, memory) for key, each in kwargs.items()}
        return call(self, *args, **kwargs)

    return called
