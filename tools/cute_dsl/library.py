"""The library that answers what host programs of the CuTe DSL ask of CUDA: `stand_in.c`, compiled
by the system's C compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...runtime.errors import LaunchError

SOURCE = Path(__file__).with_name("stand_in.c")
CLUSTER, COOPERATIVE = 4, 2
"""cudaLaunchAttributeID."""
ATTRIBUTE_BYTES, VALUE_AT = 72, 8
LAUNCH_FAILURE = 719
"""cudaErrorLaunchFailure."""


class _Kernel(ctypes.Structure):
    _fields_ = (("image", ctypes.c_void_p), ("name", ctypes.c_char_p))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint32),
    )


_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(_Kernel), ctypes.POINTER(_Config), ctypes.POINTER(ctypes.c_void_p)
)


@dataclass(frozen=True)
class HostLaunch:
    """A launch that a host program asks for. image: the address of the machine code; parameters:
    the address of each parameter's bytes is at this one."""

    kernel: str
    image: int
    grid: list[int]
    block: list[int]
    cluster: list[int]
    cooperative: bool
    shared_bytes: int
    parameters: Any

    def parameter(self, number: int, size: int) -> bytes:
        """The bytes of a parameter."""
        return ctypes.string_at(self.parameters[number], size)


def build(folder: Path) -> Path:
    """Compile the library into a folder; LaunchError if that cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LaunchError("cc: must be on the path, for CUDA's stand-in; install a C compiler")
    path = folder / "libtilewright_stand_in.so"
    made = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", str(path), str(SOURCE)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise LaunchError(f"{compiler}: cannot compile {SOURCE}: {made.stderr.strip()}")
    return path


def load(path: Path) -> ctypes.CDLL:
    """The library, whose functions whatever is loaded later finds first."""
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def serve(
    library: ctypes.CDLL, run: Callable[[HostLaunch], bool], multiprocessors: int, major: int
) -> object:
    """Let each launch be run; returns what must be kept as long. run: whether it went well."""

    def launched(kernel: Any, config: Any, parameters: Any) -> int:
        return 0 if run(_asked(kernel.contents, config.contents, parameters)) else LAUNCH_FAILURE

    callback = _LAUNCH(launched)
    library.tilewright_begin(callback, multiprocessors, major)
    return callback


def _asked(kernel: _Kernel, config: _Config, parameters: Any) -> HostLaunch:
    cluster, cooperative = [1, 1, 1], False
    for number in range(config.attribute_count):
        raw = ctypes.string_at(config.attributes + ATTRIBUTE_BYTES * number, ATTRIBUTE_BYTES)
        ident, value = int.from_bytes(raw[:4], "little"), raw[VALUE_AT:]
        if ident == CLUSTER:
            cluster = [int.from_bytes(value[at : at + 4], "little") or 1 for at in (0, 4, 8)]
        cooperative |= ident == COOPERATIVE and value[0] != 0
    return HostLaunch(
        kernel.name.decode(), kernel.image, list(config.grid), list(config.block), cluster,
        cooperative, config.shared_bytes, parameters,
    )  # fmt: skip
