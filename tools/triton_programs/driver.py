"""Triton's driver of a GPU that is not there: it launches on the emulator."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from ...runtime.emulator.host.programs import load_program
from ..programs.launch_files import Asked
from ..programs.launches import Launches
from ..programs.versions import unfit
from .arguments import address_of, as_bytes, parameters

WARP = 32
SHARED_BYTES = 232_448
PACKAGE, RELEASE = "triton", "3.9"


@dataclass(frozen=True)
class Function:
    """A kernel that Triton has loaded."""

    name: str
    text: str
    shared_bytes: int


class Utils:
    """What Triton's compiler asks of a driver. texts: the PTX of machine code."""

    def __init__(self, multiprocessors: int):
        self._multiprocessors = multiprocessors
        self.texts: dict[bytes, str] = {}

    def load_binary(self, name: str, code: bytes, shared: int, device: int) -> tuple:
        """(module, function, registers, spills, most threads)."""
        return object(), Function(name, self.texts[code], shared), 0, 0, 1024

    def unload_module(self, module: Any) -> None:
        """Nothing is held."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The properties of a data-center GPU."""
        return {
            "max_shared_mem": SHARED_BYTES, "max_num_regs": 65536, "warpSize": WARP,
            "multiprocessor_count": self._multiprocessors, "sm_clock_rate": 10**6,
            "mem_clock_rate": 10**6, "mem_bus_width": 8192,
        }  # fmt: skip

    def set_printf_fifo_size(self, size: int) -> None:
        """What kernels print needs no room."""


def driver_of(launches: Launches) -> Any:
    """A driver for `triton.runtime.driver.set_active`; LaunchError if Triton is not as wanted."""
    try:
        backend = importlib.import_module("triton.backends.compiler")
        compiler = importlib.import_module("triton.compiler.compiler")
        base = importlib.import_module("triton.backends.driver").DriverBase
        testing: Any = importlib.import_module("triton.testing")
        tuner = importlib.import_module("triton.runtime.autotuner").Autotuner
        target_of, kernel = backend.GPUTarget, compiler.CompiledKernel
    except (ImportError, AttributeError) as error:
        raise unfit(PACKAGE, RELEASE, error) from error
    import torch

    major, minor = launches.options.capability()
    target = target_of("cuda", 10 * major + minor, WARP)

    class Driver(base):
        def __init__(self) -> None:
            self.utils = Utils(launches.options.multiprocessors)
            self.launcher_cls = lambda src, metadata: launcher(launches, src, metadata)

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> Any:
            return target

        def get_active_torch_device(self) -> Any:
            return torch.device("cuda", 0)

        def get_device_interface(self) -> Any:
            return torch.cuda

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            pass

        def get_device_capability(self, device: int = 0) -> tuple[int, int]:
            return major, minor

        def get_current_stream(self, device: int = 0) -> int:
            return 0

        def get_benchmarker(self) -> Any:
            return measured

        def get_empty_cache_for_benchmark(self) -> Any:
            return torch.empty(1, device="cuda")

        def clear_cache(self, cache: Any) -> None:
            pass

    made = Driver()
    _keep_texts(kernel, made.utils)
    testing.do_bench = measured
    _take_first(tuner)
    return made


def measured(call: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """There is no time here: a call runs once, and takes a millisecond."""
    call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


def _take_first(tuner: Any) -> None:
    """Take the first configuration that a kernel allows, instead of the fastest."""
    allowed = tuner.prune_configs
    tuner.prune_configs = lambda self, arguments: allowed(self, arguments)[:1]


def _keep_texts(kernel: Any, utils: Utils) -> None:
    made = kernel.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        utils.texts[self.kernel] = self.asm["ptx"]

    kernel.__init__ = noted


def launcher(launches: Launches, source: Any, metadata: Any) -> Any:
    """What launches a kernel for Triton."""
    signature = list(source.signature.values())
    descriptors = getattr(metadata, "tensordesc_meta", None) or None
    ctas = getattr(metadata, "num_ctas", 1)

    def launch(
        x: int, y: int, z: int, stream: Any, function: Function, packed: Any, about: Any,
        enter: Any, leave: Any, *arguments: Any,
    ) -> None:  # fmt: skip
        if x * y * z == 0:
            return
        program = load_program(function.text, function.name)
        raws = parameters(signature, arguments, descriptors)
        wanted = len(program.parameter_sizes())
        scratch = _scratch(launches, metadata, ctas * x * y * z)
        raws += [as_bytes("*", address_of(each)) for each in scratch[: wanted - len(raws)]]
        if enter is not None:
            enter(about)
        block, shared = list(program.function.directives["reqntid"]), function.shared_bytes
        whole = bool(getattr(metadata, "launch_cooperative_grid", False))
        grid, cluster = [x * ctas, y, z], [ctas, 1, 1]
        launches.run(Asked(function.name, function.text, grid, block, cluster, shared, raws, whole))
        if leave is not None:
            leave(about)

    return launch


def _scratch(launches: Launches, metadata: Any, ctas: int) -> list[Any]:
    """Memory of a kernel's own, of so many bytes a CTA; None where it asks for none."""
    import torch

    found = []
    for name in ("global_scratch_size", "profile_scratch_size"):
        size = ctas * getattr(metadata, name, 0)
        found.append(torch.zeros(size, dtype=torch.int8, device="cuda") if size else None)
        if size:
            launches.memory.note(found[-1])
    return found
