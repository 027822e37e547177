"""Folders into which the columns of benchmarks/models.py compile."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

FOLDER = "TILEWRIGHT_CACHE"


class Caches:
    """Folders into which columns compile, each into an empty one; `both` goes on where `autotune`
    left."""

    def __init__(self, keep: bool):
        self._keep, self._column = keep, ""
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Caches:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.close()

    def turn_to(self, column: str) -> None:
        """Let what follows be compiled for a column."""
        goes_on = (self._column, column) == ("autotune", "both")
        self._column = column
        if self._keep or column == "eager" or goes_on:
            return
        from torch._inductor import config, utils

        self._open.close()
        fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache
        self._open.enter_context(fresh())
        self._open.enter_context(config.patch(fx_graph_cache=False))
        self._open.callback(_set_folder, os.environ.get(FOLDER))
        _set_folder(self._open.enter_context(tempfile.TemporaryDirectory()))


def _set_folder(name: str | None) -> None:
    if name is None:
        os.environ.pop(FOLDER, None)
    else:
        os.environ[FOLDER] = name
