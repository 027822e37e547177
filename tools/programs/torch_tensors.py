"""Tensors that a program has "on the GPU", in the memory of the host.

A program that asks torch for a CUDA tensor gets one of the CPU, which says that it is on `cuda:0`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import library
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode

from .memory import ALIGNMENT, TensorMemory

DEVICE = torch.device("cuda", 0)
CUDA_DLPACK = 2
_PROPERTIES = {torch.Tensor.is_cuda.__get__: True, torch.Tensor.device.__get__: DEVICE}
_CAPSULE = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_DEVICE_AT = ctypes.sizeof(ctypes.c_void_p)


def is_cuda(value: Any) -> bool:
    """Whether an argument of torch names a GPU."""
    return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")


def on_host(value: Any) -> Any:
    """The argument, or `cpu` where it names a GPU."""
    return "cpu" if is_cuda(value) else value


_EVENT = SimpleNamespace(
    record=lambda *_: None, synchronize=lambda: None, wait=lambda *_: None, query=lambda: True,
    elapsed_time=lambda _: 0.0,
)  # fmt: skip


class _CudaTensor:
    """A tensor that says by DLPack that it is on a GPU."""

    def __init__(self, tensor: torch.Tensor):
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return _as_of_cuda(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA_DLPACK, 0


def _as_of_cuda(tensor: torch.Tensor) -> Any:
    with torch._C.DisableTorchFunction():
        capsule = torch.utils.dlpack.to_dlpack(tensor.detach())
    start = _CAPSULE(capsule, b"dltensor")
    ctypes.c_int32.from_address(start + _DEVICE_AT).value = CUDA_DLPACK
    return capsule


class HostTensors(TorchFunctionMode):
    """Lets torch make tensors of the host for those of a GPU, and notes what kernels may read."""

    def __init__(self, memory: TensorMemory):
        super().__init__()
        self._memory = memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _PROPERTIES:
            return _PROPERTIES[func]
        if func is torch.Tensor.__dlpack__:
            return _as_of_cuda(self._noted(args[0]))
        if func is torch.Tensor.__dlpack_device__:
            return CUDA_DLPACK, 0
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in ("cuda", "pin_memory"):
            return self._noted(_aligned(args[0]))
        kwargs = {key: on_host(value) for key, value in (kwargs or {}).items()}
        result = func(*map(on_host, args), **kwargs)
        for each in (*args, result):
            self._noted(each)
        return self._noted(_aligned(result)) if result is not (args or [None])[0] else result

    def _noted(self, value: Any) -> Any:
        if type(value) is torch.Tensor and not value.is_meta:
            self._memory.note(value)
        return value


def _aligned(value: Any) -> Any:
    """A new tensor of its own storage, at an address as CUDA gives it."""
    if type(value) is not torch.Tensor or value.is_meta or value.requires_grad:
        return value
    if value.data_ptr() % ALIGNMENT == 0 or value._is_view() or value.storage_offset():
        return value
    extent = 1 + sum(
        (size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True)
    )
    raw = torch.empty(extent * value.element_size() + ALIGNMENT, dtype=torch.uint8)
    start = -raw.data_ptr() % ALIGNMENT
    flat = raw[start : start + extent * value.element_size()].view(value.dtype)
    return flat.as_strided(value.shape, value.stride()).copy_(value)


def taken(value: Any, take: Any, memory: TensorMemory, **how: Any) -> Any:
    """What `take` makes by DLPack of a tensor, as of one of a GPU, or of something else."""
    if not isinstance(value, torch.Tensor):
        return take(value, **how)
    with torch._C.DisableTorchFunction():
        memory.note(value)
        return take(_CudaTensor(value), **how)


def as_cuda(value: Any, take: Any, memory: TensorMemory) -> Any:
    """An argument of a kernel, its tensors as those of a GPU."""
    if isinstance(value, torch.Tensor):
        return taken(value, take, memory)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(as_cuda(each, take, memory) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(as_cuda(each, take, memory) for each in value)
    return value


@contextmanager
def cuda_on_host(
    memory: TensorMemory, multiprocessors: int, capability: tuple[int, int]
) -> Iterator[None]:
    """Within, torch has a GPU in the memory of the host."""
    major, minor = capability
    stream = SimpleNamespace(cuda_stream=0, synchronize=lambda: None, device=DEVICE)
    properties = SimpleNamespace(
        multi_processor_count=multiprocessors, major=major, minor=minor, name="emulator",
        L2_cache_size=50 << 20, shared_memory_per_block_optin=232448,
    )  # fmt: skip
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "synchronize": None,
        "get_device_capability": capability, "default_stream": stream, "current_stream": stream,
        "Stream": stream, "get_device_properties": properties, "empty_cache": None,
        "set_device": None, "manual_seed": None, "manual_seed_all": None, "is_initialized": True,
        "init": None, "get_device_name": "emulator", "device": nullcontext(),
        "device_of": nullcontext(), "stream": nullcontext(), "Event": _EVENT,
    }  # fmt: skip
    patches: list[Any] = [
        mock.patch.object(torch.cuda, name, lambda *a, _answer=answer, **k: _answer)
        for name, answer in answers.items()
    ]
    mode = HostTensors(memory)
    patches.append(mock.patch.object(library, "custom_op", _for_any_device))
    patches.append(mock.patch.object(torch.Tensor, "record_stream", lambda *_: None))
    patches.append(mock.patch.object(BackwardCFunction, "apply", _backward_in(mode)))
    for patch in patches:
        patch.start()
    try:
        with mode:
            yield
    finally:
        for patch in reversed(patches):
            patch.stop()


_custom_op = library.custom_op


def _for_any_device(*args: Any, device_types: Any = None, **kwargs: Any) -> Any:
    """`custom_op` of torch, for tensors of the host, too."""
    return _custom_op(*args, **kwargs)


_backward = BackwardCFunction.apply


def _backward_in(mode: HostTensors) -> Any:
    """Backward of a program's own function, which torch calls without the mode."""

    def apply(self: Any, *gradients: Any) -> Any:
        with mode:
            return _backward(self, *gradients)

    return apply
