"""Grid, block and cluster of a launch, as the kernel and the hardware allow them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import LaunchError, short_name
from ..ptx.program import Program

MAX_THREADS = 1024
MAX_CLUSTER = 16
MAX_CTAS = 1 << 22
"""A bound on the host's memory and time."""
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)

Extent = int | Sequence[int]


class Shape:
    """grid, block, cluster: CTAs, threads and CTAs a cluster along x, y, z; missing axes are 1.

    preferred: CTAs of a cluster that takes the place of several where there is room, `cluster` if
    the launch asks for none. explicit_cluster: whether the kernel or the launch asks for clusters.
    Raises LaunchError.
    """

    def __init__(
        self,
        program: Program,
        grid: Extent,
        block: Extent,
        cluster: Extent,
        preferred: Extent | None = None,
    ):
        self._entry, self._directives = program.entry, program.function.directives
        self.grid, self.block = _triple("grid", grid), _triple("block", block)
        self.cluster, self.explicit_cluster = self._cluster_of(cluster)
        self.preferred = self.cluster
        if preferred is not None:
            self.preferred = _triple("preferred", preferred)
            self.explicit_cluster = True
        self._check_shape()

    def _error(self, message: str) -> LaunchError:
        return LaunchError(f"kernel {short_name(self._entry)}: {message}")

    def _cluster_of(self, cluster: Extent) -> tuple[tuple[int, int, int], bool]:
        asked = _triple("cluster", cluster)
        required = self._directives.get("reqnctapercluster")
        if required:
            required = _triple("reqnctapercluster", required)
            if asked not in ((1, 1, 1), required):
                raise self._error(f"cluster must be {required} (.reqnctapercluster), got {asked}")
            asked = required
        return asked, bool(required) or "explicitcluster" in self._directives or prod(asked) > 1

    def _check_shape(self) -> None:
        for axis, (count, limit) in enumerate(zip(self.grid, MAX_GRID, strict=True)):
            if not 1 <= count <= limit:
                raise self._error(f"grid {'xyz'[axis]} must be 1..{limit}, got {count}")
        for axis, (count, limit) in enumerate(zip(self.block, MAX_BLOCK, strict=True)):
            if not 1 <= count <= limit:
                raise self._error(f"block {'xyz'[axis]} must be 1..{limit}, got {count}")
        if prod(self.block) > MAX_THREADS:
            raise self._error(f"a block has at most {MAX_THREADS} threads, got {prod(self.block)}")
        self._check_directives()
        self._check_cluster()

    def _check_directives(self) -> None:
        required = self._directives.get("reqntid")
        if required is not None and self.block != _triple("reqntid", required):
            required = _triple("reqntid", required)
            raise self._error(f"block must be {required} (.reqntid), got {self.block}")
        if "maxntid" in self._directives and prod(self.block) > prod(self._directives["maxntid"]):
            raise self._error(
                f"a block has at most {prod(self._directives['maxntid'])} threads"
                f" (.maxntid), got {prod(self.block)}"
            )

    def _check_cluster(self) -> None:
        if prod(self.grid) > MAX_CTAS:
            raise self._error(f"a grid has at most {MAX_CTAS} CTAs here, got {prod(self.grid)}")
        if not 1 <= prod(self.cluster) <= MAX_CLUSTER:
            raise self._error(f"a cluster has 1..{MAX_CLUSTER} CTAs, got {self.cluster}")
        for count, size in zip(self.grid, self.cluster, strict=True):
            if count % size:
                raise self._error(f"grid {self.grid} must be a multiple of cluster {self.cluster}")
        if self.preferred != self.cluster:
            self._check_preferred()

    def _check_preferred(self) -> None:
        """CUDA driver API, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION."""
        preferred, required = self.preferred, self._directives.get("reqnctapercluster")
        if required:
            raise self._error(f"preferred must be left out (.reqnctapercluster), got {preferred}")
        if prod(preferred) > MAX_CLUSTER:
            raise self._error(f"a preferred cluster has 1..{MAX_CLUSTER} CTAs, got {preferred}")
        if any(map(int.__mod__, preferred, self.cluster)):
            raise self._error(f"preferred {preferred} must be a multiple of cluster {self.cluster}")
        if any(map(int.__mod__, self.grid, preferred)):
            raise self._error(f"grid {self.grid} must be a multiple of preferred {preferred}")


def _triple(name: str, extent: Extent) -> tuple[int, int, int]:
    values = list(extent) if isinstance(extent, Sequence) else [extent]
    whole = all(isinstance(value, int | np.integer) for value in values)
    if not whole or not 1 <= len(values) <= 3:
        raise LaunchError(f"{name}: must be one to three integers, got {extent!r}")
    x, y, z = (int(v) for v in values + [1] * (3 - len(values)))
    return x, y, z
