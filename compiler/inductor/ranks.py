"""One decision about a region for all ranks of torch.distributed.

Ranks measure for themselves, and where two times are close they may differ. They would then round
otherwise what should be equal on all of them, and Inductor might order the collectives of their
graphs otherwise, which hangs. So what the first one finds is left in the store through which the
ranks have met, and holds for the others. Nobody waits for anybody: ranks may have different graphs,
or theirs from a cache.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from ..calls.kernels.kernel_cache import digest
from .judge import Verdict


def agreed(about: list[str], find: Callable[[], Verdict]) -> Verdict:
    """What a rank has found of this, or what this one finds, if it is the first.

    about: what is judged, in texts that are the same on every rank.
    """
    store, key = _store(), f"tilewright/{digest({'verdict': about})}"
    if store is None:
        return find()
    known = _asked(lambda: store.get(key) if store.check([key]) else None)
    if known is None:
        mine = find()
        known = _asked(lambda: store.compare_set(key, "", json.dumps(mine))) or json.dumps(mine)
    return Verdict(*json.loads(known))


def _asked(ask: Callable[[], Any]) -> Any:
    """What a store says; None from one that is gone, or that is none."""
    try:
        return ask()
    except RuntimeError:
        return None


def _store() -> Any:
    """The store of this process's group; None where there is none."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    from torch.distributed.distributed_c10d import _get_default_store

    return _get_default_store()
