"""The device that runs a bundle's cubin on an NVIDIA GPU."""

from .device import CudaDevice

__all__ = ["CudaDevice"]
