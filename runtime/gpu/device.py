"""NVIDIA GPUs: properties, contexts, and loaded kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..bundles.bundle import Bundle
from ..bundles.manifest import in_order
from ..errors import DeviceError
from ..operands.dlpack import gpu_of
from .driver import Driver, open_driver
from .gpu import Gpu
from .program import CudaProgram, CudaReport


class CudaDevice:
    """Every GPU of the machine, or the one of `index`; kernels run where their tensors lie."""

    name = "cuda"

    def __init__(self, index: int | None = None, driver: Driver | None = None):
        self.driver = driver or open_driver()
        self.index = index
        self.place = f"cuda:{index or 0}"
        self._gpus: dict[int, Gpu] = {}
        if not 0 <= (index or 0) < self.driver.device_count():
            raise self._no_such_gpu(index or 0)

    @property
    def target(self) -> str:
        """The compilation target of the device's GPU, by default the first, such as "sm_90a"."""
        return self.gpu().target

    def gpu(self, index: int | None = None) -> Gpu:
        """The GPU of this index, by default the device's own, or the first.

        Raises DeviceError when there is none of that index, or it isn't the device's own.
        """
        index = (self.index or 0) if index is None else index
        if self.index not in (None, index):
            raise DeviceError(
                f"tensors: must be on cuda:{self.index} for this device, got cuda:{index};"
                " move them, or open the device 'cuda'"
            )
        if index not in self._gpus:
            self._gpus[index] = self._open(index)
        return self._gpus[index]

    def open(self, bundle: Bundle, index: int | None = None) -> CudaProgram:
        """Load a bundle into a GPU; raises DeviceError when it was made for another one."""
        return CudaProgram(bundle, self.gpu(index))

    def launch(
        self, bundle: Bundle, tensors: Mapping[str, Any], seed: int = 0, **options: Any
    ) -> CudaReport:
        """Run the kernel on CUDA tensors bound by name, wait for it, and say where it ran.

        Raises DeviceError for any option: there is none.
        """
        if options:
            given = ", ".join(options)
            raise DeviceError(f"cuda: must get no options, got {given}; the emulator has them")
        values = in_order(bundle.manifest, tensors)
        return self.open(bundle, gpu_of(values[0])).run(values, seed)

    def _open(self, index: int) -> Gpu:
        driver, api = self.driver, self.driver.api
        if not 0 <= index < driver.device_count():
            raise self._no_such_gpu(index)
        handle = driver.check(f"cuda:{index}", api.cuDeviceGet(index))
        major, minor = (
            driver.attribute(handle, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")
        )
        version = driver.check("cuda: driver version", api.cuDriverGetVersion())
        return Gpu(
            index,
            driver.name(handle),
            (major, minor),
            driver.attribute(handle, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            f"{version // 1000}.{version % 1000 // 10}",
            driver.check(f"cuda:{index}: context", api.cuDevicePrimaryCtxRetain(handle)),
            driver,
        )

    def _no_such_gpu(self, index: int) -> DeviceError:
        count = self.driver.device_count()
        return DeviceError(f"cuda: index must be below the {count} GPUs here, got {index}")
