"""Memory that this process may still allocate; refuses what cannot fit."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

from .element_types import ITEM_BYTES
from .errors import LaunchError

FLOAT64_BYTES = 8
COMPARED_FLOAT64 = 4
"""The reference of an output: its value, the ends of its interval, and what the kernel wrote."""


def needed_bytes(tensors: Iterable[Mapping[str, Any]]) -> int:
    """The least that a manifest's tensors and their reference in float64 take on the host."""
    return sum(_bytes(each) for each in tensors)


def _bytes(tensor: Mapping[str, Any]) -> int:
    copies = 1 if tensor["role"] == "input" else COMPARED_FLOAT64
    return prod(tensor["shape"]) * (ITEM_BYTES[tensor["dtype"]] + copies * FLOAT64_BYTES)


def available_bytes() -> int:
    """What the machine, its control group and this process's limit leave, at most."""
    return min(_machine_bytes(), _group_bytes(), _limit_bytes())


def refuse_large(tensors: Iterable[Mapping[str, Any]]) -> None:
    """LaunchError before tensors are made that surely do not fit."""
    needed, there = needed_bytes(tensors), available_bytes()
    if needed > there:
        raise LaunchError(
            f"memory: tensors and their reference in float64 must fit into {there} bytes"
            f" ({there / 2**30:.1f} GiB), which are available, got {needed}"
            f" ({needed / 2**30:.1f} GiB); make the matmul smaller"
        )


def _machine_bytes() -> int:
    """MemAvailable and free swap of /proc/meminfo (proc_meminfo(5)); else all physical memory."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        fields = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        return 1024 * (fields["MemAvailable"] + fields.get("SwapFree", 0))
    except (OSError, KeyError, ValueError, IndexError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_bytes() -> int:
    """memory.max of the control group that a container sees as its root; none is 2^63."""
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):
        return 2**63


def _limit_bytes() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 2**63 if soft < 0 else soft
