"""Python's garbage collector during a launch."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def earlier_objects_set_aside() -> Iterator[None]:
    """Collect inside among the objects that are made inside alone.

    A full collection visits every object of the process. With torch and MLIR loaded these are a
    million, none of which a launch can turn to garbage. Somebody else's `gc.freeze` stays as it is.
    """
    ours = gc.get_freeze_count() == 0
    if ours:
        gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()
