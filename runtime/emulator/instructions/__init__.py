"""The modelled instructions, one file a family; `load_all()` registers them.

values/     registers from registers, lane by lane
threads/    branches, barriers, fences, warps, launch control
memory/     loads, stores, atomics, copies
mma/        products in registers: mma.sync, wmma, wgmma, and ldmatrix
tcgen05/    products in tensor memory
refused     families that no matmul kernel needs
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_all() -> None:
    """Import every module of this package, so that its instructions are registered."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
