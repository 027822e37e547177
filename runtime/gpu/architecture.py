"""The GPUs on which a cubin for a target runs."""

from __future__ import annotations

import re

Capability = tuple[int, int]


def capability_of(target: str) -> tuple[Capability, str]:
    """("sm_100a") → ((10, 0), "a"): major and minor compute capability, and the suffix."""
    found = re.fullmatch(r"sm_(\d+)(\d)([af]?)", target)
    return ((int(found[1]), int(found[2])), found[3]) if found else ((0, 0), "")


def runs_on(target: str, capability: Capability) -> bool:
    """Whether a cubin for `target` may run on a GPU of this compute capability.

    With suffix `a` on that one alone, otherwise (`f`, or none) on it and on later ones of the same
    major number (CUDA C++ Programming Guide, "Binary Compatibility" and "Feature Set Compiler
    Targets").
    """
    (major, minor), suffix = capability_of(target)
    if suffix == "a":
        return capability == (major, minor)
    return capability[0] == major and capability[1] >= minor


def translates(target: str, capability: Capability) -> bool:
    """Whether the driver of a GPU of this compute capability can make a cubin of PTX for `target`.

    Of PTX without the features of one chip or family, for that capability or a later one (CUDA C++
    Programming Guide, "Just-in-Time Compilation").
    """
    least, suffix = capability_of(target)
    return not suffix and capability >= least > (0, 0)


def target_of(capability: Capability) -> str:
    """The target with all features of a GPU: (9, 0) → "sm_90a"."""
    return f"sm_{capability[0]}{capability[1]}a"
